import { describe, expect, it, onTestFinished } from "vitest";
import { sendJson, startServer } from "../../helpers/server.js";
import { startRun } from "../run-support.js";

const PAGE = { status: "success", pagination: {}, summaries: [{ id: "dev_1", type: "device" }] };

/** The client of the service, for a run with these flags at a server that answers so. */
async function clientAt(
  answer: Parameters<typeof startServer>[0],
  flags: object = {},
  env: Record<string, string> = {},
) {
  const server = await startServer(answer);
  onTestFinished(() => server.close());
  const variables = { AGENTAUTH_BASE_URL: server.origin, AGENTAUTH_API_TOKEN: "tok_0123456789abcdef", ...env };
  const { context, io } = startRun({ env: variables, verbose: true }, flags);
  const client = await context.management();
  const list = async () => {
    const items: object[] = [];
    for await (const page of client.devices.list({ pool_id: "p" }).pages()) items.push(...page.items);
    return items;
  };
  return { server, context, io, list };
}

const answerPage: Parameters<typeof startServer>[0] = (response) => sendJson(response, PAGE);

describe("the client of the service", () => {
  it("sends its token, which no output shows, and says what it is", async () => {
    const { server, context, list, io } = await clientAt(answerPage);
    expect(await list()).toMatchObject([{ id: "dev_1" }]);
    expect(server.requests[0]).toMatchObject({
      url: "/api/v1/device?pool_id=p",
      headers: { authorization: "Bearer tok_0123456789abcdef", "user-agent": expect.stringMatching(/^agentauth-cli /) },
    });
    expect(context.redactor.redact("it is tok_0123456789abcdef")).toBe("it is ********");
    expect(io.err()).toBe("");
    expect(await context.management()).toBe(await context.management());
  });

  it("logs its requests with their queries where that is asked for, and its retries", async () => {
    let nth = 0;
    const busyOnce: typeof answerPage = (response) => {
      if (nth++ > 0) sendJson(response, PAGE);
      else response.writeHead(503, { "retry-after": "0" }).end();
    };
    const { server, list, io } = await clientAt(busyOnce, { verbose: true });
    await list();
    const lines = io
      .err()
      .replaceAll(server.origin, "<origin>")
      .replace(/in \d+ ms/g, "in - ms")
      .trim()
      .split("\n");
    expect(lines).toMatchSnapshot();
  });

  it.each([
    [{ retries: 0 }, 1],
    [{ retries: 1 }, 2],
    [{}, 3],
  ])("asks again as often as the flags say: %j", async (flags, times) => {
    const busy: typeof answerPage = (response) => response.writeHead(503, { "retry-after": "0" }).end();
    const { server, list } = await clientAt(busy, flags);
    await expect(list()).rejects.toMatchObject({ status: 503 });
    expect(server.requests).toHaveLength(times);
  });

  it("waits as long as --timeout says", async () => {
    const { list } = await clientAt(() => undefined, { timeout: 0.1, retries: 0 });
    await expect(list()).rejects.toMatchObject({ code: "timeout", message: expect.stringContaining("0.1 s") });
  });

  it("sends no token where none is set", async () => {
    const { server, list } = await clientAt(answerPage, {}, { AGENTAUTH_API_TOKEN: "" });
    await list();
    expect(server.requests[0]?.headers.authorization).toBeUndefined();
  });
});
