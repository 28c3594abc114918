import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { startServer } from "../helpers/server.js";
import { type LossyCall, type LossyOptions, sendSession, startLossyServer } from "../mcp/lossy-server.js";
import { sendError, sendResult } from "../mcp/plain-server.js";
import { loggedInTo } from "./plain-login.js";

const INIT: NonNullable<LossyOptions["initialize"]> = (response, call, session) =>
  sendSession(response, call, session, { capabilities: { tools: {} } });

/** Answers calls of a server that has one tool. */
const answer: LossyOptions["answer"] = (response, { id = 0, method }) =>
  method === "server/discover"
    ? sendError(response, id, -32_601, "Method not found")
    : sendResult(response, id, method === "tools/list" ? { tools: [] } : { content: [{ type: "text", text: "done" }] });

/** A server that refuses the probe of revision 2026-07-28, since it has no session. */
async function startOldServer(options: LossyOptions) {
  const server = await startLossyServer({ initialize: INIT, answer, ...options });
  const offered = () => server.of("initialize").map(({ params }) => params?.["protocolVersion"]);
  return { server, offered, ...(await loggedInTo(server.url)) };
}

/** A server that accepts only these revisions, and refuses others with HTTP 400. */
function accepting(revisions: readonly string[], refuse: (response: ServerResponse, call: LossyCall) => unknown) {
  return startOldServer({
    initialize: (response, call, session) =>
      revisions.includes(String(call.params?.["protocolVersion"]))
        ? INIT(response, call, session)
        : refuse(response, call),
  });
}

const OLDER = ["2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];

describe("mcp tools and mcp call at a server that refuses the newest revision with HTTP 400", () => {
  it.each<[string, string]>([
    ["without a word", ""],
    ["with a page", "<h1>Bad Request</h1>"],
    [
      "naming the revision",
      JSON.stringify({ jsonrpc: "2.0", id: 0, error: { code: -32_602, message: "2025-11-25?" } }),
    ],
  ])("offer the older ones, newest first: %s", async (_what, body) => {
    const { run, url, offered } = await withUrl(accepting(["2025-03-26"], (r) => r.writeHead(400).end(body)));
    const { code, stderr, stdout } = await run(["mcp", "tools", url, "--json"]);
    expect([code, stderr, stdout]).toEqual([0, "", "[]\n"]);
    expect(offered()).toEqual(["2025-11-25", "2025-06-18", "2025-03-26"]);
  });

  it.each<[string, number, object]>([
    [
      "in its message",
      400,
      {
        code: -32_000,
        message: "Unsupported protocol version: 2025-11-25 (supported versions: 2025-03-26, 2024-11-05)",
      },
    ],
    [
      "in its data",
      400,
      { code: -32_602, message: "no", data: { supported: ["1999-01-01", "2024-11-05", "2025-03-26"] } },
    ],
    ["in its data, with HTTP 200", 200, { code: -32_602, message: "no", data: { supported: ["2025-03-26"] } }],
  ])("offer the newest that the server names: %s", async (_what, status, error) => {
    const { run, url, offered } = await withUrl(
      accepting(["2025-03-26", "2024-11-05"], (response, { id }) =>
        response
          .writeHead(status, { "content-type": "application/json" })
          .end(JSON.stringify({ jsonrpc: "2.0", id, error })),
      ),
    );
    expect((await run(["mcp", "call", url, "x"])).stdout).toBe("done\n");
    expect(offered()).toEqual(["2025-11-25", "2025-03-26"]);
  });

  it.each<[string, object]>([
    ["in its message", { code: -32_000, message: "only 2025-06-18 and 2024-11-05" }],
    ["in its data", { code: -32_000, message: "no", data: { supported: ["2025-06-18", "2024-11-05"] } }],
  ])("offer no third one if the server refuses the one that it names: %s", async (_what, error) => {
    const { run, url, offered } = await withUrl(
      accepting([], (response, { id }) => response.writeHead(400).end(JSON.stringify({ jsonrpc: "2.0", id, error }))),
    );
    expect((await run(["mcp", "tools", url])).code).toBe(6);
    expect(offered()).toEqual(["2025-11-25", "2025-06-18"]);
  });

  it("report the first refusal if the server refuses them all", async () => {
    let count = 0;
    const { run, url, offered } = await withUrl(
      accepting([], (response, { id = 0 }) => sendError(response, id, -32_000, `refusal ${++count}\u001b[2J`, 400)),
    );
    const { code, stderr } = await run(["mcp", "tools", url]);
    expect([code, stderr]).toEqual([6, expect.stringContaining("refusal 1\\e[2J")]);
    expect(offered()).toEqual(["2025-11-25", ...OLDER]);
  });

  it("report the refusal if the server supports no revision of theirs", async () => {
    const error = { code: -32_602, message: "only older", data: { supported: ["1999-01-01"] } };
    const { run, url, offered } = await withUrl(
      accepting([], (response, { id }) => response.writeHead(400).end(JSON.stringify({ jsonrpc: "2.0", id, error }))),
    );
    const { code, stderr } = await run(["mcp", "tools", url]);
    expect([code, stderr]).toEqual([6, expect.stringContaining("only older")]);
    expect(offered()).toEqual(["2025-11-25"]);
  });

  it.each([401, 403, 404, 500])("offer no other revision after HTTP %i", async (status) => {
    const { run, url, offered } = await withUrl(
      accepting([], (r) => r.writeHead(status).end("protocol version 2025-06-18")),
    );
    expect((await run(["mcp", "tools", url, "--retries", "0"])).code).not.toBe(0);
    expect(offered()[0]).toBe("2025-11-25");
    expect(offered()).not.toContain("2025-06-18");
  });

  it("offer no further one after another error", async () => {
    const { run, url, offered } = await withUrl(
      accepting([], (r, { params }) => r.writeHead(params?.["protocolVersion"] === "2025-11-25" ? 400 : 503).end()),
    );
    expect((await run(["mcp", "tools", url, "--retries", "0"])).code).toBe(5);
    expect(new Set(offered())).toEqual(new Set(["2025-11-25", "2025-06-18"]));
  });
});

describe("mcp tools and mcp call at a server that refuses the revision in a header", () => {
  const refused = (response: ServerResponse, id: string | number = 0) =>
    sendError(response, id, -32_000, "Bad Request: Unsupported protocol version (supported versions: 2025-06-18)", 400);

  it.each(["notifications/initialized", "tools/call"])(
    "of %s: they step down, and call the tool once",
    async (method) => {
      const { run, url, server, offered } = await withUrl(
        startOldServer({
          answer: (response, call) =>
            method === call.method && server.calls.at(-1)?.headers["mcp-protocol-version"] !== "2025-06-18"
              ? refused(response, call.id)
              : answer?.(response, call),
          notify: (response, call) =>
            method === call.method && server.calls.at(-1)?.headers["mcp-protocol-version"] !== "2025-06-18"
              ? refused(response)
              : response.writeHead(202).end(),
        }),
      );
      expect((await run(["mcp", "call", url, "x"])).stdout).toBe("done\n");
      expect(offered()).toEqual(["2025-11-25", "2025-06-18"]);
      expect(
        server.of("tools/call").filter(({ headers }) => headers["mcp-protocol-version"] === "2025-06-18"),
      ).toHaveLength(1);
    },
  );

  it("do not send a call again that another error refuses", async () => {
    const { run, url, server } = await withUrl(
      startOldServer({
        answer: (response, call) =>
          call.method === "tools/call"
            ? sendError(response, call.id ?? 0, -32_602, "no such version", 400)
            : answer?.(response, call),
      }),
    );
    expect((await run(["mcp", "call", url, "x"])).code).toBe(6);
    expect(server.of("tools/call")).toHaveLength(1);
  });
});

describe("mcp tools and mcp call at a server that loses the session", () => {
  it.each([
    ["tools", "[]\n"],
    ["call", '{"content":[{"type":"text","text":"done"}]}\n'],
  ])("begin a new one once: mcp %s", async (command, stdout) => {
    const { run, url, server } = await withUrl(
      startOldServer({
        answer: (response, call) =>
          call.session === "session-1" && call.method?.startsWith("tools/")
            ? response.writeHead(404).end()
            : answer?.(response, call),
      }),
    );
    const args = command === "call" ? ["x"] : [];
    const result = await run(["mcp", command, url, ...args, "--jq", ".", "--json"]);
    expect([result.code, JSON.parse(result.stdout)]).toEqual([0, JSON.parse(stdout)]);
    expect(server.of("initialize")).toHaveLength(2);
  });

  it("do not send a call again to a server without sessions", async () => {
    const { run, url, server } = await withUrl(
      startOldServer({
        initialize: (response, call) => INIT(response, call, ""),
        lost: (response, call) => {
          if (call.id === undefined) return response.writeHead(202).end();
          return call.method === "tools/call" ? response.writeHead(404).end() : answer?.(response, call);
        },
      }),
    );
    expect((await run(["mcp", "call", url, "x"])).code).toBe(6);
    expect(server.of("tools/call")).toHaveLength(1);
  });

  it("report a server that loses it for ever", async () => {
    const { run, url, server } = await withUrl(
      startOldServer({
        answer: (response, call) =>
          call.method === "tools/call" ? response.writeHead(404).end() : answer?.(response, call),
      }),
    );
    const { code, stderr } = await run(["mcp", "call", url, "x"]);
    expect([code, stderr]).toEqual([6, expect.stringContaining("HTTP 404")]);
    expect([server.of("initialize").length, server.of("tools/call").length]).toEqual([2, 2]);
  });
});

it("discover reads metadata from a server that refuses the revision in a header", async () => {
  const server = await startServer((response, { url, headers }) => {
    if (headers["mcp-protocol-version"] !== undefined)
      return response.writeHead(400).end("Unsupported protocol version");
    if (url.includes("oauth-protected-resource")) {
      const document = { resource: `${server.origin}/mcp`, authorization_servers: [server.origin] };
      return response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(document));
    }
    return response.writeHead(url === "/mcp" ? 401 : 404, { "www-authenticate": "Bearer" }).end();
  });
  const { run } = await loggedInTo(`${server.origin}/mcp`);
  const { stdout } = await run(["discover", `${server.origin}/mcp`, "--json"]);
  expect(stdout).toContain("it describes this server");
});

async function withUrl(started: ReturnType<typeof startOldServer>) {
  const made = await started;
  return { ...made, url: made.server.url };
}
