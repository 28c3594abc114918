import { expect, it } from "vitest";
import { compile, startChild } from "../helpers/child.js";
import { sendJson, startServer } from "../helpers/server.js";

it("our classes serve packages as those of the process, and Node loads none of its own", async () => {
  const server = await startServer((response, { method, url, headers, body }) => {
    if (url.startsWith("/.well-known/")) {
      return sendJson(response, { issuer: `${server.origin}/`, token_endpoint: `${server.origin}/token` });
    }
    if (url === "/token") return sendJson(response, { access_token: `for ${body}`, token_type: "Bearer" });
    sendJson(response, { method, body, token: headers.authorization }, 200, { "x-seen": String(headers["x-added"]) });
  });
  const child = startChild(await compile(new URL("./global-classes-driver.ts", import.meta.url)), {
    origin: server.origin,
  });
  const { result } = await child.hears("done");
  const token = "for scope=a&grant_type=client_credentials";
  expect(result).toEqual({
    "the bodies of commands": { seen: [4], isLoaded: false },
    "openapi-fetch": {
      seen: [{ method: "GET", body: "" }, "1", [true, true]],
      isLoaded: false,
    },
    oauth4webapi: {
      seen: [
        token,
        { method: "PUT", body: "text", token: `Bearer ${token}` },
        true,
        expect.stringContaining("Authorization"),
      ],
      isLoaded: false,
    },
    "what only the classes of the runtime do": {
      seen: "TypeError: this process has replaced the Response of the runtime",
      isLoaded: false,
    },
    "Node's fetch": { seen: "a", isLoaded: true },
  });
});
