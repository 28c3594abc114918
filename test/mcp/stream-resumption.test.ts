import type { ServerResponse } from "node:http";
import { afterEach, expect, it, vi } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import { systemClock } from "../../src/http/deadline.js";
import { openMcp } from "../../src/mcp/session.js";
import { pendingError } from "../helpers/captured.js";
import { startServer } from "../helpers/server.js";
import { startOfficialServer } from "./official-server.js";
import { sendResult } from "./plain-server.js";

const { signal } = new AbortController();
const EVENTS = { "content-type": "text/event-stream" };
const PLACE = "id: 1\nretry: 1\ndata:\n\n";

const open = (url: string, send: typeof fetch = fetch) =>
  openMcp(url, { fetch: send, name: "test", version: "1", signal, timeoutMs: 5000 });

/** The result of a call as an event. */
const resultOf = (id: unknown) => `data: ${JSON.stringify({ jsonrpc: "2.0", id, result: { content: [] } })}\n\n`;

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
  await server.close();
});

it("resumes a stream whose connection our own fetch reports as broken", async () => {
  const broken = new AgentAuthError("connection_reset", "the connection broke", { class: "unavailable" });
  const { call, places, close } = await startStreams(
    () => PLACE,
    (response, id) => response.writeHead(200, EVENTS).end(resultOf(id)),
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
  await server.close();
});

it("waits as long as the server asks, and at most ten seconds", async () => {
  const sleep = vi.spyOn(systemClock, "sleep").mockResolvedValue(undefined);
  const server = await startStreams(
    () => "id: 1\nretry: 7000\ndata:\n\n",
    (response, id) => {
      const isFirst = server.places().length === 1;
      response.writeHead(200, EVENTS).end(isFirst ? "retry: 3600000\ndata:\n\n" : resultOf(id));
    },
  );
  expect(await server.call()).toEqual({ content: [] });
  // What an earlier file of this worker left behind may sleep by the same clock.
  const waits = sleep.mock.calls.map(([milliseconds]) => milliseconds).filter((milliseconds) => milliseconds >= 7000);
  expect(waits).toEqual([7000, 10_000]);
  await server.close();
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
  await server.close();
});

it("takes neither an event of another type nor the response to another request", async () => {
  const other = (id: unknown) => resultOf(`not ${id}`).replace("[]", '[{ "type": "text", "text": "wrong" }]');
  const server = await startStreams(
    (id) => `event: note\n${other(id)}event: note\ndata: {\n\n${other(id)}${resultOf(id)}`,
    () => undefined,
  );
  expect(await server.call()).toEqual({ content: [] });
  await server.close();
});
