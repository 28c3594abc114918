import { getEventListeners } from "node:events";
import type { ServerResponse } from "node:http";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import { systemClock } from "../../src/http/deadline.js";
import type { SendRequest } from "../../src/mcp/http-channel.js";
import { pendingError } from "../helpers/captured.js";
import { type SeenRequest, startServer, until } from "../helpers/server.js";
import { HELLO, startHost } from "./stdio-host.js";

const EVENTS = { "content-type": "text/event-stream" };

/** A server whose answers to requests a test writes; it takes every notification. */
async function startPeer(answer: (response: ServerResponse, message: { id?: unknown; method?: string }) => unknown) {
  const server = await startServer((response, { method, body }: SeenRequest) => {
    if (method !== "POST") return response.writeHead(405).end();
    const message = JSON.parse(body) as { id?: unknown; method?: string };
    if (message.id === undefined) return response.writeHead(202).end();
    return answer(response, message);
  });
  return { ...server, url: `${server.origin}/mcp` };
}

const sendResult = (response: ServerResponse, id: unknown, result: object) =>
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", id, result }));

function sendNested(response: ServerResponse, levels: number): void {
  const deep = `${"[".repeat(levels)}${"]".repeat(levels)}`;
  response.writeHead(200, EVENTS).end(`data: {"jsonrpc":"2.0","id":1,"result":{"deep":${deep}}}\n\n`);
}

const sendEvent = (response: ServerResponse, message: object) =>
  response.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);

describe("the proxy and messages of the host", () => {
  it.each([
    ["{not json", null, -32_700, "is not strict JSON"],
    ['{"jsonrpc":"2.0","id":"a","result":1,"error":{}}', "a", -32_600, "neither a request nor a response"],
  ])("rejects %s with an error, and continues", async (line, id, code, message) => {
    const peer = await startPeer((response, message) => sendResult(response, message.id, {}));
    const host = startHost(peer.url);
    host.write(`${line}\r\n\n`);
    expect((await host.ask("next", "ping")).result).toEqual({});
    expect(host.received).toHaveLength(2);
    expect(host.received[0]).toMatchObject({ id, error: { code, message: expect.stringContaining(message) } });
    expect(peer.requests).toHaveLength(1);
  });

  it("passes every digit of their numbers on, and of the answers", async () => {
    const answer =
      '{"jsonrpc":"2.0","id":12345678901234567890,"result":{"n":18446744073709551615,"x":0.12345678901234567891}}';
    const peer = await startPeer((response) =>
      response.writeHead(200, { "content-type": "application/json" }).end(answer),
    );
    const lines: string[] = [];
    const host = startHost(peer.url, { write: async (text) => void lines.push(text) });
    const line = '{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping","params":{"n":-9007199254740993}}';
    host.write(`${line}\n`);
    await until(() => lines.length > 0);
    expect(peer.requests[0]?.body).toBe(line);
    expect(lines).toEqual([`${answer}\n`]);
  });

  it("reads more of them once the server has taken those before", async () => {
    const peer = await startPeer((response, { id }) => sendResult(response, id, {}));
    const host = startHost(peer.url, { maxBytes: 200 });
    for (let id = 0; id < 10; id++) expect((await host.ask(id, "ping", { text: "x".repeat(100) })).result).toEqual({});
  });

  it("forwards unknown members, also outside params and result", async () => {
    const peer = await startPeer((response, { id }) => sendResult(response, id, { _meta: { "x/y": [1] }, more: null }));
    const host = startHost(peer.url);
    host.send({ id: 1, method: "x/y", params: { __proto__: null, a: { b: 1.5 } }, trace: "t" });
    expect((await host.answerTo(1)).result).toEqual({ _meta: { "x/y": [1] }, more: null });
    expect(JSON.parse(peer.requests[0]?.body ?? "")).toEqual({
      jsonrpc: "2.0",
      id: 1,
      method: "x/y",
      params: { a: { b: 1.5 } },
      trace: "t",
    });
  });

  it("rejects a line that is too long, and reads the next one", async () => {
    const peer = await startPeer((response, { id }) => sendResult(response, id, {}));
    const host = startHost(peer.url, { maxBytes: 10_000 });
    host.send({ id: 1, method: "x", params: { long: "y".repeat(10_000) } });
    expect((await host.ask(2, "ping")).result).toEqual({});
    expect(host.received[0]).toMatchObject({ id: null, error: { message: "the message is longer than 10000 bytes" } });
    expect(peer.requests).toHaveLength(1);
  });

  it("ends with the last response when the host closes its input, also if the server leaves its stream open", async () => {
    // Nothing that waits for a time ends.
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const peer = await startPeer((response, { id }) => {
      response.writeHead(200, EVENTS);
      sendEvent(response, { id, result: {} });
    });
    const host = startHost(peer.url);
    host.send({ id: 1, method: "ping" });
    host.end();
    await host.done;
    expect(host.received[0]?.result).toEqual({});
  });

  it("ends when the host closes the pipe", async () => {
    const peer = await startPeer((response, { id }) => sendResult(response, id, {}));
    const host = startHost(peer.url, { write: () => Promise.reject(new Error("EPIPE")) });
    host.send({ id: 1, method: "ping" });
    await host.done;
  });
});

describe("the proxy and responses of the server", () => {
  it("forwards the error object in the body of an HTTP error", async () => {
    const error = { code: -32_022, message: "no such revision", data: { supported: ["2025-11-25"] } };
    const peer = await startPeer((response) => {
      response.writeHead(400).end(JSON.stringify({ jsonrpc: "2.0", id: null, error }));
    });
    expect((await startHost(peer.url).ask(1, "server/discover")).error).toEqual(error);
  });

  it.each([
    ["nothing", (response: ServerResponse) => response.writeHead(202).end()],
    ["an empty stream", (response: ServerResponse) => response.writeHead(200, EVENTS).end()],
    [
      "a stream that breaks off",
      (response: ServerResponse) => {
        response.writeHead(200, EVENTS).write("event: mess");
        setTimeout(() => response.destroy(), 20);
      },
    ],
    ["a page", (response: ServerResponse) => response.writeHead(200, { "content-type": "text/html" }).end("<p>")],
    [
      "half a JSON",
      (response: ServerResponse) =>
        response.writeHead(200, { "content-type": "application/json" }).end('{"jsonrpc":"2.0"'),
    ],
    ["a result nested 499 levels deep", (response: ServerResponse) => sendNested(response, 499)],
    ["a result nested 200,000 levels deep", (response: ServerResponse) => sendNested(response, 200_000)],
    ["the response to another request", (response: ServerResponse) => sendResult(response, "other", {})],
  ])("answers the host when the server sends %s", async (_what, answer) => {
    const peer = await startPeer((response, { id }) => (id === 1 ? answer(response) : sendResult(response, id, {})));
    const host = startHost(peer.url);
    expect((await host.ask(1, "ping")).error?.code).toBe(-32_603);
    expect((await host.ask(2, "ping")).result).toEqual({});
    expect(host.received).toHaveLength(2);
  });

  it.each([
    [
      "nothing",
      "accepted the request and sent no response",
      (response: ServerResponse) => response.writeHead(202).end(),
    ],
    [
      "a result that is nested too deep",
      "sent a message that is nested too deep",
      (response: ServerResponse) => sendNested(response, 499),
    ],
  ])("says that the server sent %s", async (_what, text, answer) => {
    const peer = await startPeer(answer);
    const message = `the MCP server "${peer.url}" ${text}`;
    const data = { code: "mcp_failed", class: "remote", message, retryable: false };
    expect((await startHost(peer.url).ask(1, "ping")).error).toEqual({ code: -32_603, message, data });
  });

  it("logs what the server sends, by the request that it belongs to", async () => {
    const peer = await startPeer((response, { id }) => {
      response.writeHead(200, EVENTS);
      sendEvent(response, { method: "notifications/message", params: {} });
      sendEvent(response, { id: "other", result: {} });
      sendEvent(response, { id, result: {} });
      response.end();
    });
    const host = startHost(peer.url);
    await host.ask(1, "ping");
    expect(host.log.filter((text) => text.startsWith("server: "))).toEqual([
      expect.stringMatching(/^server: .*notifications\/message/),
      "server: response without a pending request",
      expect.stringMatching(/^server: response to .*ping/),
    ]);
  });

  it("reads past an event that is no message, and says why a stream of no other ends", async () => {
    const peer = await startPeer((response, { id }) => {
      response.writeHead(200, EVENTS).write("data: {\n\n");
      response.write('data: {"jsonrpc":"2.0"}\n\n');
      if (id === 1) sendEvent(response, { id, result: {} });
      response.end();
    });
    const host = startHost(peer.url);
    expect((await host.ask(1, "ping")).result).toEqual({});
    const invalid = 'a message of the server is invalid: "the message is neither a request nor a response"';
    const failures = [expect.stringMatching(/^connection: .*JSON/), `connection: ${invalid}`];
    expect(host.log.filter((text) => text.startsWith("connection: "))).toEqual(failures);
    expect((await host.ask(2, "ping")).error).toMatchObject({
      message: `the connection to the MCP server "${peer.url}" closed before the response arrived: ${invalid}`,
      data: { code: "connection_reset", class: "unavailable" },
    });
  });

  it("logs why a stream broke off", async () => {
    const peer = await startPeer((response) => {
      response.writeHead(200, EVENTS).write("event: mess");
      setTimeout(() => response.destroy(), 20);
    });
    const host = startHost(peer.url);
    expect((await host.ask(1, "ping")).error?.message).toMatch(/closed before the response arrived: terminated$/);
    expect(host.log).toContain("connection: terminated");
  });

  it("takes several messages at once, and says what is none", async () => {
    const note = { jsonrpc: "2.0", method: "notifications/message", params: {} };
    const peer = await startPeer((response, { id }) =>
      id === 1
        ? response.writeHead(200, { "content-type": "text/html" }).end("<p>")
        : response
            .writeHead(200, { "content-type": "application/json" })
            .end(JSON.stringify([note, { jsonrpc: "2.0", id, result: {} }])),
    );
    const host = startHost(peer.url);
    expect((await host.ask(1, "ping")).error?.message).toBe(
      `the MCP server "${peer.url}": Unexpected content type: text/html`,
    );
    expect((await host.ask(2, "ping")).result).toEqual({});
    expect(host.received.map(({ method, id }) => method ?? id)).toEqual([1, "notifications/message", 2]);
  });

  it("does not resume the stream of a request that has its response", async () => {
    const peer = await startPeer((response, { id }) => {
      response.writeHead(200, EVENTS).write("id: 1\nretry: 1\n");
      sendEvent(response, { id, result: {} });
      response.end();
    });
    const host = startHost(peer.url);
    for (let id = 1; id <= 9; id++) await host.ask(id, "ping");
    expect(peer.requests.map(({ method }) => method)).not.toContain("GET");
  });

  it("assigns an error without an id to the request whose HTTP response carries it", async () => {
    const error = { code: -32_000, message: "too busy" };
    const peer = await startPeer((response) => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", error }));
    });
    expect((await startHost(peer.url).ask(1, "ping")).error).toEqual(error);
  });

  it.each([
    ["a response", (response: ServerResponse, id: unknown) => sendResult(response, id, { x: "y".repeat(20_000) })],
    [
      "an event",
      (response: ServerResponse, id: unknown) => {
        response.writeHead(200, EVENTS);
        sendEvent(response, { method: "notifications/message", params: {} });
        response.write(`data: ${"y".repeat(300_000)}`);
        response.write(`${"y".repeat(300_000)}\n\n`);
        sendEvent(response, { id, result: {} });
      },
    ],
  ])("rejects %s that is too long", async (_what, answer) => {
    const peer = await startPeer((response, { id }) =>
      id === 1 ? answer(response, id) : sendResult(response, id, {}),
    );
    const host = startHost(peer.url, { maxBytes: 10_000 });
    expect((await host.ask(1, "ping")).error?.message).toContain("longer than 10000 bytes");
    expect((await host.ask(2, "ping")).result).toEqual({});
  });

  it("loses no message when the host reads slowly", async () => {
    const COUNT = 200;
    const peer = await startPeer((response, { id }) => {
      response.writeHead(200, EVENTS);
      for (let n = 0; n < COUNT; n++) {
        sendEvent(response, { method: "notifications/message", params: { n, data: "z".repeat(64 * 1024) } });
      }
      sendEvent(response, { id, result: {} });
      response.end();
    });
    const read: unknown[] = [];
    const host = startHost(peer.url, {
      async write(text) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        read.push((JSON.parse(text) as { params?: { n: number } }).params?.n);
      },
    });
    host.send({ id: 1, method: "ping" });
    await until(() => read.length > COUNT);
    expect(read).toEqual([...Array(COUNT).keys(), undefined]);
  });
});

describe("the proxy and a server without sessions", () => {
  const _meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28" };

  it("cancels a request by closing its HTTP request, without a message", async () => {
    let isOver = false;
    const peer = await startPeer((response, { id }) => {
      if (id === 2) return sendResult(response, id, {});
      response.writeHead(200, EVENTS).flushHeaders();
      response.once("close", () => {
        isOver = true;
      });
      return undefined;
    });
    const host = startHost(peer.url);
    host.send({ id: 1, method: "tools/call", params: { name: "x", _meta } });
    await until(() => peer.requests.length === 1);
    host.send({ method: "notifications/cancelled", params: { requestId: 1 } });
    await until(() => isOver);
    expect((await host.ask(2, "ping", { _meta })).result).toEqual({});
    expect(host.received).toHaveLength(1);
    expect(peer.requests.map(({ body }) => JSON.parse(body).method)).toEqual(["tools/call", "ping"]);
  });

  it("repeats the arguments that the tool's schema marks in headers, and the method", async () => {
    const inputSchema = {
      type: "object",
      properties: {
        region: { type: "string", "x-mcp-header": "Region" },
        deep: { type: "object", properties: { count: { type: "integer", "x-mcp-header": "Count" } } },
        evil: { type: "string", "x-mcp-header": "a\r\nAuthorization: x" },
      },
    };
    const peer = await startPeer((response, { id }) =>
      sendResult(response, id, { tools: [{ name: "where", inputSchema }, null, { name: 7 }] }),
    );
    const host = startHost(peer.url);
    const call = (id: number, args: object) => host.ask(id, "tools/call", { name: "where", arguments: args, _meta });
    await host.ask(1, "tools/list", { _meta });
    await call(2, { region: "eu", deep: { count: 7 }, evil: "x" });
    await call(3, { region: "zürich ", deep: null });
    await host.call(4, "where", { region: "eu" });
    const [, second, third, fourth] = peer.requests.map(({ headers }) => headers);
    expect(second).toMatchObject({ "mcp-param-region": "eu", "mcp-param-count": "7", "mcp-method": "tools/call" });
    expect(second).toMatchObject({ "mcp-name": "where", "mcp-protocol-version": "2026-07-28" });
    expect(third?.["mcp-param-region"]).toBe(`=?base64?${Buffer.from("zürich ").toString("base64")}?=`);
    expect(third).not.toHaveProperty("mcp-param-count");
    expect(fourth).not.toHaveProperty("mcp-param-region");
  });
});

it("the proxy and the server's notification stream opens it once, whatever else it notifies the server of, and takes 204 for a notification", async () => {
  const peer = await startServer((response, { method, body }) => {
    if (method === "GET") return response.writeHead(405).end();
    const { id, method: called } = JSON.parse(body) as { id?: unknown; method: string };
    if (id !== undefined) return sendResult(response, id, { protocolVersion: "x" });
    return response.writeHead(called === "notifications/initialized" ? 202 : 204).end();
  });
  const host = startHost(`${peer.origin}/mcp`);
  await host.begin();
  host.send({ method: "notifications/roots/list_changed" });
  for (let id = 1; id <= 9; id++) await host.ask(id, "ping");
  expect(peer.requests.filter(({ method }) => method === "GET")).toHaveLength(1);
  expect(host.warnings).toEqual([]);
});

it("the proxy that keeps a session alive sends a ping without the host, and no login, from the first session on", async () => {
  const peer = await startPeer((response, { id, method }) => {
    if (method !== "ping") return sendResult(response, id, { protocolVersion: "x" });
    return peer.requests.filter(({ body }) => body.includes("ping")).length === 1
      ? sendResult(response, id, {})
      : response.writeHead(500).end("down");
  });
  const unattended = vi.fn(fetch as SendRequest);
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const host = startHost(peer.url, { unattended, keepAliveMs: 60_000 });
  vi.advanceTimersByTime(60_000);
  await host.begin();
  expect(peer.requests.map(({ body }) => JSON.parse(body || "{}").method)[0]).toBe("initialize");
  vi.advanceTimersByTime(60_000);
  await until(() => unattended.mock.calls.length === 1);
  vi.advanceTimersByTime(60_000);
  await until(() => host.log.some((text) => text.startsWith("ping: ")));
  expect(host.log).toContain('ping: "HttpFailure: HTTP 500: down"');
  expect(host.received.map(({ id }) => id)).toEqual(["init"]);
  const pings = peer.requests.map(({ body }) => JSON.parse(body || "{}")).filter(({ method }) => method === "ping");
  expect(pings[0]).toEqual({ jsonrpc: "2.0", id: "agentauth-ping", method: "ping" });
  expect(unattended).toHaveBeenCalledTimes(2);
  expect(unattended.mock.calls.every(([, { body }]) => String(body).includes("agentauth-ping"))).toBe(true);
});

describe("the proxy after the server's notification stream is lost", () => {
  it.each([
    ["longer each time", "", [1000, 1500, 2250, 3375, 5062.5]],
    ["as long as the server says", "retry: 7000\n\n", [7000, 7000, 7000, 7000, 7000]],
    ["a tenth of a second at least", "retry: 0\n\n", [100, 100, 100, 100, 100]],
    ["ten seconds at most", "retry: 3600000\n\n", [10_000, 10_000, 10_000, 10_000, 10_000]],
  ])("waits %s before each of five attempts", async (_what, text, waits) => {
    const sleep = vi.spyOn(systemClock, "sleep").mockResolvedValue(undefined);
    onTestFinished(() => sleep.mockRestore());
    let streams = 0;
    const peer = await startServer((response, { method, body }) => {
      if (method === "GET")
        return streams++ === 0 ? response.writeHead(200, EVENTS).end(text) : response.writeHead(503).end();
      const { id } = JSON.parse(body || "{}") as { id?: unknown };
      return id === undefined ? response.writeHead(202).end() : sendResult(response, id, { protocolVersion: "x" });
    });
    const host = startHost(`${peer.origin}/mcp`);
    await host.begin();
    await until(() => host.warnings.length > 0);
    expect(sleep.mock.calls.map(([milliseconds]) => milliseconds).slice(-5)).toEqual(waits);
    expect(host.warnings).toEqual([
      "the server's notification stream was lost; it is reopened after the next response",
    ]);
    expect(streams).toBe(6);
    await host.ask(1, "ping");
    await until(() => host.log.includes("server: the notification stream cannot be reopened"));
    await host.ask(2, "ping");
    expect(streams).toBe(7);
  });

  it("warns, and reopens it after the next response", async () => {
    let streams = 0;
    let isUp = false;
    const peer = await startServer((response, { method, body }) => {
      if (method === "GET") {
        streams += 1;
        if (streams > 1 && !isUp) return response.writeHead(503).end();
        response.writeHead(200, EVENTS).write("retry: 1\n\n");
        if (isUp) sendEvent(response, { method: "notifications/tools/list_changed" });
        else response.end();
        return undefined;
      }
      const { id } = JSON.parse(body || "{}") as { id?: unknown };
      return id === undefined ? response.writeHead(202).end() : sendResult(response, id, { protocolVersion: "x" });
    });
    const host = startHost(`${peer.origin}/mcp`);
    await host.begin();
    await until(() => host.warnings.length > 0);
    expect(host.warnings).toEqual([expect.stringContaining("is reopened after the next response")]);
    expect(host.log).toContainEqual(
      expect.stringMatching(/^connection: .* closed before the response arrived: HTTP 503$/),
    );
    isUp = true;
    await host.ask(1, "ping");
    await until(() => host.received.some(({ method }) => method === "notifications/tools/list_changed"));
  });
});

describe("the proxy when initialize fails", () => {
  const refusal = (kind: "auth" | "unavailable") =>
    new AgentAuthError(kind === "auth" ? "login_required" : "timeout", "no", {
      class: kind,
      hint: "agentauth login x",
    });

  it("answers every request with the command that helps, and ends, if a retry does not help", async () => {
    const host = startHost("http://127.0.0.1:9/mcp", { fetch: () => Promise.reject(refusal("auth")) });
    host.send({ id: 1, method: "initialize", params: HELLO });
    host.send({ method: "notifications/initialized" });
    host.send({ id: 2, method: "tools/list" });
    expect(await pendingError(host.done)).toMatchObject({ code: "login_required" });
    expect(host.received.map(({ id, error }) => [id, error?.message])).toEqual([
      [1, "no; run: agentauth login x"],
      [2, "no; run: agentauth login x"],
    ]);
    expect(host.received[0]?.error?.data).toMatchObject({ code: "login_required", hint: "agentauth login x" });
  });

  it("ends also after an earlier response", async () => {
    const peer = await startPeer((response, { id }) => sendResult(response, id, {}));
    let isOver = false;
    const fetch = (...args: Parameters<typeof globalThis.fetch>) =>
      isOver ? Promise.reject(refusal("auth")) : globalThis.fetch(...args);
    const host = startHost(peer.url, { fetch });
    await host.ask(1, "initialize", HELLO);
    isOver = true;
    expect((await host.ask(2, "ping")).error?.message).toContain("run: agentauth login x");
    expect((await host.ask(3, "initialize", HELLO)).error?.message).toContain("run: agentauth login x");
    expect(await pendingError(host.done)).toMatchObject({ code: "login_required" });
  });

  it("continues if the server was unreachable for a time", async () => {
    const peer = await startPeer((response, { id }) => sendResult(response, id, {}));
    let isUp = false;
    const fetch = (...args: Parameters<typeof globalThis.fetch>) =>
      isUp ? globalThis.fetch(...args) : Promise.reject(refusal("unavailable"));
    const host = startHost(peer.url, { fetch });
    expect((await host.ask(1, "initialize", HELLO)).error?.message).toContain("no; run");
    isUp = true;
    expect((await host.ask(2, "initialize", HELLO)).result).toEqual({});
    host.end();
    await host.done;
  });

  it("drops a request that waits for initialize when the host cancels it", async () => {
    let begin = () => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const peer = await startPeer(async (response, { id }) => {
      await begun;
      sendResult(response, id, {});
    });
    const host = startHost(peer.url);
    host.send({ id: 1, method: "initialize", params: HELLO });
    host.send({ id: 2, method: "tools/list" });
    host.send({ id: 3, method: "ping" });
    host.send({ method: "notifications/cancelled", params: { requestId: 2 } });
    await until(() => host.log.length === 4);
    begin();
    await host.answerTo(3);
    expect(peer.requests.map(({ body }) => JSON.parse(body).id)).toEqual([1, 3]);
  });

  it("answers also what waits for initialize when it ends", async () => {
    const peer = await startPeer(() => undefined);
    const host = startHost(peer.url);
    host.send({ id: 1, method: "initialize", params: HELLO });
    host.send({ method: "notifications/initialized" });
    host.send({ id: 2, method: "tools/list" });
    await until(() => host.log.length === 3);
    host.stop.abort();
    await host.done;
    const data = { code: "aborted", class: "aborted", message: "the proxy has ended", retryable: false };
    expect(host.received).toMatchObject([2, 1].map((id) => ({ id, error: { message: data.message, data } })));
  });

  it("removes its listeners from the signal", async () => {
    const peer = await startPeer((response, { id }) => sendResult(response, id, {}));
    const host = startHost(peer.url);
    for (let id = 0; id < 20; id++) await host.ask(id, "ping");
    host.end();
    await host.done;
    expect(getEventListeners(host.stop.signal, "abort")).toHaveLength(0);
  });
});
