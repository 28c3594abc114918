import type { ServerResponse } from "node:http";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { RpcMessage, RpcResponse } from "../../src/mcp/json-rpc.js";
import { ServerRequests, ServerSession } from "../../src/mcp/server-session.js";
import { speedUpTimers } from "../flow/support.js";
import { sendJson, until } from "../helpers/server.js";
import { EVENTS, type LossyOptions, sendSession, sessionNotFound, startLossyServer } from "./lossy-server.js";
import { HELLO, startHost } from "./stdio-host.js";

const sendResult = (response: ServerResponse, id: unknown, result: object = {}) =>
  sendJson(response, { jsonrpc: "2.0", id, result });

/** A host with a session whose notification stream is open. */
async function startSession(options: LossyOptions = {}, overrides: Parameters<typeof startHost>[1] = {}) {
  const server = await startLossyServer(options);
  const host = startHost(server.url, overrides);
  await host.begin();
  await until(() => server.streams.length === 1);
  return { server, host };
}

const rpcError = (code: number, message: string) =>
  JSON.stringify({ jsonrpc: "2.0", error: { code, message }, id: null });

describe("the proxy and a server that has lost the session", () => {
  it.each<[string, number, string]>([
    ["404 of the official SDK", 404, rpcError(-32_001, "Session not found")],
    ["404 without a body", 404, ""],
    ["400 of the reference server", 400, rpcError(-32_000, "Bad Request: No valid session ID provided")],
    ["401 of the official SDK for Rust", 401, "Unauthorized: Session not found"],
    ["400 of the reference server for a stream", 400, "Invalid or missing session ID"],
  ])("begins a new one and sends the request again: %s", async (_what, status, body) => {
    const { server, host } = await startSession({ lost: (response) => response.writeHead(status).end(body) });
    server.restart();
    const before = host.received.length;
    expect((await host.ask(1, "tools/list", { cursor: "c" })).result).toEqual({});
    expect(host.received).toHaveLength(before + 1);
    expect(host.warnings).toEqual([]);
    const [first, second, ...more] = server.of("initialize");
    expect([second?.params, second?.session, more]).toEqual([HELLO, "", []]);
    expect(first?.params).toEqual(second?.params);
    const sent = server.calls.slice(server.calls.indexOf(second as never)).filter(({ http }) => http === "POST");
    expect(sent.map(({ method, session }) => [method, session])).toEqual([
      ["initialize", ""],
      ["notifications/initialized", "session-2"],
      ["tools/list", "session-2"],
    ]);
    expect(sent.at(-1)).toMatchObject({ id: 1, params: { cursor: "c" } });
    expect(sent.at(-1)?.headers["mcp-protocol-version"]).toBe("2025-11-25");
  });

  it("begins a new one after a 403 to another token than it began with, once, and passes on any other", async () => {
    let token = "one";
    const lost = (response: ServerResponse) => response.writeHead(403).end("not the session of this token");
    const { server, host } = await startSession({ lost }, { token: () => token });
    server.restart();
    expect((await host.ask(1, "tools/list")).error?.data).toEqual({ status: 403 });
    token = "two";
    expect((await host.ask(2, "tools/list")).result).toEqual({});
    server.restart();
    expect((await host.ask(3, "tools/list")).error?.data).toEqual({ status: 403 });
    expect(server.of("initialize")).toHaveLength(2);
  });

  it.each([200, 202, 204])("opens the notification stream after %i for the end of the handshake", async (status) => {
    const { host } = await startSession({ notify: (response) => response.writeHead(status).end() });
    expect(host.warnings).toEqual([]);
  });

  it("opens the notification stream of the new session, and does not resume the old one there", async () => {
    const { server, host } = await startSession();
    server.streams[0]?.write("id: old-1\nretry: 1\ndata:\n\n");
    await until(() => server.streams.length === 1);
    server.restart();
    await host.ask(1, "ping");
    await until(() => server.streams.length === 2 && server.streams[0]?.destroyed === true);
    const message = { jsonrpc: "2.0", method: "notifications/tools/list_changed" };
    server.streams[1]?.write(`data: ${JSON.stringify(message)}\n\n`);
    await until(() => host.received.some(({ method }) => method === "notifications/tools/list_changed"));
    expect(server.calls.filter(({ session, headers }) => session === "session-2" && headers["last-event-id"])).toEqual(
      [],
    );
    expect(server.streams).toHaveLength(2);
  });

  it.each<[string, number, string]>([
    ["404 of a method that does not exist", 404, rpcError(-32_601, "Method not found")],
    ["400 that quotes the text", 400, rpcError(-32_000, "upstream says: Session not found")],
    ["500", 500, "Session not found"],
  ])("forwards other errors and keeps the session: %s", async (_what, status, body) => {
    const { server, host } = await startSession({ answer: (response) => response.writeHead(status).end(body) });
    expect((await host.ask(1, "tools/call")).error?.message).toBeDefined();
    expect(server.of("initialize")).toHaveLength(1);
    expect(server.of("tools/call")).toHaveLength(1);
  });

  it("begins one new session for 20 requests, and sends each of them once more", async () => {
    const { server, host } = await startSession();
    server.restart();
    const ids = [...Array(20).keys()];
    const answers = await Promise.all(ids.map((id) => host.ask(id, "tools/call", { name: `tool-${id}` })));
    expect(answers.map(({ result }) => result)).toEqual(ids.map(() => ({})));
    expect(server.of("initialize")).toHaveLength(2);
    const processed = server.of("tools/call").filter(({ session }) => session === "session-2");
    expect(processed.map(({ params }) => params?.["name"]).toSorted()).toEqual(
      ids.map((id) => `tool-${id}`).toSorted(),
    );
  });

  it("says of a notification what the server says of it", async () => {
    const { server, host } = await startSession();
    server.restart();
    host.send({ method: "notifications/roots/list_changed" });
    await until(() => host.warnings.length > 0);
    expect(host.warnings).toEqual(['"notifications/roots/list_changed": Session not found']);
  });

  it("begins it at once where no other request is left", async () => {
    const { server, host } = await startSession();
    const settle = vi.spyOn(AbortSignal, "timeout").mockReturnValue(new AbortController().signal);
    onTestFinished(() => settle.mockRestore());
    server.restart();
    expect((await host.ask(1, "ping")).result).toEqual({});
    expect(settle).toHaveBeenCalledWith(1000);
  });

  it("fails a request that may have been processed, and does not send it again", async () => {
    const { server, host } = await startSession({
      answer: (response, { id, params }) => (params?.["name"] === "slow" ? undefined : sendResult(response, id)),
    });
    const slow = host.call(1, "slow");
    await until(() => server.of("tools/call").length === 1);
    server.restart();
    expect((await host.ask(2, "ping")).result).toEqual({});
    expect((await slow).error).toMatchObject({
      code: -32_603,
      message: expect.stringContaining("before the response arrived: the request may have been processed"),
      data: { code: "connection_reset", class: "unavailable" },
    });
    expect(server.of("tools/call")).toHaveLength(1);
  });

  it("repeats subscriptions and the log level in the new session", async () => {
    const { server, host } = await startSession();
    await host.ask(1, "resources/subscribe", { uri: "a://1" });
    await host.ask(2, "resources/subscribe", { uri: "a://2" });
    await host.ask(3, "resources/unsubscribe", { uri: "a://1" });
    await host.ask(4, "logging/setLevel", { level: "info" });
    await host.ask(5, "logging/setLevel", { level: "error" });
    server.restart();
    const before = host.received.length;
    await host.ask(6, "ping");
    expect(host.received).toHaveLength(before + 1);
    const repeated = server.calls.filter(({ session, http }) => session === "session-2" && http === "POST");
    expect(repeated.map(({ method, params }) => [method, params])).toEqual([
      ["notifications/initialized", undefined],
      ["resources/subscribe", { uri: "a://2" }],
      ["logging/setLevel", { level: "error" }],
      ["ping", {}],
    ]);
  });

  it("cancels the server's open requests at the host, and drops late responses to them", async () => {
    const { server, host } = await startSession();
    const ask = { jsonrpc: "2.0", id: 0, method: "sampling/createMessage", params: { messages: [] } };
    server.streams[0]?.write(`data: ${JSON.stringify(ask)}\n\n`);
    await until(() => host.received.some(({ method }) => method === "sampling/createMessage"));
    server.restart();
    await host.ask(1, "ping");
    const cancelled = host.received.filter(({ method }) => method === "notifications/cancelled");
    expect(cancelled.map(({ params }) => params?.["requestId"])).toEqual([0]);
    host.send({ id: 0, result: { late: true } });
    await host.ask(2, "ping");
    expect(server.calls.filter((call) => "result" in call)).toEqual([]);
    await until(() => server.streams.length === 2);
    server.streams[1]?.write(`data: ${JSON.stringify(ask)}\n\n`);
    await until(() => host.received.filter(({ method }) => method === "sampling/createMessage").length === 2);
    host.send({ id: 0, result: { late: false } });
    await until(() => server.calls.some((call) => "result" in call));
  });

  it("sends no response to a request of the lost session as that to one of the new session with its id", async () => {
    const { server, host } = await startSession();
    const ask = { jsonrpc: "2.0", id: 0, method: "sampling/createMessage", params: { messages: [] } };
    const requested = () => host.received.filter(({ method }) => method === ask.method).map(({ id }) => id);
    server.streams[0]?.write(`data: ${JSON.stringify(ask)}\n\n`);
    await until(() => requested().length === 1);
    server.restart();
    await host.ask(1, "ping");
    await until(() => server.streams.length === 2);
    server.streams[1]?.write(`data: ${JSON.stringify(ask)}\n\n`);
    await until(() => requested().length === 2);
    const [, other = 0] = requested();
    host.send({ id: 0, result: { of: "the lost session" } });
    host.send({ id: other, result: { of: "the new session" } });
    const responses = () => server.calls.filter((call) => "result" in call);
    await until(() => responses().length > 0);
    await host.ask(2, "ping");
    expect(responses()).toMatchObject([{ id: 0, session: "session-2", result: { of: "the new session" } }]);
  });

  it("answers what the new session asks while it begins there, and forwards no request of the lost one then", async () => {
    let go = () => {};
    const ask = (id: number) => ({ jsonrpc: "2.0", id, method: "roots/list" });
    const { server, host } = await startSession({
      answer(response, call) {
        if (call.method !== "logging/setLevel" || call.session === "session-1") return sendResult(response, call.id);
        response.writeHead(200, EVENTS).write(`data: ${JSON.stringify(ask(7))}\n\n`);
        go = () => void response.end(`data: ${JSON.stringify({ jsonrpc: "2.0", id: call.id, result: {} })}\n\n`);
        return undefined;
      },
    });
    await host.ask(1, "logging/setLevel", { level: "info" });
    server.restart();
    const after = host.ask(2, "ping");
    const requested = () => host.received.filter(({ method }) => method === "roots/list").map(({ id }) => id);
    await until(() => requested().length === 1);
    const note = { jsonrpc: "2.0", method: "notifications/tools/list_changed" };
    for (const message of [ask(8), note]) server.streams[0]?.write(`data: ${JSON.stringify(message)}\n\n`);
    await until(() => host.received.some(({ method }) => method === note.method));
    host.send({ id: 7, result: { roots: [] } });
    await until(() => server.calls.some((call) => "result" in call));
    go();
    await after;
    expect(requested()).toEqual([7]);
    expect(server.calls.filter((call) => "result" in call)).toMatchObject([{ id: 7, session: "session-2" }]);
  });

  it("does not send a request that the host cancels while the new session begins", async () => {
    let go = () => {};
    const { server, host } = await startSession({
      initialize(response, call, session) {
        if (session === "session-1") return sendSession(response, call, session);
        go = () => sendSession(response, call, session);
        return undefined;
      },
    });
    server.restart();
    host.send({ id: 1, method: "tools/call", params: { name: "x" } });
    await until(() => server.of("initialize").length === 2);
    host.send({ method: "notifications/roots/list_changed" });
    host.send({ id: 2, method: "ping" });
    host.send({ method: "notifications/cancelled", params: { requestId: 1 } });
    await until(() => host.log.filter((line) => line.startsWith("host:")).length === 6);
    go();
    expect((await host.answerTo(2)).result).toEqual({});
    expect(server.of("tools/call").map(({ session }) => session)).toEqual(["session-1"]);
    expect(server.of("notifications/roots/list_changed").map(({ session }) => session)).toEqual(["session-2"]);
    expect(server.of("notifications/cancelled")).toEqual([]);
    expect(host.warnings).toEqual([]);
  });

  it("ends while the new session begins, if the host closes its input", async () => {
    let unanswered: ServerResponse | undefined;
    const { server, host } = await startSession({
      initialize(response, call, session) {
        if (session === "session-1") sendSession(response, call, session);
        else unanswered = response;
      },
    });
    server.restart();
    host.send({ id: 1, method: "ping" });
    await until(() => server.of("initialize").length === 2);
    host.end();
    await host.done;
    await until(() => unanswered?.destroyed === true);
    expect((await host.answerTo(1)).error?.message).toContain("the proxy has ended");
  });

  it("leaves the session to a host that begins a new one", async () => {
    const { server, host } = await startSession();
    server.restart();
    host.send({ id: 1, method: "ping" });
    expect((await host.begin()).result?.["protocolVersion"]).toBe("2025-11-25");
    await host.answerTo(1);
    expect((await host.ask(2, "ping")).result).toEqual({});
    expect(server.of("ping").at(-1)?.session).toBe(
      server.calls.findLast(({ method }) => method === "notifications/initialized")?.session,
    );
  });

  it("leaves the session to a host that begins a new one before it knows", async () => {
    let reject = () => {};
    let begin = () => {};
    const { server, host } = await startSession({
      lost: (response, call) => {
        reject = () => sessionNotFound(response, call);
      },
      initialize(response, call, session) {
        begin = () => sendSession(response, call, session);
        if (session === "session-1") begin();
      },
    });
    server.restart();
    host.send({ id: 1, method: "ping" });
    await until(() => server.of("ping").length === 1);
    host.send({ id: 2, method: "initialize", params: HELLO });
    await until(() => server.of("initialize").length === 2);
    reject();
    expect((await host.answerTo(1)).error?.message).toContain("has ended the session");
    begin();
    expect((await host.answerTo(2)).result).toBeDefined();
    expect(server.of("initialize")).toHaveLength(2);
  });

  it("keeps the new session when the old one rejects a cancelled request late", async () => {
    const late: (() => void)[] = [];
    const { server, host } = await startSession({
      lost: (response, call) => {
        const send = () => sessionNotFound(response, call);
        if (call.params?.["name"] === "late") late.push(send);
        // The proxy closes a cancelled request when the server has answered the cancellation.
        else if (call.method !== "notifications/cancelled") send();
      },
      // Longer than the requests of a lost session may take to fail.
      answer: (response, { id }) => setTimeout(() => sendResult(response, id), id === 3 ? 1200 : 0),
    });
    server.restart();
    host.send({ id: 1, method: "tools/call", params: { name: "late" } });
    await until(() => late.length === 1);
    host.send({ method: "notifications/cancelled", params: { requestId: 1 } });
    expect((await host.ask(2, "ping")).result).toEqual({});
    const slow = host.ask(3, "ping");
    await until(() => server.of("ping").some(({ id }) => id === 3));
    late[0]?.();
    expect((await slow).result).toEqual({});
    expect(server.of("initialize")).toHaveLength(2);
  });

  it("begins none for a request that has no session", async () => {
    const { server, host } = await startSession();
    server.restart();
    const _meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28" };
    expect((await host.ask(1, "ping", { _meta })).error).toBeDefined();
    expect(server.of("initialize")).toHaveLength(1);
  });

  it("repeats nothing of a session that the host has left", async () => {
    const { server, host } = await startSession();
    await host.ask(1, "resources/subscribe", { uri: "a://1" });
    await host.ask("again", "initialize", HELLO);
    server.restart();
    await host.ask(2, "ping");
    expect(server.of("resources/subscribe")).toHaveLength(1);
  });

  it("begins none if the proxy ends first", async () => {
    const { server, host } = await startSession({ answer: () => undefined });
    host.send({ id: 1, method: "tools/call", params: { name: "slow" } });
    await until(() => server.of("tools/call").length === 1);
    server.restart();
    host.send({ id: 2, method: "ping" });
    await until(() => host.log.includes("server: the session is lost, and a new one begins"));
    host.stop.abort();
    await host.done;
    expect(server.of("initialize")).toHaveLength(1);
  });
});

describe("the proxy and a server that loses every session", () => {
  it("begins one new session for each request that fails", async () => {
    const { server, host } = await startSession();
    for (const id of [1, 2]) {
      server.restart();
      const { error } = await host.ask(id, "ping");
      expect(error).toBeUndefined();
    }
    expect(server.of("initialize")).toHaveLength(3);
  });

  it("reports it after one new session: no loop", async () => {
    const { server, host } = await startSession({ answer: sessionNotFound });
    const { error } = await host.ask(1, "ping");
    expect(error?.message).toContain("has ended the session, or was restarted (HTTP 404)");
    expect([server.of("initialize").length, server.of("ping").length]).toEqual([2, 2]);
  });

  it("tries again for the next request if the new session has answered none", async () => {
    let isUp = true;
    const { server, host } = await startSession({
      answer: (response, call) => (isUp ? sendResult(response, call.id) : sessionNotFound(response, call)),
    });
    await host.ask(1, "ping");
    isUp = false;
    expect((await host.ask(2, "ping")).error?.message).toContain("HTTP 404");
    isUp = true;
    server.restart();
    expect((await host.ask(3, "ping")).result).toEqual({});
  });

  it("gives a method that failed another chance in the next session", async () => {
    let isUp = false;
    const { server, host } = await startSession({
      answer: (response, call) =>
        call.method === "prompts/list" && !isUp ? sessionNotFound(response, call) : sendResult(response, call.id),
    });
    expect((await host.ask(1, "prompts/list")).error).toBeDefined();
    server.restart();
    await host.ask(2, "ping");
    isUp = true;
    server.restart();
    expect((await host.ask(3, "prompts/list")).result).toEqual({});
  });

  it("gives a method that failed and was answered later another chance in the same session", async () => {
    let isUp = false;
    const { server, host } = await startSession({
      answer: (response, call) =>
        call.method === "prompts/list" && !isUp ? sessionNotFound(response, call) : sendResult(response, call.id),
    });
    expect((await host.ask(1, "prompts/list")).error).toBeDefined();
    await host.ask(2, "ping");
    isUp = true;
    expect((await host.ask(3, "prompts/list")).result).toEqual({});
    server.restart();
    expect((await host.ask(4, "prompts/list")).result).toEqual({});
  });

  it("keeps a session that works for other methods", async () => {
    const { server, host } = await startSession({
      answer: (response, call) =>
        call.method === "prompts/list" ? sessionNotFound(response, call) : sendResult(response, call.id),
    });
    expect((await host.ask(1, "prompts/list")).error?.message).toContain("HTTP 404");
    await host.ask(2, "ping");
    expect((await host.ask(3, "prompts/list")).error?.message).toContain("HTTP 404");
    expect([server.of("initialize").length, server.of("prompts/list").length]).toEqual([2, 3]);
  });

  it("asks a server without sessions for none", async () => {
    const server = await startLossyServer({
      initialize: (response, { id, params }) =>
        sendResult(response, id, { protocolVersion: params?.["protocolVersion"], capabilities: {} }),
    });
    const host = startHost(server.url);
    await host.begin();
    expect((await host.ask(1, "ping")).error?.message).toContain("Session not found");
    expect(server.of("initialize")).toHaveLength(1);
  });
});

describe("the proxy and a server whose new session is another one", () => {
  const second = (answer: LossyOptions["initialize"]): LossyOptions => ({
    initialize: (response, call, session) =>
      session === "session-1" ? sendSession(response, call, session) : answer?.(response, call, session),
  });

  it.each<[string, LossyOptions["initialize"], string]>([
    [
      "speaks another revision",
      (response, call, session) => sendSession(response, call, session, { protocolVersion: "2025-03-26" }),
      'its protocol revision is no longer "2025-11-25"; restart this server in the host',
    ],
    [
      "is refused",
      (response, { id }) => sendJson(response, { jsonrpc: "2.0", id, error: { code: 1, message: "\u001b[2Jfull" } }),
      'a new one cannot replace it: "\\\\e[2Jfull"; restart',
    ],
    ["is refused with 404", (response, call) => sessionNotFound(response, call), "(HTTP 404)"],
    ["gets no answer", (response) => response.writeHead(202).end(), 'no response to "initialize"'],
    ["gets an empty stream", (response) => response.writeHead(200, EVENTS).end(), 'no response to "initialize"'],
    [
      "gets the answer to another request",
      (response, call, session) => sendSession(response, { ...call, id: 1 }, session),
      'no response to "initialize"',
    ],
    [
      "has the id of the lost one",
      (response, call) => sendSession(response, call, "session-1"),
      "has ended the session, or was restarted (HTTP 404)",
    ],
  ])("fails the request, and tries again for the next one: %s", async (_what, answer, message) => {
    const { server, host } = await startSession(second(answer));
    server.restart();
    for (const id of [1, 2]) {
      const { error } = await host.ask(id, "ping");
      expect(error?.message).toMatch(new RegExp(message.replace(/[[()]/g, "\\$&")));
      const known = message.includes("404")
        ? { status: 404 }
        : { class: expect.stringMatching(/^remote$|^unavailable$/) };
      expect(error?.data).toMatchObject(known);
    }
    expect(server.of("initialize")).toHaveLength(3);
    expect(server.of("ping").every(({ session }) => session === "session-1")).toBe(true);
  });

  it("gives up on a server that opens a stream and says nothing", async () => {
    speedUpTimers(60);
    const { server, host } = await startSession(
      second((response) => void response.writeHead(200, EVENTS).flushHeaders()),
    );
    server.restart();
    expect((await host.ask(1, "ping")).error?.message).toContain('no response to "initialize"');
  });

  it("closes the stream of its response, and warns of what the new session refuses", async () => {
    let stream: ServerResponse | undefined;
    const { server, host } = await startSession({
      initialize(response, call, session) {
        if (session === "session-1") return sendSession(response, call, session);
        const result = { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "s", version: "1" } };
        response.writeHead(200, { ...EVENTS, "mcp-session-id": session });
        response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id: call.id, result })}\n\n`);
        stream = response;
        return undefined;
      },
      answer: (response, { id, method, session }) =>
        method === "resources/subscribe" && session === "session-2"
          ? sendJson(response, { jsonrpc: "2.0", id, error: { code: 1, message: "no" } })
          : sendResult(response, id),
    });
    await host.ask(1, "resources/subscribe", { uri: "a://1" });
    server.restart();
    expect((await host.ask(2, "ping")).result).toEqual({});
    await until(() => stream?.destroyed === true);
    expect(host.warnings).toEqual(['"resources/subscribe": the server refuses it in its new session']);
  });

  it("takes a session only from the response to initialize", async () => {
    const { server, host } = await startSession({
      answer(response, { id }) {
        response.writeHead(200, { "content-type": "application/json", "mcp-session-id": "session-of-another" });
        response.end(JSON.stringify({ jsonrpc: "2.0", id, result: {} }));
      },
    });
    await host.ask(1, "ping");
    await host.ask(2, "ping");
    expect(server.of("ping").map(({ session }) => session)).toEqual(["session-1", "session-1"]);
  });
});

describe("the proxy and the revision of the host", () => {
  it("sends a second initialize without the revision of the first", async () => {
    const { server, host } = await startSession();
    await host.ask(1, "initialize", { ...HELLO, protocolVersion: "2025-03-26" });
    await host.ask(2, "ping");
    const [, again] = server.of("initialize");
    expect(again?.headers["mcp-protocol-version"]).toBeUndefined();
    expect(again?.params?.["protocolVersion"]).toBe("2025-03-26");
    expect(server.of("ping").at(-1)?.headers["mcp-protocol-version"]).toBe("2025-03-26");
  });

  it("leaves a revision that the server refuses to the host", async () => {
    const error = { code: -32_602, message: "Unsupported protocol version", data: { supported: ["2025-03-26"] } };
    const server = await startLossyServer({
      initialize: (response, call, session) =>
        call.params?.["protocolVersion"] === "2025-03-26"
          ? sendSession(response, call, session)
          : sendJson(response, { jsonrpc: "2.0", id: call.id, error }, 400),
    });
    const host = startHost(server.url);
    expect((await host.ask(1, "initialize", HELLO)).error).toEqual(error);
    expect((await host.ask(2, "initialize", { ...HELLO, protocolVersion: "2025-03-26" })).result).toBeDefined();
    expect(server.of("initialize").map(({ params }) => params?.["protocolVersion"])).toEqual([
      "2025-11-25",
      "2025-03-26",
    ]);
  });
});

const event = (message: object) => `data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`;

describe("the proxy after a new session that could not begin", () => {
  it("forwards what the server asks in the lost one, and the response to it", async () => {
    const { server, host } = await startSession({
      initialize: (response, call, session) =>
        session === "session-1" ? sendSession(response, call, session) : response.writeHead(500).end(),
    });
    server.restart();
    expect((await host.ask(1, "ping")).error).toBeDefined();
    server.streams[0]?.write(event({ id: 9, method: "roots/list" }));
    await until(() => host.received.some(({ method }) => method === "roots/list"));
    host.send({ id: 9, result: { roots: [] } });
    await until(() => server.calls.some((call) => "result" in call));
    expect(server.calls.find((call) => "result" in call)).toMatchObject({ id: 9, session: "session-1" });
  });

  it("closes the stream of the new one", async () => {
    const { server, host } = await startSession({
      async answer(response, { id, session }) {
        if (session === "session-1") return sendJson(response, { jsonrpc: "2.0", id, result: {} });
        await until(() => server.streams.length === 2);
        return response.writeHead(500).end();
      },
    });
    await host.ask(1, "resources/subscribe", { uri: "a://1" });
    server.restart();
    expect((await host.ask(2, "ping")).error).toBeDefined();
    await until(() => server.streams[1]?.destroyed === true);
  });

  it("reports a stream that ends before its response", async () => {
    let stream: ServerResponse | undefined;
    const { server, host } = await startSession({
      initialize(response, call, session) {
        if (session === "session-1") return sendSession(response, call, session);
        stream = response.writeHead(200, { ...EVENTS, "mcp-session-id": session });
        return stream.write(event({ method: "notifications/message", params: { level: "info", data: "soon" } }));
      },
    });
    server.restart();
    const answer = host.ask(1, "ping");
    await until(() => host.received.some(({ method }) => method === "notifications/message"));
    stream?.end();
    expect((await answer).error?.message).toContain('no response to "initialize"');
  }, 10_000);
});

it("the proxy closes the stream of a session that begins when the host closes its input", async () => {
  const { server, host } = await startSession({
    answer: (response, { id, session }) =>
      session === "session-1" ? sendJson(response, { jsonrpc: "2.0", id, result: {} }) : undefined,
  });
  await host.ask(1, "resources/subscribe", { uri: "a://1" });
  server.restart();
  host.send({ id: 2, method: "ping" });
  await until(() => server.streams.length === 2);
  host.end();
  await host.done;
  await until(() => server.streams[1]?.destroyed === true);
}, 10_000);

it("the proxy gives a method that failed another chance where the session has only been initialized again", async () => {
  const { server, host } = await startSession({ answer: (response, call) => sessionNotFound(response, call) });
  expect((await host.ask(1, "prompts/list")).error).toBeDefined();
  await host.begin();
  expect((await host.ask(2, "prompts/list")).error).toBeDefined();
  expect(server.of("initialize")).toHaveLength(4);
});

const ping = (id: number): RpcMessage => ({ jsonrpc: "2.0", id, method: "ping" });
const answer = (id: string | number): RpcResponse => ({ jsonrpc: "2.0", id, result: {} });
const cancel = (requestId: unknown): RpcMessage => ({
  jsonrpc: "2.0",
  method: "notifications/cancelled",
  params: { requestId, reason: "no need" },
});

/** Two requests of a lost session, which the new session repeats. */
function repeated() {
  const requests = new ServerRequests();
  for (const id of [1, 2]) requests.toHost(ping(id));
  expect(requests.lose()).toEqual([1, 2]);
  expect([1, 2].map((id) => requests.toHost(ping(id)).id)).toEqual(["agentauth-1", "agentauth-2"]);
  return requests;
}

describe("the requests of a server that repeats ids", () => {
  it("get ids of their own, and their responses the ids of the server", () => {
    const requests = repeated();
    expect(requests.toServer(answer("agentauth-2"))).toEqual(answer(2));
    expect(requests.toServer(answer("agentauth-1"))).toEqual(answer(1));
    expect([1, 2].map((id) => requests.toServer(answer(id)))).toEqual([undefined, undefined]);
  });

  it("keep their ids again once the late response to the lost one has come", () => {
    const requests = repeated();
    expect(requests.toServer(answer(1))).toBeUndefined();
    expect(requests.toHost(ping(1)).id).toBe(1);
  });

  it("are lost once: what is answered is not open any more", () => {
    const requests = repeated();
    requests.toServer(answer("agentauth-1"));
    expect(requests.lose()).toEqual(["agentauth-2"]);
    expect(requests.lose()).toEqual([]);
  });

  it("are cancelled by the id that the host knows, each by its own", () => {
    const requests = repeated();
    requests.toHost(ping(3));
    expect(requests.toHost(cancel(2))).toEqual(cancel("agentauth-2"));
    for (const id of [3, 4, undefined]) expect(requests.toHost(cancel(id))).toEqual(cancel(id));
  });

  it("are named by no other notification", () => {
    const progress: RpcMessage = { jsonrpc: "2.0", method: "notifications/progress", params: { requestId: 2 } };
    expect(repeated().toHost(progress)).toEqual(progress);
  });
});

describe("what a new session repeats", () => {
  /** A session after a response of the server. */
  const outcomeOf = (method: string, result: unknown) => {
    const nothing = () => undefined;
    const session = new ServerSession({
      ...{ url: "https://mcp.example/mcp", fetch: async () => new Response(), maxBytes: 1000, mask: (text) => text },
      ...{ ready: nothing, onWarning: nothing, onLog: nothing, onMessage: nothing },
    });
    session.http.sessionId = "session-1";
    const request = { jsonrpc: "2.0", id: 1, method } as const;
    session.onResponse(request, { jsonrpc: "2.0", id: 1, result } as RpcResponse);
    return { revision: session.http.revision, isReplaceable: session.isReplaceable(session.http, request) };
  };

  it.each([
    ["another method", "tools/list", { protocolVersion: "2025-11-25" }],
    ["an initialize without a revision", "initialize", {}],
    ["an initialize with a revision that is no text", "initialize", { protocolVersion: 1 }],
    ["an initialize without a result", "initialize", null],
  ])("is no agreement of %s", (_what, method, result) => {
    expect(outcomeOf(method, result)).toEqual({ revision: undefined, isReplaceable: false });
  });

  it("is the agreement of an initialize", () => {
    expect(outcomeOf("initialize", { protocolVersion: "2025-11-25" })).toEqual({
      revision: "2025-11-25",
      isReplaceable: true,
    });
  });
});
