import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { sendJson, until } from "../helpers/server.js";
import { EVENTS, type LossyOptions, sendSession, sessionNotFound, startLossyServer } from "./lossy-server.js";
import { startHost } from "./stdio-host.js";

/** A host with a session whose notification stream is open. */
async function startSession(options: LossyOptions) {
  const server = await startLossyServer(options);
  const host = startHost(server.url);
  await host.begin();
  await until(() => server.streams.length === 1);
  return { server, host };
}

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
