import { getEventListeners } from "node:events";
import type { ServerResponse } from "node:http";
import { SUPPORTED_PROTOCOL_VERSIONS } from "@modelcontextprotocol/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import { systemClock } from "../../src/http/deadline.js";
import { openMcp, REVISIONS } from "../../src/mcp/session.js";
import { pendingError } from "../helpers/captured.js";
import { sendJson, startServer } from "../helpers/server.js";
import { startOfficialServer } from "./official-server.js";
import { type PlainAnswer, sendResult, startPlainServer } from "./plain-server.js";

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
  const { tools } = await opened(({ id, params }, response) => {
    const page = Number(params["cursor"] ?? 0);
    sendResult(response, id, {
      tools: [{ ...TOOL, name: `tool-${page}` }],
      ...(page < 2 && { nextCursor: `${page + 1}` }),
    });
  });
  expect((await tools(signal)).map(({ name }) => name)).toEqual(["tool-0", "tool-1", "tool-2"]);
});

it("ends at a page that names itself as the next one", async () => {
  const { tools } = await opened(({ id }, response) => {
    sendResult(response, id, { tools: [TOOL], nextCursor: "1" });
  });
  expect(await tools(signal)).toHaveLength(2);
});

it("ends at a list of tools that has no end", async () => {
  let page = 0;
  const { tools } = await opened(({ id }, response) => {
    sendResult(response, id, { tools: [TOOL], nextCursor: `${++page}` });
  });
  expect(await pendingError(tools(signal))).toMatchObject({ code: "mcp_failed", class: "remote" });
  expect(page).toBe(64);
});

it.each<[string, object]>([
  ["a tool without a name", { tools: [{ inputSchema: {} }] }],
  ["a tool without a schema", { tools: [{ name: "build" }] }],
  ["a tool that is a text", { tools: ["build"] }],
  ["no list", { tools: "none" }],
])("refuses %s", async (_what, result) => {
  const { tools } = await opened(({ id }, response) => sendResult(response, id, result));
  await expect(tools(signal)).rejects.toThrow("malformed");
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
});

it("reports a stream that ends before the response", async () => {
  const { call } = await opened((_call, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).end(": nothing\n\n");
  });
  expect(await pendingError(call("build", {}, signal))).toMatchObject({ code: "connection_reset" });
});

it.each<[string, unknown, string]>([
  ["a message that is no object", 5, "a message of the MCP server is not a JSON object"],
  ["a result that is no object", { result: "done" }, "the result of tools/call is not a JSON object"],
  ["neither result nor error", {}, "the result of tools/call is not a JSON object"],
  ["content that is no list", { result: { content: "done" } }, "the result of the tool is malformed"],
  ["content that is a list of texts", { result: { content: ["done"] } }, "the result of the tool is malformed"],
  ["an error without an id", { id: undefined, error: { code: 1, message: "not so" } }, "not so"],
  ["an error whose id is null", { id: null, error: { code: 1, message: 7 } }, "7"],
])("refuses %s", async (_what, answer, message) => {
  const { call } = await opened(({ id }, response) => {
    sendJson(response, typeof answer === "object" ? { jsonrpc: "2.0", id, ...answer } : answer);
  });
  await expect(call("build", {}, signal)).rejects.toThrow(message);
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
});

it("leaves no listener at the signal of a caller", async () => {
  const { call, tools } = await opened(({ id, method }, response) =>
    sendResult(response, id, method === "tools/list" ? { tools: [] } : { content: [] }),
  );
  const { signal: own } = new AbortController();
  await call("build", {}, own);
  await tools(own);
  expect(getEventListeners(own, "abort")).toEqual([]);
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
});

it("describes itself in each request to a server without sessions", async () => {
  const { open, requests } = sessionless(() => ({ result: { content: [], resultType: "complete" } }));
  const session = await open();
  expect(await session.call("büild", {}, signal)).toEqual({ content: [] });
  expect(requests.map(({ method }) => method)).toEqual(["server/discover", "tools/call"]);
  const { headers, meta } = requests[1] ?? {};
  expect([headers?.get("mcp-method"), headers?.get("mcp-name")]).toEqual(["tools/call", "=?base64?YsO8aWxk?="]);
  expect(headers?.get("mcp-protocol-version")).toBe("2026-07-28");
  expect(meta).toEqual({
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": { elicitation: { url: {} } },
    progressToken: 0,
  });
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
  expect(await pendingError((await open()).call("build", {}, signal))).toMatchObject({
    code: "mcp_failed",
    class: "remote",
  });
});

it("takes a session only from the response to initialize", async () => {
  const { call, server } = await opened(({ id }, response) => {
    response.setHeader("mcp-session-id", "session-of-another");
    sendResult(response, id, { content: [] });
  });
  for (const _ of [1, 2]) await call("build", {}, signal);
  expect(server.requests.flatMap(({ headers }) => headers["mcp-session-id"] ?? [])).toEqual([]);
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

it("begins a new session after a 403 to another token than it began with, and after no other", async () => {
  let [token, sessions] = ["one", 0];
  let scope = "";
  const fetch: typeof globalThis.fetch = async (_url, init) => {
    const { id, method } = JSON.parse(String(init?.body));
    const result = (value: object, headers = {}) => Response.json({ jsonrpc: "2.0", id, result: value }, { headers });
    if (method === "initialize") {
      sessions++;
      return result({ protocolVersion: REVISIONS[0] }, { "mcp-session-id": token });
    }
    if (method !== "tools/call") return new Response(null, { status: method === "server/discover" ? 404 : 202 });
    const isOwn = new Headers(init?.headers).get("mcp-session-id") === token;
    const headers = { "www-authenticate": scope };
    return isOwn && scope === "" ? result({ content: [] }) : new Response(null, { status: 403, headers });
  };
  const options = { fetch, token: () => token, name: "test", version: "1", signal };
  const session = await openMcp("https://mcp.example/mcp", options);
  token = "two";
  await session.call("build", {}, signal);
  expect(sessions).toBe(2);
  scope = 'Bearer error="insufficient_scope"';
  for (const next of ["two", "three"]) {
    token = next;
    await expect(session.call("build", {}, signal)).rejects.toThrow("HTTP 403");
  }
  expect(sessions).toBe(2);
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

/** A server of the revisions with `initialize` in this process, and what it received. */
function stateful(
  answer: (message: { id?: number; method: string }, init: RequestInit) => Response | Promise<Response>,
) {
  const requests: { id?: number; method: string; params?: object; signal: RequestInit["signal"]; headers: Headers }[] =
    [];
  const fetch: typeof globalThis.fetch = async (_url, init = {}) => {
    const message = JSON.parse(String(init.body));
    requests.push({ ...message, signal: init.signal, headers: new Headers(init.headers) });
    return answer(message, init);
  };
  const open = (options = {}) =>
    openMcp("https://mcp.example/mcp", { fetch, name: "test", version: "1", signal, ...options });
  return { open, requests };
}

const resultOf = (id: unknown, result: object) => Response.json({ jsonrpc: "2.0", id, result });
const INITIALIZED = { protocolVersion: REVISIONS[1], capabilities: { tools: {} }, serverInfo: {} };

/** Answers all of the handshake but the question for the revision without sessions. */
function handshake({ id, method }: { id?: number; method: string }): Response | undefined {
  if (method === "server/discover") return new Response(null, { status: 404 });
  if (method === "initialize") return resultOf(id, INITIALIZED);
  return method === "notifications/initialized" ? new Response(null, { status: 202 }) : undefined;
}

/** Rejects when the request is aborted. */
const silence = ({ signal: aborted }: RequestInit) =>
  new Promise<Response>((_, reject) => aborted?.addEventListener("abort", () => reject(aborted.reason)));

it("says in the handshake who it is, and in which revision it speaks from then on", async () => {
  const { open, requests } = stateful((message) => handshake(message) ?? resultOf(message.id, { structured: 1 }));
  const session = await open();
  expect(await session.call("build", {}, signal)).toEqual({ content: [], structured: 1 });
  expect(requests.map(({ id, method }) => [id, method])).toEqual([
    [0, "server/discover"],
    [1, "initialize"],
    [undefined, "notifications/initialized"],
    [2, "tools/call"],
  ]);
  expect(requests[1]?.params).toEqual({
    protocolVersion: REVISIONS[0],
    capabilities: { elicitation: { url: {} } },
    clientInfo: { name: "test", version: "1" },
  });
  const revisions = requests.map(({ headers }) => headers.get("mcp-protocol-version"));
  expect(revisions).toEqual(["2026-07-28", null, REVISIONS[1], REVISIONS[1]]);
  // What is left of a response is not read.
  expect(requests.filter(({ id }) => id !== undefined).map((one) => one.signal?.aborted)).toEqual([true, true, true]);
});

it.each<[string, unknown]>([
  ["no text", 5],
  ["none that is known", "1999-01-01"],
])("takes no revision that is %s", async (_what, protocolVersion) => {
  const { open } = stateful((message) =>
    message.method === "initialize" ? resultOf(message.id, { protocolVersion }) : new Response(null, { status: 404 }),
  );
  await expect(open()).rejects.toThrow(`Server's protocol version is not supported: ${protocolVersion}`);
});

it.each<[string, () => Response]>([
  ["HTTP 400", () => new Response(null, { status: 400 })],
  ["HTTP 405", () => new Response(null, { status: 405 })],
  ["HTTP 499", () => new Response(null, { status: 499 })],
  ["an error", () => Response.json({ jsonrpc: "2.0", id: 0, error: { code: -32_601, message: "no" } })],
  ["no list of revisions", () => resultOf(0, { supportedVersions: "2026-07-28" })],
  ["other revisions", () => resultOf(0, { supportedVersions: ["2027-01-01"] })],
])("begins a session at a server that answers the question for another revision by %s", async (_what, answer) => {
  const { open, requests } = stateful((message) =>
    message.method === "server/discover" ? answer() : (handshake(message) ?? resultOf(message.id, { tools: [TOOL] })),
  );
  expect(await (await open()).tools(signal)).toEqual([TOOL]);
  expect(requests.map(({ method }) => method)).toContain("initialize");
});

it.each([401, 403, 500, 503])("begins none at a server that answers the question by HTTP %i", async (status) => {
  const { open, requests } = stateful(() => new Response(null, { status }));
  await expect(open()).rejects.toThrow(`HTTP ${status}`);
  expect(requests).toHaveLength(1);
});

it("begins none at a server that cannot be reached, or says too much", async () => {
  for (const answer of [() => Promise.reject(new Error("no network")), () => Response.json("what?")]) {
    const { open, requests } = stateful(answer);
    await expect(open()).rejects.toThrow(/no network|not a JSON object/);
    expect(requests).toHaveLength(1);
  }
});

it("takes what a server without sessions can do for nothing where it is no object", async () => {
  const { open } = stateful(({ id }) => resultOf(id, { supportedVersions: ["2026-07-28"], capabilities: "all" }));
  expect(await (await open()).tools(signal)).toEqual([]);
});

it("ends a list at a place that is no text, and keeps tools with odd marks at a server with sessions", async () => {
  const odd = { name: "odd", inputSchema: { properties: { a: { type: "string", "x-mcp-header": "a b" } } } };
  const { open } = stateful((message) => handshake(message) ?? resultOf(message.id, { tools: [odd], nextCursor: 2 }));
  expect(await (await open()).tools(signal)).toEqual([odd]);
});

it.each<[string, string | null, string]>([
  ["a page", "<p>", "text/html"],
  ["events without a body", null, "text/event-stream"],
])("reports a server that answers with %s", async (_what, body, type) => {
  const { open } = stateful(
    (message) => handshake(message) ?? new Response(body, { headers: { "content-type": type } }),
  );
  expect(await pendingError((await open()).call("build", {}, signal))).toMatchObject({
    code: "mcp_failed",
    class: "remote",
  });
});

it("finds its response among several, and reports that there is none", async () => {
  const note = { jsonrpc: "2.0", method: "notifications/message", params: {} };
  const { open } = stateful(
    (message) =>
      handshake(message) ??
      Response.json([note, ...(message.id === 2 ? [{ jsonrpc: "2.0", id: 2, result: { content: [] } }] : [])]),
  );
  const session = await open();
  expect(await session.call("build", {}, signal)).toEqual({ content: [] });
  expect(await pendingError(session.call("build", {}, signal))).toMatchObject({
    code: "connection_reset",
    class: "unavailable",
  });
});

it("repeats arguments in headers also where the server needs them by an HTTP error, and not in a session", async () => {
  const error = { code: -32_020, message: "header mismatch" };
  const refuse = (id: unknown) => Response.json({ jsonrpc: "2.0", id, error }, { status: 400 });
  const inputSchema = { properties: { region: { type: "string", "x-mcp-header": "Region" } } };
  const answer = ({ id, method }: { id?: number; method: string }, { headers }: RequestInit) => {
    if (method === "tools/list") return resultOf(id, { tools: [{ name: "build", inputSchema }] });
    return new Headers(headers).has("mcp-param-region") ? resultOf(id, { content: [] }) : refuse(id);
  };
  const bare = stateful((message, init) =>
    message.method === "server/discover"
      ? resultOf(0, { supportedVersions: ["2026-07-28"], capabilities: { tools: {} } })
      : answer(message, init),
  );
  expect(await (await bare.open()).call("build", { region: "eu" }, signal)).toEqual({ content: [] });
  const { open, requests } = stateful((message, init) => handshake(message) ?? answer(message, init));
  await expect((await open()).call("build", { region: "eu" }, signal)).rejects.toThrow("header mismatch");
  expect(requests.filter(({ method }) => method === "tools/call")).toHaveLength(1);
});

describe("the time for a response", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  it("ends a request, and takes it back", async () => {
    const { open, requests } = stateful((message, init) => handshake(message) ?? silence(init));
    const session = await open({ timeoutMs: 5000 });
    const called = pendingError(session.call("build", {}, signal));
    await vi.advanceTimersByTimeAsync(5000);
    expect(await called).toMatchObject({ message: "no response to tools/call in 5000 ms" });
    expect(requests.at(-1)).toMatchObject({
      method: "notifications/cancelled",
      params: { requestId: 2, reason: "cancelled" },
    });
    expect(vi.getTimerCount()).toBe(0);
  });

  it("is a minute by default", async () => {
    const { open } = stateful((message, init) => handshake(message) ?? silence(init));
    const listed = pendingError((await open()).tools(signal));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await listed).toMatchObject({ message: "no response to tools/list in 60000 ms" });
  });

  it("takes no initialize back", async () => {
    const { open, requests } = stateful((message, init) =>
      message.method === "initialize" ? silence(init) : new Response(null, { status: 404 }),
    );
    const opening = pendingError(open({ timeoutMs: 5000 }));
    await vi.advanceTimersByTimeAsync(5000);
    expect(await opening).toMatchObject({ message: "no response to initialize in 5000 ms" });
    expect(requests.map(({ method }) => method)).toEqual(["server/discover", "initialize"]);
  });

  it("begins again with each progress", async () => {
    let stream: ReadableStreamDefaultController | undefined;
    const body = new ReadableStream({
      start(controller) {
        stream = controller;
      },
    });
    const { open } = stateful(
      (message) => handshake(message) ?? new Response(body, { headers: { "content-type": "text/event-stream" } }),
    );
    const session = await open({ timeoutMs: 5000 });
    const called = session.call("build", {}, signal);
    const send = (message: object) =>
      stream?.enqueue(new TextEncoder().encode(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`));
    for (let progress = 1; progress <= 3; progress++) {
      await vi.advanceTimersByTimeAsync(4000);
      send({ method: "notifications/progress", params: { progressToken: 0, progress } });
      await vi.advanceTimersByTimeAsync(0);
    }
    send({ id: 2, result: { content: [] } });
    expect(await called).toEqual({ content: [] });
    expect(vi.getTimerCount()).toBe(0);
  });
});

const EVENTS = { "content-type": "text/event-stream" };
const PLACE = "id: 1\nretry: 1\ndata:\n\n";

const open = (url: string, send: typeof fetch = fetch) =>
  openMcp(url, { fetch: send, name: "test", version: "1", signal, timeoutMs: 5000 });

/** The result of a call as an event. */
const resultEvent = (id: unknown) => `data: ${JSON.stringify({ jsonrpc: "2.0", id, result: { content: [] } })}\n\n`;

/** A server that answers a call with one stream, and each resumption with another. */
async function startStreams(
  call: (id: unknown) => string,
  resume: (response: ServerResponse, id: unknown) => void,
  send?: typeof fetch,
) {
  let called: unknown;
  const server = await startServer((response, { method, body }) => {
    if (method === "GET") return resume(response, called);
    const { id, method: requested, params } = JSON.parse(body);
    if (id === undefined) return response.writeHead(202).end();
    if (requested !== "tools/call") {
      return sendResult(response, id, { protocolVersion: params.protocolVersion, capabilities: {}, serverInfo: {} });
    }
    called = id;
    return response.writeHead(200, EVENTS).end(call(id));
  });
  const session = await open(`${server.origin}/mcp`, send);
  const places = () =>
    server.requests.flatMap(({ method, headers }) => (method === "GET" ? (headers["last-event-id"] ?? "none") : []));
  return { ...server, places, call: () => session.call("build", {}, signal) };
}

afterEach(() => void vi.restoreAllMocks());

it("resumes a stream of the official server that breaks before the response, and calls the tool once", async () => {
  const server = await startOfficialServer(() => async (_request, _response, next) => void (await next()));
  const places: (string | null)[] = [];
  const session = await open(server.url, async (url, init) => {
    const place = new Headers(init?.headers).get("last-event-id");
    if (place !== null) places.push(place);
    return fetch(url, init);
  });
  const counted = session.call("count", {}, signal);
  await expect.poll(() => server.state.held.length).toBe(1);
  server.breakOff();
  await expect.poll(() => places.length).toBe(1);
  server.release();
  expect(await counted).toEqual({ content: [{ type: "text", text: "counted" }] });
  expect([server.state.calls, places]).toEqual([1, [expect.stringMatching(/^\d+$/)]]);
  await session.close();
  await server.stop();
});

it("resumes at the last place, and gives up after two attempts", async () => {
  let place = 1;
  const server = await startStreams(
    () => PLACE,
    (response) => response.writeHead(200, EVENTS).end(`id: ${++place}\ndata:\n\n`),
  );
  expect(await pendingError(server.call())).toMatchObject({ code: "connection_reset" });
  expect(server.places()).toEqual(["1", "2"]);
});

it("resumes a stream whose connection our own fetch reports as broken", async () => {
  const broken = new AgentAuthError("connection_reset", "the connection broke", { class: "unavailable" });
  const { call, places, close } = await startStreams(
    () => PLACE,
    (response, id) => response.writeHead(200, EVENTS).end(resultEvent(id)),
    async (url, init) => {
      const response = await fetch(url, init);
      if (!String(init?.body).includes("tools/call")) return response;
      const [text, { headers }] = [await response.text(), response];
      const parts = [() => new TextEncoder().encode(text)];
      const pull = (controller: ReadableStreamDefaultController) => {
        const part = parts.shift();
        return part ? controller.enqueue(part()) : controller.error(broken);
      };
      return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), { headers });
    },
  );
  expect(await call()).toEqual({ content: [] });
  expect(places()).toEqual(["1"]);
  await close();
});

it("reports a server that refuses to resume", async () => {
  const server = await startStreams(
    () => PLACE,
    (response) => response.writeHead(405).end(),
  );
  await expect(server.call()).rejects.toThrow("HTTP 405");
});

it("waits as long as the server asks, and at most ten seconds", async () => {
  const sleep = vi.spyOn(systemClock, "sleep").mockResolvedValue(undefined);
  const server = await startStreams(
    () => "id: 1\nretry: 7000\ndata:\n\n",
    (response, id) => {
      const isFirst = server.places().length === 1;
      response.writeHead(200, EVENTS).end(isFirst ? "retry: 3600000\ndata:\n\n" : resultEvent(id));
    },
  );
  expect(await server.call()).toEqual({ content: [] });
  // What an earlier file of this worker left behind may sleep by the same clock.
  const waits = sleep.mock.calls.map(([milliseconds]) => milliseconds).filter((milliseconds) => milliseconds >= 7000);
  expect(waits).toEqual([7000, 10_000]);
});

it.each([
  [
    "an error",
    (id: unknown) => `data: ${JSON.stringify({ jsonrpc: "2.0", id, error: { code: 1, message: "no" } })}\n\n`,
    /^no$/,
  ],
  ["what is no JSON", () => "data: {\n\n", /JSON/],
  [
    "an event that is too long",
    () => `data: ${"x".repeat(17 * 1024 * 1024)}\n\n`,
    /^an event of the MCP server is longer than 16777216 bytes$/,
  ],
])("does not resume after %s", async (_what, event, message) => {
  const server = await startStreams(
    (id) => PLACE + event(id),
    (response) => response.writeHead(405).end(),
  );
  await expect(server.call()).rejects.toThrow(message);
  expect(server.places()).toEqual([]);
});

it("takes neither an event of another type nor the response to another request", async () => {
  const other = (id: unknown) => resultEvent(`not ${id}`).replace("[]", '[{ "type": "text", "text": "wrong" }]');
  const server = await startStreams(
    (id) => `event: note\n${other(id)}event: note\ndata: {\n\n${other(id)}${resultEvent(id)}`,
    () => undefined,
  );
  expect(await server.call()).toEqual({ content: [] });
});
