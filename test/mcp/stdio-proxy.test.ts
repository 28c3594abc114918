import { Readable } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { createStdioWriter, readLines } from "../../src/mcp/stdio.js";
import { until } from "../helpers/server.js";
import { type SessionServer, type SessionServerOptions, startSessionServer } from "./session-server.js";
import { HELLO, startHost } from "./stdio-host.js";

const started: SessionServer[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.close()));
});

async function startServer(options: SessionServerOptions = {}): Promise<SessionServer> {
  const server = await startSessionServer(options);
  started.push(server);
  return server;
}

/** A host that has initialized a session. */
async function startSession(options: SessionServerOptions = {}) {
  const server = await startServer(options);
  const host = startHost(server.url);
  await host.begin();
  await until(() => server.calls.some(({ rpc }) => rpc === "notifications/initialized"));
  return { server, host };
}

describe.each([{ json: false }, { json: true }])(
  "the proxy and a server with sessions (JSON responses: $json)",
  (kind) => {
    it("forwards requests and responses, whatever their ids", async () => {
      const { host } = await startSession(kind);
      expect((await host.ask(0, "tools/list")).result?.["tools"]).toHaveLength(4);
      expect((await host.ask("zero", "ping")).result).toEqual({});
      expect(await host.ask(7, "no/such")).toEqual({
        jsonrpc: "2.0",
        id: 7,
        error: expect.objectContaining({ code: -32_601 }),
      });
      expect(host.warnings).toEqual([]);
    });

    it("sends session and revision after initialize, and ends the session", async () => {
      const { server, host } = await startSession(kind);
      await host.ask(1, "ping");
      host.end();
      await host.done;
      const [first, ...others] = server.calls;
      expect([first?.rpc, first?.headers["mcp-session-id"]]).toEqual(["initialize", undefined]);
      expect(new Set(others.map(({ headers }) => headers["mcp-session-id"])).size).toBe(1);
      expect(new Set(others.map(({ headers }) => headers["mcp-protocol-version"]))).toEqual(new Set(["2025-11-25"]));
      expect(others.at(-1)?.method).toBe("DELETE");
      expect(server.sessions.size).toBe(0);
    });

    it("keeps the order of the handshake when the host sends everything at once", async () => {
      const server = await startServer(kind);
      const host = startHost(server.url);
      host.send({ id: 0, method: "initialize", params: HELLO });
      host.send({ method: "notifications/initialized" });
      for (const id of [1, 2, 3]) host.send({ id, method: "tools/list" });
      host.end();
      await host.done;
      expect(host.received.map(({ error }) => error)).toEqual([undefined, undefined, undefined, undefined]);
      expect(host.warnings).toEqual([]);
      const [first, second] = server.calls.map(({ rpc }) => rpc);
      expect([first, second]).toEqual(["initialize", "notifications/initialized"]);
    });

    it("cancels a request that the host cancels, and sends no response to it", async () => {
      const { server, host } = await startSession(kind);
      host.send({ id: 5, method: "tools/call", params: { name: "hold" } });
      await until(() => server.held.length === 1);
      host.send({ method: "notifications/cancelled", params: { requestId: 5, reason: "changed my mind" } });
      await until(() => server.cancelled.length === 1);
      server.release();
      await host.ask(6, "ping");
      expect(server.cancelled).toEqual(["5"]);
      expect(host.received.some(({ id }) => id === 5)).toBe(false);
      expect(host.warnings).toEqual([]);
    });

    it("answers pending requests with an error when the server is gone, and still sends later ones", async () => {
      const { server, host } = await startSession(kind);
      const waiting = [1, 2, 3].map((id) => host.call(id, "hold"));
      await until(() => server.held.length === 3);
      await server.close();
      for (const { error } of await Promise.all(waiting)) {
        expect(error?.code).toBe(-32_603);
        expect(error?.message).toMatch(/127\.0\.0\.1/);
      }
      expect((await host.ask(4, "ping")).error?.message).toMatch(/fetch failed|refused/);
      await startServer({ ...kind, port: server.port });
      expect((await host.ask(5, "ping")).result).toEqual({});
      expect((await host.begin()).result?.["protocolVersion"]).toBe("2025-11-25");
      expect((await host.ask(6, "ping")).result).toEqual({});
    });

    it("answers pending requests when the signal fires, and ends the session", async () => {
      const { server, host } = await startSession(kind);
      const waiting = host.call(1, "hold");
      await until(() => server.held.length === 1);
      host.stop.abort();
      await host.done;
      expect((await waiting).error?.message).toContain("the proxy has ended");
      expect(server.calls.at(-1)?.method).toBe("DELETE");
    });
  },
);

describe("the proxy and a server that streams", () => {
  it("forwards progress before the result, in order", async () => {
    const { host } = await startSession();
    await host.call(1, "count", {}, { progressToken: "p" });
    const passed = host.received.filter(({ id, method }) => id === 1 || method === "notifications/progress");
    expect(passed.map(({ params, result }) => params?.["progress"] ?? result?.content?.[0]?.text)).toEqual([
      1,
      2,
      3,
      "counted",
    ]);
  });

  it("forwards requests of the server, and the responses of the host", async () => {
    const { host } = await startSession();
    const requested = host.call(1, "ask");
    await until(() => host.received.some(({ method }) => method === "sampling/createMessage"));
    const { id } = host.received.find(({ method }) => method === "sampling/createMessage") ?? {};
    const content = { type: "text", text: "yes" };
    host.send({ id, result: { role: "assistant", content, model: "none" } });
    expect((await requested).result?.content?.[0]?.text).toBe(`the host said ${JSON.stringify(content)}`);
  });

  it("forwards notifications of the server", async () => {
    const { server, host } = await startSession();
    await until(() => server.calls.some(({ method }) => method === "GET") && server.openResponses() === 1);
    await server.servers[0]?.sendToolListChanged();
    await until(() => host.received.some(({ method }) => method === "notifications/tools/list_changed"));
  });

  it("resumes a broken stream, if the server supports it, and loses no message", async () => {
    const { server, host } = await startSession({ resumable: true });
    const answer = host.call(1, "hold");
    await until(() => host.received.some(({ method }) => method === "notifications/progress"));
    server.breakOff();
    await until(() => server.calls.some(({ headers }) => headers["last-event-id"] !== undefined));
    server.release();
    expect((await answer).result?.content?.[0]?.text).toBe("released");
    expect(host.received.filter(({ id }) => id === 1)).toHaveLength(1);
    expect(host.warnings).toEqual([]);
  });

  it("closes the HTTP request of a cancelled request", async () => {
    const { server, host } = await startSession();
    await until(() => server.openResponses() === 1);
    host.send({ id: 5, method: "tools/call", params: { name: "hold" } });
    await until(() => server.held.length === 1);
    expect(server.openResponses()).toBe(2);
    host.send({ method: "notifications/cancelled", params: { requestId: 5 } });
    await until(() => server.openResponses() === 1);
  });
});

const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
};

it.each([1, 2, 3, 5, 100])(
  "the lines of the host are read whole from pieces of %i bytes, but those that are too long",
  async (size) => {
    const text = "é\n\n12345678\n123456789\nend";
    const bytes = Buffer.from(text);
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, nth) =>
      bytes.subarray(nth * size, (nth + 1) * size),
    );
    const lines: (string | undefined)[] = [];
    for await (const line of readLines(Readable.from(pieces), 8)) lines.push(line);
    expect(lines).toEqual(["é", "", "12345678", undefined, "end"]);
  },
);

it("the lines of a host may come as texts", async () => {
  const lines: (string | undefined)[] = [];
  for await (const line of readLines(Readable.from(["a\nb", "c\n"]), 8)) lines.push(line);
  expect(lines).toEqual(["a", "bc"]);
});

describe("the writer to the host", () => {
  it("is ready up to a mebibyte that is not written, and again when it is", async () => {
    const written: string[] = [];
    let write = () => {};
    const writer = createStdioWriter(
      (text) =>
        new Promise((resolve) => {
          written.push(text);
          write = resolve;
        }),
      () => {},
    );
    const message = { jsonrpc: "2.0", method: "" } as const;
    const rest = 1024 * 1024 - JSON.stringify(message).length - 1;
    writer.send({ ...message, method: "x".repeat(rest) });
    expect(writer.ready()).toBeUndefined();
    writer.send(message);
    const ready = writer.ready();
    expect(ready).toBeInstanceOf(Promise);
    await turns(1);
    write();
    await turns(5);
    expect(writer.ready()).toBeUndefined();
    write();
    await ready;
    await writer.flushed();
    expect(written.map((text) => [text.length, text.at(-1)])).toEqual([
      [1024 * 1024, "\n"],
      [JSON.stringify(message).length + 1, "\n"],
    ]);
  });

  it("is ready again when the host has read, for one after the other", async () => {
    const pendingWrites: (() => void)[] = [];
    const writer = createStdioWriter(
      () => new Promise((resolve) => pendingWrites.push(resolve)),
      () => {},
    );
    const message = { jsonrpc: "2.0", method: "x".repeat(512 * 1024) } as const;
    for (let n = 0; n < 3; n++) writer.send(message);
    const ready: number[] = [];
    for (let nth = 0; nth < 4; nth++) void writer.ready()?.then(() => ready.push(nth));
    await turns(20);
    expect(ready).toEqual([]);
    const write = async () => {
      pendingWrites.shift()?.();
      await turns(2);
    };
    while (ready.length === 0) await write();
    expect(ready).toEqual([0]);
    // What has begun goes on; what has not waits behind the others.
    expect(writer.ready(true)).toBeUndefined();
    void writer.ready()?.then(() => ready.push(4));
    writer.send(message);
    while (ready.length === 1) await write();
    expect(ready).toEqual([0, 1]);
    // Nothing comes of it, and the others do not wait for that.
    await until(() => ready.length === 5);
    expect(ready).toEqual([0, 1, 2, 3, 4]);
    while (pendingWrites.length > 0) await write();
    await writer.flushed();
  });

  it("reports a closed pipe once, and drops later messages", async () => {
    const failures: unknown[] = [];
    let written = 0;
    const writer = createStdioWriter(
      async () => {
        written += 1;
        throw new Error("EPIPE");
      },
      (error) => failures.push(error),
    );
    for (let n = 0; n < 3; n++) writer.send({ jsonrpc: "2.0", method: "x" });
    await until(() => failures.length > 0);
    await writer.flushed();
    expect([failures.length, written]).toEqual([1, 1]);
  });
});
