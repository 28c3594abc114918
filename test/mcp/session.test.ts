import { getEventListeners } from "node:events";
import { SUPPORTED_PROTOCOL_VERSIONS } from "@modelcontextprotocol/client";
import { expect, it } from "vitest";
import { openMcp, REVISIONS } from "../../src/mcp/session.js";
import { sendJson } from "../helpers/server.js";
import { heldError } from "../helpers/told.js";
import { type PlainAnswer, sendError, sendResult, startPlainServer } from "./plain-server.js";

const { signal } = new AbortController();
const TOOL = { name: "build", inputSchema: { type: "object" } };

/** A session with a server of the revisions with `initialize`. */
async function opened(answer: PlainAnswer) {
  const server = await startPlainServer(answer);
  const session = await openMcp(server.url, { fetch, name: "test", version: "1", signal, timeoutMs: 5000 });
  return { ...session, server };
}

/** A server of the revision without sessions, which answers `server/discover` itself. */
function sessionless(answer: (request: { method: string; headers: Headers }) => object) {
  const requests: { method: string; headers: Headers; meta: Record<string, unknown> }[] = [];
  const fetch: typeof globalThis.fetch = async (_url, init) => {
    const { id, method, params } = JSON.parse(String(init?.body));
    const request = { method, headers: new Headers(init?.headers), meta: params._meta };
    requests.push(request);
    const discovered = { supportedVersions: ["2026-07-28"], capabilities: { tools: {} } };
    const outcome = method === "server/discover" ? { result: discovered } : answer(request);
    return Response.json({ jsonrpc: "2.0", id, ...outcome });
  };
  const open = () => openMcp("https://mcp.example/mcp", { fetch, name: "test", version: "1", signal });
  return { open, requests };
}

it("knows the revisions that the official client knows", () => {
  expect(REVISIONS).toEqual(SUPPORTED_PROTOCOL_VERSIONS);
});

it("reads all pages of a list", async () => {
  const { tools, server } = await opened(({ id, params }, response) => {
    const page = Number(params["cursor"] ?? 0);
    sendResult(response, id, {
      tools: [{ ...TOOL, name: `tool-${page}` }],
      ...(page < 2 && { nextCursor: `${page + 1}` }),
    });
  });
  expect((await tools(signal)).map(({ name }) => name)).toEqual(["tool-0", "tool-1", "tool-2"]);
  await server.close();
});

it("ends at a page that names itself as the next one", async () => {
  const { tools, server } = await opened(({ id }, response) => {
    sendResult(response, id, { tools: [TOOL], nextCursor: "1" });
  });
  expect(await tools(signal)).toHaveLength(2);
  await server.close();
});

it("ends at a list of tools that has no end", async () => {
  let page = 0;
  const { tools, server } = await opened(({ id }, response) => {
    sendResult(response, id, { tools: [TOOL], nextCursor: `${++page}` });
  });
  await expect(tools(signal)).rejects.toThrow("more than 64 pages");
  await server.close();
});

it.each<[string, object]>([
  ["a tool without a name", { tools: [{ inputSchema: {} }] }],
  ["no list", { tools: "none" }],
])("refuses %s", async (_what, result) => {
  const { tools, server } = await opened(({ id }, response) => sendResult(response, id, result));
  await expect(tools(signal)).rejects.toThrow("malformed");
  await server.close();
});

it("answers what the server asks before it responds", async () => {
  const { call, server } = await opened(({ id }, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write('data: {"jsonrpc":"2.0","id":"p","method":"ping"}\n\n');
    response.write('data: {"jsonrpc":"2.0","id":"r","method":"roots/list"}\r\n\r\n');
    response.end(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result: { content: [] } })}\r\r`);
  });
  await expect(call("build", {}, signal)).resolves.toEqual({ content: [] });
  await expect
    .poll(() =>
      server.requests.map(({ body }) => JSON.parse(body || "{}")).filter(({ method }) => method === undefined),
    )
    .toEqual([
      { jsonrpc: "2.0", id: "p", result: {} },
      { jsonrpc: "2.0", id: "r", error: { code: -32_601, message: "Method not found" } },
    ]);
  await server.close();
});

it("reports a stream that ends before the response", async () => {
  const { call, server } = await opened((_call, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).end(": nothing\n\n");
  });
  expect(await heldError(call("build", {}, signal))).toMatchObject({ code: "connection_reset" });
  await server.close();
});

it.each<[string, unknown, string]>([
  ["a message that is no object", 5, "a message of the MCP server is not a JSON object"],
  ["a result that is no object", { result: "done" }, "the result of tools/call is not a JSON object"],
  ["neither result nor error", {}, "the result of tools/call is not a JSON object"],
])("refuses %s", async (_what, answer, message) => {
  const { call, server } = await opened(({ id }, response) => {
    sendJson(response, typeof answer === "object" ? { jsonrpc: "2.0", id, ...answer } : answer);
  });
  await expect(call("build", {}, signal)).rejects.toThrow(message);
  await server.close();
});

it("reads past a response to another request", async () => {
  const { call, server } = await opened(({ id }, response) => {
    const send = (message: object) => response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
    response.writeHead(200, { "content-type": "text/event-stream" });
    send({ id: `${id}-other`, result: { content: ["of another"] } });
    send({ id, result: { content: [] } });
    response.end();
  });
  expect(await call("build", {}, signal)).toEqual({ content: [] });
  await server.close();
});

const cancelled = ({ requests }: { requests: { body: string }[] }) =>
  requests
    .map(({ body }) => JSON.parse(body || "{}"))
    .filter(({ method }) => method === "notifications/cancelled")
    .map(({ params }) => params);

it("takes a request back whose caller has gone, and that alone", async () => {
  const { call, server } = await opened(() => undefined);
  const leaving = new AbortController();
  const called = call("build", {}, leaving.signal);
  await expect.poll(() => server.requests.filter(({ body }) => body.includes("tools/call"))).toHaveLength(1);
  leaving.abort(new Error("the caller has gone"));
  await expect(called).rejects.toThrow("the caller has gone");
  const { id } = JSON.parse(server.requests.find(({ body }) => body.includes("tools/call"))?.body ?? "{}");
  await expect.poll(() => cancelled(server)).toEqual([{ requestId: id, reason: "cancelled" }]);
  await server.close();
});

it("leaves no listener at the signal of a caller", async () => {
  const { call, tools, server } = await opened(({ id, method }, response) =>
    sendResult(response, id, method === "tools/list" ? { tools: [] } : { content: [] }),
  );
  const { signal: own } = new AbortController();
  await call("build", {}, own);
  await tools(own);
  expect(getEventListeners(own, "abort")).toEqual([]);
  await server.close();
});

it("takes no handshake back", async () => {
  const server = await startPlainServer(() => undefined, { handshake: "none" });
  const leaving = new AbortController();
  const options = { fetch, name: "test", version: "1", signal: leaving.signal };
  const opening = openMcp(server.url, { ...options, timeoutMs: 60_000 });
  await expect.poll(() => server.requests.length).toBeGreaterThan(0);
  leaving.abort(new Error("the caller has gone"));
  await expect(opening).rejects.toThrow("the caller has gone");
  // A notification would arrive before this.
  await fetch(server.url, { method: "GET" }).catch(() => undefined);
  expect(cancelled(server)).toEqual([]);
  await server.close();
});

it("describes itself in each request to a server without sessions", async () => {
  const { open, requests } = sessionless(() => ({ result: { content: [], resultType: "complete" } }));
  const session = await open();
  expect(await session.call("büild", {}, signal)).toEqual({ content: [] });
  expect(requests.map(({ method }) => method)).toEqual(["server/discover", "tools/call"]);
  const { headers, meta } = requests[1] ?? {};
  expect([headers?.get("mcp-method"), headers?.get("mcp-name")]).toEqual(["tools/call", "=?base64?YsO8aWxk?="]);
  expect(headers?.get("mcp-protocol-version")).toBe("2026-07-28");
  expect(meta).toMatchObject({ "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" } });
});

it("asks once whether a server has no sessions, however many revisions it refuses", async () => {
  const oldest = REVISIONS.at(-1);
  const requested: string[] = [];
  const fetch: typeof globalThis.fetch = async (_url, init) => {
    const { id, method, params } = JSON.parse(String(init?.body));
    const error = (code: number, message: string, status: number) =>
      Response.json({ jsonrpc: "2.0", id, error: { code, message } }, { status });
    requested.push(method === "initialize" ? params.protocolVersion : method);
    if (method === "server/discover") return error(-32_601, "Method not found", 200);
    if (id === undefined) return new Response(null, { status: 202 });
    if (params.protocolVersion !== oldest) return error(-32_602, "Unsupported protocol version", 400);
    return Response.json({ jsonrpc: "2.0", id, result: { protocolVersion: oldest, capabilities: {}, serverInfo: {} } });
  };
  await openMcp("https://mcp.example/mcp", { fetch, name: "test", version: "1", signal });
  expect(requested).toEqual(["server/discover", ...REVISIONS, "notifications/initialized"]);
});

it("repeats arguments in headers where the server needs them, and leaves out tools that mark them wrongly", async () => {
  const marked = (mark: string) => ({
    type: "object",
    properties: { region: { type: "string", "x-mcp-header": mark } },
  });
  const { open, requests } = sessionless(({ method, headers }) => {
    if (method === "tools/list") {
      return {
        result: {
          tools: [
            { name: "build", inputSchema: marked("Region") },
            { name: "bad", inputSchema: marked("bad header\n") },
          ],
        },
      };
    }
    if (headers.get("mcp-param-region") === "eu") return { result: { content: [] } };
    return { error: { code: -32_020, message: "header mismatch" } };
  });
  const session = await open();
  expect((await session.tools(signal)).map(({ name }) => name)).toEqual(["build"]);
  expect(await session.call("build", { region: "eu" }, signal)).toEqual({ content: [] });
  expect(requests.filter(({ method }) => method === "tools/call")).toHaveLength(2);
});

it("calls a tool once at a server without sessions that refuses it for another reason", async () => {
  const { open, requests } = sessionless(() => ({ error: { code: -32_602, message: "no such tool" } }));
  await expect((await open()).call("build", {}, signal)).rejects.toThrow("no such tool");
  expect(requests.map(({ method }) => method)).toEqual(["server/discover", "tools/call"]);
});

it("refuses a result that needs a dialogue", async () => {
  const { open } = sessionless(() => ({ result: { resultType: "input_required", inputRequests: {} } }));
  await expect((await open()).call("build", {}, signal)).rejects.toThrow("only after a dialogue");
});

it("sends nothing to another origin", async () => {
  const other = await startPlainServer(({ id }, response) => sendError(response, id, 0, "reached"));
  const { call, server } = await opened((_call, response) => {
    response.writeHead(307, { location: other.url }).end();
  });
  await expect(call("build", { secret: 1 }, signal)).rejects.toThrow("HTTP 307");
  expect(other.requests).toEqual([]);
  await Promise.all([server.close(), other.close()]);
});

it("follows redirects of its own origin, and gives up on those without an end", async () => {
  const { call, server } = await opened((_call, response) => {
    response.writeHead(308, { location: "/mcp" }).end();
  });
  await expect(call("build", {}, signal)).rejects.toThrow("HTTP 308");
  expect(server.requests.filter(({ body }) => body.includes("tools/call"))).toHaveLength(6);
  await server.close();
});

it("reads no error to its end that is too long", async () => {
  const { call, server } = await opened((_call, response) => {
    response.writeHead(500, { "content-type": "text/plain" }).end("x".repeat(300_000));
  });
  expect(await heldError(call("build", {}, signal))).toMatchObject({ code: "body_too_large" });
  await server.close();
});

it("takes a session only from the response to initialize", async () => {
  const { call, server } = await opened(({ id }, response) => {
    response.setHeader("mcp-session-id", "session-of-another");
    sendResult(response, id, { content: [] });
  });
  for (const _ of [1, 2]) await call("build", {}, signal);
  expect(server.requests.flatMap(({ headers }) => headers["mcp-session-id"] ?? [])).toEqual([]);
  await server.close();
});

it("takes no newer revision than it has offered", async () => {
  const fetch: typeof globalThis.fetch = async (_url, init) => {
    const { id, method, params } = JSON.parse(String(init?.body));
    const newest = REVISIONS[0];
    if (method !== "initialize")
      return Response.json({ jsonrpc: "2.0", id, error: { code: -32_601, message: "none" } });
    if (params.protocolVersion === newest) return new Response("unsupported protocol version", { status: 400 });
    return Response.json({ jsonrpc: "2.0", id, result: { protocolVersion: newest, capabilities: {} } });
  };
  const opening = openMcp("https://mcp.example/mcp", { fetch, name: "test", version: "1", signal });
  await expect(opening).rejects.toThrow(`version is not supported: ${REVISIONS[0]}`);
});

it("sends nothing more into a session that the server has lost", async () => {
  const answers: (AbortSignal | null | undefined)[] = [];
  let [sessions, calls] = [0, 0];
  const fetch: typeof globalThis.fetch = async (_url, init) => {
    const { id, method } = JSON.parse(String(init?.body));
    const result = (value: object, headers = {}) => Response.json({ jsonrpc: "2.0", id, result: value }, { headers });
    if (method === undefined) {
      answers.push(init?.signal);
      return new Promise<Response>((_, reject) => {
        init?.signal?.addEventListener("abort", () => reject(init.signal?.reason));
      });
    }
    if (method === "initialize") {
      return result({ protocolVersion: REVISIONS[0] }, { "mcp-session-id": `session-${++sessions}` });
    }
    if (method !== "tools/call") return new Response(null, { status: method === "server/discover" ? 404 : 202 });
    if (++calls === 2) return new Response(null, { status: 404 });
    const ping = JSON.stringify({ jsonrpc: "2.0", id: "p", method: "ping" });
    const answer = JSON.stringify({ jsonrpc: "2.0", id, result: { content: [] } });
    return new Response(`data: ${ping}\n\ndata: ${answer}\n\n`, { headers: { "content-type": "text/event-stream" } });
  };
  const session = await openMcp("https://mcp.example/mcp", { fetch, name: "test", version: "1", signal });
  await session.call("build", {}, signal);
  await session.call("build", {}, signal);
  // Neither session said what it can do.
  expect(await session.tools(signal)).toEqual([]);
  expect([sessions, answers.map((one) => one?.aborted)]).toEqual([2, [true, false]]);
  await session.close();
  expect(answers.map((one) => one?.aborted)).toEqual([true, true]);
});

it("cancels a call at the server when its signal fires", async () => {
  const abort = new AbortController();
  const { call, server } = await opened(() => abort.abort(new Error("enough")));
  await expect(call("build", {}, abort.signal)).rejects.toThrow("enough");
  await expect.poll(() => server.requests.at(-1)?.body).toContain("notifications/cancelled");
  await server.close();
});

it("answers no request of a server without sessions", async () => {
  const methods: string[] = [];
  const fetch: typeof globalThis.fetch = async (_url, init) => {
    const { id, method = "an answer" } = JSON.parse(String(init?.body));
    methods.push(method);
    const discovered = { supportedVersions: ["2026-07-28"], capabilities: { tools: {} } };
    if (method === "server/discover") return Response.json({ jsonrpc: "2.0", id, result: discovered });
    const ping = JSON.stringify({ jsonrpc: "2.0", id: "p", method: "ping" });
    const result = JSON.stringify({ jsonrpc: "2.0", id, result: { content: [] } });
    return new Response(`data: ${ping}\n\ndata: ${result}\n\n`, { headers: { "content-type": "text/event-stream" } });
  };
  const session = await openMcp("https://mcp.example/mcp", { fetch, name: "test", version: "1", signal });
  await session.call("build", {}, signal);
  expect(methods).toEqual(["server/discover", "tools/call"]);
});
