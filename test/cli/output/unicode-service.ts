import { sendJson, startServer, type TestServer } from "../../helpers/server.js";
import { SampleService } from "../../helpers/service.js";
import { everyText } from "../../helpers/unsafe.js";

/** Items of which every text is made of all of Unicode; a lone surrogate has no form in UTF-8, and so none in a file. */
export const items = everyText(256)
  .filter((text) => !/\p{Cs}/u.test(text))
  .map((text, index) => ({
    id: `dev_${index}`,
    title: text,
    status: text,
    session_type: "mcp",
    last_seen: { at: 1_700_000_000, city: text, user_agent: text },
    dynamic_client_details: { title: text, redirect_uris: [text] },
  }));

/** A service whose every text is made of all of Unicode; pools and domains have the same items. */
export function startUnicodeService(): Promise<TestServer> {
  const made = new SampleService(0);
  made.items = items;
  return startServer((response, { url }) => {
    const { pathname, searchParams: query } = new URL(url, "http://x");
    if (!pathname.endsWith("/device")) made.items = items.slice(0, 1);
    else made.items = items;
    const { items: summaries, ...page } = made.page(
      Number(query.get("pagination[offset]") ?? 0),
      Number(query.get("pagination[page_size]") ?? 300),
    );
    sendJson(response, { status: "success", summaries, ...page, sorting: { field: "id", direction: "asc" } });
  });
}
