import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import type { RpcId, RpcMessage, RpcRequest, RpcResponse } from "../../src/mcp/json-rpc.js";
import type { McpProxy } from "../../src/mcp/proxy.js";
import { ServerGroup } from "../../src/mcp/server-group.js";
import { until } from "../helpers/server.js";
import { EVENTS, startLossyServer } from "./lossy-server.js";
import { sendError, sendResult, startPlainServer } from "./plain-server.js";
import { startHost } from "./stdio-host.js";

/** A server with these tools, two on a page, which answers a call with its name and that of the tool. */
function startTools(server: string, ...tools: string[]) {
  return startPlainServer(({ id, method, params }, response) => {
    if (method === "tools/call") {
      return sendResult(response, id, { content: [{ type: "text", text: `${server} ${params["name"]}` }] });
    }
    const from = Number(params["cursor"] ?? 0);
    const page = tools.slice(from, from + 2).map((name) => ({ name, inputSchema: { type: "object" } }));
    const next = from + 2 < tools.length && { nextCursor: String(from + 2) };
    return sendResult(response, id, { tools: page, ...next });
  });
}

const namesOf = (result: unknown) => (result as { tools: { name: string }[] }).tools.map(({ name }) => name);

describe("several servers behind one entry", () => {
  it("are one server with the tools of all, each under the name of its server", async () => {
    const [docs, mail] = [await startTools("docs", "a", "b", "c"), await startTools("mail", "a", "x__y")];
    const host = startHost({ docs: docs.url, mail: mail.url });
    const { result } = await host.begin();
    expect(result).toMatchObject({ protocolVersion: "2025-11-25", capabilities: { tools: { listChanged: true } } });
    expect(namesOf((await host.ask(1, "tools/list")).result)).toEqual([
      "docs__a",
      "docs__b",
      "docs__c",
      "mail__a",
      "mail__x__y",
    ]);
    expect((await host.call(2, "mail__x__y")).result?.content).toEqual([{ type: "text", text: "mail x__y" }]);
    expect((await host.call(3, "docs__a")).result?.content).toEqual([{ type: "text", text: "docs a" }]);
    expect((await host.ask(4, "ping")).result).toEqual({});
    expect((await host.ask(5, "prompts/list")).error?.code).toBe(-32_601);
    for (const name of ["a", "other__a", "docs_a", ""])
      expect((await host.call(name, name)).error?.message).toContain("no server has the tool");
    host.end();
    await host.done;
  });

  it("obey one policy, with the name of the server or without", async () => {
    const [docs, mail] = [await startTools("docs", "read", "drop"), await startTools("mail", "read", "send")];
    const host = startHost({ docs: docs.url, mail: mail.url }, { tools: { hide: ["drop", "mail__s*"] } });
    await host.begin();
    expect(namesOf((await host.ask(1, "tools/list")).result)).toEqual(["docs__read", "mail__read"]);
    expect((await host.call(2, "mail__Send")).error?.message).toContain('hidden by "mail__s*"');
    expect((await host.call(3, "docs__drop")).error?.message).toContain('hidden by "drop"');
    expect([...docs.requests, ...mail.requests].filter(({ body }) => body.includes("tools/call"))).toEqual([]);
  });

  it("work without one that refuses the session, or whose list fails", async () => {
    const docs = await startTools("docs", "a");
    const down = await startPlainServer(({ id }, response) => sendError(response, id, -32_000, "broken"));
    const host = startHost({ docs: docs.url, gone: "http://127.0.0.1:9/mcp", down: down.url });
    await host.begin();
    expect(namesOf((await host.ask(1, "tools/list")).result)).toEqual(["docs__a"]);
    expect((await host.call(2, "gone__a")).error?.message).toContain("no server has the tool");
    expect(host.warnings.join("\n")).toMatch(/initialize.*the tools of "down" are missing: broken/s);
  });

  it("fail with the first error if all refuse the session", async () => {
    const refusal = new AgentAuthError("login_required", "no", { class: "auth", hint: "agentauth login x" });
    const host = startHost(
      { a: "http://127.0.0.1:9/a", b: "http://127.0.0.1:9/b" },
      { fetch: () => Promise.reject(refusal) },
    );
    host.send({ id: 1, method: "initialize", params: {} });
    await expect(host.done).rejects.toMatchObject({ code: "login_required" });
    expect((await host.answerTo(1)).error?.message).toBe("no; run: agentauth login x");
  });

  it("cancel at the server that works on a request, and send no response", async () => {
    const [docs, mail] = [await startLossyServer({ answer: () => undefined }), await startTools("mail", "a")];
    const host = startHost({ docs: docs.url, mail: mail.url });
    await host.begin();
    host.send({ id: 1, method: "tools/call", params: { name: "docs__slow" } });
    await until(() => docs.of("tools/call").length === 1);
    host.send({ method: "notifications/cancelled", params: { requestId: 1 } });
    await until(() => docs.of("notifications/cancelled").length === 1);
    expect(docs.of("notifications/cancelled")[0]?.params?.["requestId"]).toBe(docs.of("tools/call")[0]?.id);
    expect((await host.ask(2, "ping")).result).toEqual({});
    expect(mail.requests.some(({ body }) => body.includes("cancelled"))).toBe(false);
    expect(host.received.some(({ id }) => id === 1)).toBe(false);
  });

  it("keep their requests to the host apart, whatever their ids", async () => {
    const servers = [await startLossyServer(), await startLossyServer()];
    const [one, two] = servers;
    const host = startHost({ one: one?.url ?? "", two: two?.url ?? "" });
    await host.begin();
    await until(() => servers.every(({ streams }) => streams.length === 1));
    for (const [at, { streams }] of servers.entries()) {
      const ask = { jsonrpc: "2.0", id: 0, method: "roots/list", params: { at } };
      streams[0]?.write(`data: ${JSON.stringify(ask)}\n\n`);
    }
    const asked = () => host.received.filter(({ method }) => method === "roots/list");
    await until(() => asked().length === 2);
    for (const { id, params } of asked()) host.send({ id, result: { at: params?.["at"] } });
    await until(() => servers.every(({ calls }) => calls.some((call) => "result" in call)));
    const results = servers.map(({ calls }) => calls.filter((call) => "result" in call));
    expect(results).toMatchObject([[{ id: 0, result: { at: 0 } }], [{ id: 0, result: { at: 1 } }]]);
  });

  it("answer what is pending when the host closes its input", async () => {
    const docs = await startLossyServer({ answer: (response) => response.writeHead(200, EVENTS).flushHeaders() });
    const host = startHost({ docs: docs.url, mail: (await startTools("mail", "a")).url });
    await host.begin();
    host.send({ id: 1, method: "tools/call", params: { name: "docs__slow" } });
    await until(() => docs.of("tools/call").length === 1);
    host.end();
    await host.done;
    expect((await host.answerTo(1)).error?.message).toContain("the proxy has ended");
  });
});

type Answers = Record<string, (request: RpcRequest) => object | undefined>;

/** A group of servers in this process, which answer at once, or later if they return nothing. */
function startGroup(servers: Answers) {
  const received: RpcMessage[] = [];
  const warnings: string[] = [];
  const calls: string[] = [];
  const sent: { name: string; message: RpcMessage; bytes: number }[] = [];
  const hosts = new Map<string, { send(message: RpcMessage): void }>();
  const group = new ServerGroup({
    host: { send: (message) => void received.push(message) },
    servers: Object.keys(servers).map((name) => ({ name })),
    connect({ name }, host) {
      hosts.set(name, host);
      const note = (what: string) => void calls.push(`${what} ${name}`);
      const member = {
        error: name === "working" ? undefined : new Error(name),
        fromHost(message: RpcRequest, bytes: number) {
          sent.push({ name, message, bytes });
          const outcome = message.id === undefined ? undefined : servers[name]?.(message);
          if (outcome) host.send({ jsonrpc: "2.0", id: message.id, ...outcome });
        },
        untilBelow: async (maxBytes: number) => note(`below ${maxBytes}`),
        ping: async (ms: number) => note(`ping ${ms}`),
        terminate: () => Promise.reject(note("terminate")),
        abortPending: () => note("abort"),
        close: () => note("close"),
      };
      return member as unknown as McpProxy;
    },
    onWarning: (text) => void warnings.push(text),
    onFatalError: () => void calls.push("fatal"),
  });
  const ask = async (id: RpcId, method: string, params?: object) => {
    group.fromHost({ jsonrpc: "2.0", id, method, ...(params && { params }) }, 7);
    await group.untilIdle();
    return received.find((message) => message.id === id) as Partial<RpcResponse> | undefined;
  };
  const fromServer = (name: string, message: object) =>
    hosts.get(name)?.send({ jsonrpc: "2.0", ...message } as RpcMessage);
  return { group, received, warnings, calls, sent, ask, fromServer };
}

const session = (protocolVersion: string, more: object = {}) => ({ result: { protocolVersion, ...more } });
const noResult = { code: -32_603, message: "the server sent no result" };

describe("a group of servers", () => {
  it("begins with the oldest revision, and the instructions of each", async () => {
    const servers: Answers = {
      a: () => session("2025-11-25", { instructions: "use a" }),
      b: () => session("2025-03-26", { instructions: 7 }),
      c: () => session("2025-06-18", { instructions: "use c" }),
    };
    const { ask, sent, calls } = startGroup(servers);
    expect(await ask("i", "initialize", { x: 1 })).toEqual({
      jsonrpc: "2.0",
      id: "i",
      result: {
        protocolVersion: "2025-03-26",
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: "agentauth", title: "a, b, c", version: "1" },
        instructions: "a:\nuse a\n\nc:\nuse c",
      },
    });
    expect(sent.map(({ name, message, bytes }) => [name, message.id, bytes])).toEqual([
      ["a", "agentauth-1", 7],
      ["b", "agentauth-2", 7],
      ["c", "agentauth-3", 7],
    ]);
    expect(calls).toEqual([]);
    const { b = () => undefined } = servers;
    expect((await startGroup({ b }).ask("i", "initialize"))?.result).not.toHaveProperty("instructions");
  });

  it("fails where no server begins, and tries them all again", async () => {
    const error = { code: 1, message: "no" };
    let isUp = false;
    const { ask, calls, group, received } = startGroup({
      a: ({ method }) => (isUp ? (method === "initialize" ? session("x") : { result: { tools: [] } }) : { error }),
      b: () => ({ result: null }),
    });
    expect((await ask(1, "initialize"))?.error).toEqual(error);
    expect(calls).toEqual(["fatal"]);
    isUp = true;
    expect((await ask(2, "initialize"))?.result).toMatchObject({ serverInfo: { title: "a" } });
    expect((await ask(3, "tools/list"))?.result).toEqual({ tools: [] });
    expect([group.error, received.length]).toEqual([new Error("a"), 3]);
    expect((await startGroup({ b: () => ({}) }).ask(1, "initialize"))?.error).toEqual(noResult);
    expect((await startGroup({}).ask(1, "initialize"))?.error).toEqual(noResult);
    expect(startGroup({ a: () => ({}), working: () => ({}) }).group.error).toBeUndefined();
  });

  it("lists what is a tool, page by page, with the params of the host", async () => {
    const { ask, sent } = startGroup({
      a: ({ params }) => {
        const { cursor } = params as { cursor?: string };
        return { result: { tools: [{ name: cursor ?? "first" }, null, "x"], nextCursor: cursor === "2" ? 3 : "2" } };
      },
      b: () => ({ result: { tools: "none" } }),
      c: () => ({ result: { tools: [{ name: "again" }], nextCursor: "1" } }),
    });
    expect((await ask(1, "tools/list", { _meta: 1 }))?.result).toEqual({
      tools: ["a__first", "a__2", "c__again", "c__again"].map((name) => ({ name })),
    });
    const params = sent.filter(({ name }) => name === "a").map(({ message }) => (message as RpcRequest).params);
    expect(params).toEqual([
      { _meta: 1, cursor: undefined },
      { _meta: 1, cursor: "2" },
    ]);
  });

  it("ends at a list that has no end", async () => {
    let page = 0;
    const { ask } = startGroup({ a: () => ({ result: { tools: [{ name: "t" }], nextCursor: `${++page}` } }) });
    expect((await ask(1, "tools/list"))?.result).toMatchObject({ tools: { length: 64 } });
    expect(page).toBe(64);
  });

  it("lists the tools without those of a server that fails, and fails where all do", async () => {
    const error = { code: 1, message: "broken" };
    const mixed = startGroup({ a: () => ({ error }), b: () => ({ result: 5 }), c: () => ({ result: { tools: [] } }) });
    expect((await mixed.ask(1, "tools/list"))?.result).toEqual({ tools: [] });
    expect(mixed.warnings).toEqual([
      'the tools of "a" are missing: broken',
      'the tools of "b" are missing: the server sent no result',
    ]);
    expect((await startGroup({ a: () => ({ error }) }).ask(1, "tools/list"))?.error).toEqual(error);
    expect((await startGroup({ b: () => ({}) }).ask(1, "tools/list"))?.error).toEqual(noResult);
  });

  it("says what it does not offer", async () => {
    const { ask, sent } = startGroup({ a: () => ({}) });
    expect((await ask(1, "prompts/list"))?.error).toEqual({
      code: -32_601,
      message: '"prompts/list": several servers behind one entry offer their tools only',
    });
    for (const name of ["b__x", "", 5]) {
      const message = `no server has the tool "${name === 5 ? "" : name}": a name begins with that of its server and "__"`;
      expect((await ask(`call ${name}`, "tools/call", { name }))?.error).toEqual({ code: -32_602, message });
    }
    expect(sent).toEqual([]);
  });

  it("cancels a request where it is not answered yet, and answers it no more", async () => {
    const { group, received, sent, fromServer } = startGroup({
      a: () => ({ result: { tools: [] } }),
      b: () => undefined,
    });
    group.fromHost({ jsonrpc: "2.0", id: 1, method: "tools/list" }, 0);
    let isIdle = false;
    const idle = group.untilIdle().then(() => {
      isIdle = true;
    });
    await new Promise(setImmediate);
    expect(isIdle).toBe(false);
    for (const requestId of [1, 1, "unknown"])
      group.fromHost({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } }, 0);
    expect(sent.slice(2)).toEqual([
      {
        name: "b",
        bytes: 0,
        message: {
          jsonrpc: "2.0",
          method: "notifications/cancelled",
          params: { requestId: "agentauth-2", reason: "cancelled" },
        },
      },
    ]);
    await group.untilIdle();
    fromServer("b", { id: "agentauth-2", result: { tools: [] } });
    fromServer("b", { id: "unknown", result: {} });
    await Promise.race([idle, new Promise(setImmediate)]);
    expect(received).toEqual([]);
  });

  it("answers the last of two requests with one id", async () => {
    const { group, received, fromServer } = startGroup({ a: () => undefined });
    for (const name of ["a__x", "a__y"])
      group.fromHost({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name } }, 0);
    for (const id of [1, 2]) fromServer("a", { id: `agentauth-${id}`, result: { of: id } });
    await group.untilIdle();
    await new Promise(setImmediate);
    expect(received).toEqual([{ jsonrpc: "2.0", id: 1, result: { of: 2 } }]);
  });

  it("passes what the servers say, with ids that name them", () => {
    const { group, received, sent, fromServer } = startGroup({ a: () => ({}), b: () => ({}) });
    const note = { method: "notifications/progress", params: { requestId: 7 } };
    fromServer("a", note);
    fromServer("a", { id: 7, method: "roots/list" });
    fromServer("b", { id: "7", method: "roots/list" });
    fromServer("b", { method: "notifications/cancelled", params: { requestId: "7", reason: "late" } });
    expect(received).toEqual([
      { jsonrpc: "2.0", ...note },
      { jsonrpc: "2.0", id: "a/7", method: "roots/list" },
      { jsonrpc: "2.0", id: 'b/"7"', method: "roots/list" },
      { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 'b/"7"', reason: "late" } },
    ]);
    for (const id of ["a/7", "a/7", 'b/"7"', "unknown"]) group.fromHost({ jsonrpc: "2.0", id, result: {} }, 0);
    expect(sent).toEqual([{ name: "a", bytes: 0, message: { jsonrpc: "2.0", id: 7, result: {} } }]);
  });

  it("is all of its servers to what ends them", async () => {
    const { group, calls, sent } = startGroup({ a: () => ({}), b: () => ({}) });
    group.fromHost({ jsonrpc: "2.0", method: "notifications/roots/list_changed" }, 9);
    expect(sent.map(({ name, bytes }) => [name, bytes])).toEqual([
      ["a", 0],
      ["b", 0],
    ]);
    await group.untilBelow(10, new AbortController().signal);
    await group.ping(3);
    group.abortPending();
    await group.terminate();
    group.close();
    expect(calls).toEqual(
      ["below 5", "ping 3", "abort", "terminate", "close"].flatMap((what) => [`${what} a`, `${what} b`]),
    );
  });
});
