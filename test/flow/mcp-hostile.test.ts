import { expect, it } from "vitest";
import { sendError, sendResult } from "../mcp/plain-server.js";
import { signedInAt } from "./plain-login.js";

/** The one that {@link signedInAt} keeps. */
const TOKEN = "access-token-1";
const KEPT = "********";

it("masks the token that a server says back, in what it lists, in a result and in an error", async () => {
  const { run, url } = await signedInAt(({ id, method, params }, response) => {
    const inputSchema = { type: "object" };
    if (method === "tools/list") {
      return sendResult(response, id, { tools: [{ name: "say", description: `with ${TOKEN}`, inputSchema }] });
    }
    if (params["name"] === "fail") return sendError(response, id, -32_000, `not with ${TOKEN}`, 400);
    const isError = params["name"] === "moan";
    return sendResult(response, id, { content: [{ type: "text", text: `with ${TOKEN}` }], isError });
  });
  for (const format of ["table", "json"]) {
    for (const [code, args] of [
      [0, ["tools", url]],
      [0, ["call", url, "say"]],
      [6, ["call", url, "moan"]],
      [6, ["call", url, "fail"]],
    ] as const) {
      for (const env of [{}, { AGENTAUTH_ERRORS: "json" }]) {
        const out = await run(["mcp", ...args, "--output", format, "--debug"], { env });
        expect([out.code, ...args]).toEqual([code, ...args]);
        expect(out.stdout + out.stderr).not.toContain(TOKEN);
        expect(out.stdout + out.stderr).toContain(KEPT);
      }
    }
  }
});

it.each<[string, number, string]>([
  ["an answer", 200, "application/json"],
  ["an event", 200, "text/event-stream"],
  ["a refusal", 400, "application/json"],
])("reads no more than fits of %s without end", async (_what, status, type) => {
  let sent = 0;
  const { run, url } = await signedInAt((_call, response) => {
    response.writeHead(status, { "content-type": type });
    response.write(type === "application/json" ? '{"a":"' : "data: ");
    const chunk = "x".repeat(1024 * 1024);
    const more = () => {
      while (!response.destroyed && sent < 600) {
        sent++;
        if (!response.write(chunk)) return void response.once("drain", more);
      }
    };
    more();
  });
  const { code, stderr } = await run(["mcp", "tools", url, "--timeout", "3", "--retries", "0"]);
  expect([3, 5, 6]).toContain(code);
  expect(stderr).not.toContain("xxxxxxxxxx");
  expect(sent).toBeLessThan(100);
});

it("lets no name of a tool act on a terminal, also of one that the client leaves out", async () => {
  const { run, url } = await signedInAt(({ id }, response) => {
    const inputSchema = { type: "object", properties: { a: { type: "string", "x-mcp-header": "bad header\n" } } };
    return sendResult(response, id, { tools: [{ name: "\u001b[31mred", inputSchema }] });
  });
  const { stdout, stderr } = await run(["mcp", "tools", url, "--output", "table"]);
  expect(stdout + stderr).not.toContain("\u001b");
});
