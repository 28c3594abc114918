import { randomBytes, randomUUID } from "node:crypto";
import { channel, subscribe } from "node:diagnostics_channel";
import { getEventListeners, once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Readable } from "node:stream";
import { setTimeout, setImmediate as turnOfTheEventLoop } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { brotliCompressSync, constants, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { HttpRequest, type HttpResponse } from "../../../src/http/http-message.js";
import { networkError } from "../../../src/http/network-error.js";
import type { SsrfGuard } from "../../../src/http/node/agents.js";
import { createSend, decodeContent, type PlainRequest, publish } from "../../../src/http/node/http-send.js";
import { createFetch } from "../../../src/http/node/network.js";
import { sendJson, startServer, startSocketServer, until } from "../../helpers/server.js";
import { rejection } from "../../helpers/service.js";

/** A text that gzip has packed several times. */
const packed = (times: number): Buffer => (times === 0 ? Buffer.from("text") : gzipSync(packed(times - 1)));

function credentialsOf(headers: IncomingHttpHeaders) {
  return { token: headers.authorization, proxy: headers["proxy-authorization"], cookie: headers.cookie };
}

// Node's own fetch takes more of them before 20.20.
it("a body with more than five content codings is refused", async () => {
  const coding = Array(6).fill("gzip").join(", ");
  const { origin } = await startServer((response) =>
    response.writeHead(200, { "content-encoding": coding }).end(packed(6)),
  );
  const reading = createFetch({}, undefined)(origin).then((response) => response.text());
  await expect(reading).rejects.toThrow(TypeError);
});

describe.each([
  ["Node's fetch", globalThis.fetch],
  ["node:http", createFetch({}, undefined)],
])("a request over %s", (_over, fetch) => {
  it.each([
    ["gzip", gzipSync("text")],
    ["x-gzip", gzipSync("text")],
    ["deflate", deflateSync("text")],
    ["br", brotliCompressSync("text")],
    ["deflate, gzip", gzipSync(deflateSync("text"))],
    ["gzip, gzip, gzip, gzip, gzip", packed(5)],
    ["identity", Buffer.from("text")],
    ["unknown", Buffer.from("text")],
    ["gzip, unknown", gzipSync("text"), gzipSync("text").toString()],
    // Without its end, as some servers send it.
    ["gzip", gzipSync("text", { finishFlush: constants.Z_SYNC_FLUSH })],
    ["deflate", deflateSync("text", { finishFlush: constants.Z_SYNC_FLUSH })],
    ["br", brotliCompressSync("text", { finishFlush: constants.BROTLI_OPERATION_FLUSH })],
    ["deflate", Buffer.of(), ""],
  ])("reads a body with the content coding %s", async (coding, body, text = "text") => {
    const { origin } = await startServer((response) =>
      response.writeHead(200, { "content-encoding": coding }).end(body),
    );
    expect(await (await fetch(origin)).text()).toBe(text);
  });

  it.each([
    ["gzip", Buffer.alloc(100, 0xff)],
    ["deflate", Buffer.alloc(100, 0xff)],
    ["br", Buffer.alloc(100, 0xff)],
  ])("fails where a body cannot be unpacked from the content coding %s", async (coding, body) => {
    const { origin } = await startServer((response) =>
      response.writeHead(200, { "content-encoding": coding }).end(body),
    );
    await expect(fetch(origin).then((response) => response.text())).rejects.toThrow(TypeError);
  });

  it("joins a header that comes several times, and shows none twice", async () => {
    const { origin } = await startServer((response) =>
      response
        .writeHead(200, ["retry-after", "1", "content-type", "a/b", "retry-after", "2", "content-type", "c/d"])
        .end(),
    );
    const { headers } = await fetch(origin);
    expect([headers.get("retry-after"), headers.get("content-type")]).toEqual(["1, 2", "a/b, c/d"]);
  });

  it("is not sent to the port of another protocol", async () => {
    const error = networkError(await rejection(fetch("http://127.0.0.1:25/")), "http://127.0.0.1:25/");
    expect(error).toMatchObject({ retryable: false, message: expect.stringContaining("bad port") });
  });

  it.each(["transfer-encoding", "upgrade", "expect"])("cannot set the header %s", async (name) => {
    const server = await startServer((response) => response.end());
    await expect(fetch(server.origin, { method: "POST", headers: { [name]: "chunked" } })).rejects.toThrow(TypeError);
    expect(server.requests).toEqual([]);
  });

  it("names the host of the address, whatever the header host says", async () => {
    const server = await startServer((response) => sendJson(response, {}));
    await fetch(server.origin, { headers: { host: "other.example" } });
    expect(`http://${server.requests[0]?.headers.host}`).toBe(server.origin);
  });

  it("passes informational responses by", async () => {
    const { origin } = await startSocketServer((socket) =>
      socket.end("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
    );
    expect(await (await fetch(origin)).text()).toBe("ok");
  });

  it("fails where the server speaks another protocol from now on", async () => {
    const sockets: Socket[] = [];
    const { origin } = await startSocketServer((socket) => {
      sockets.push(socket);
      socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n");
    });
    expect(networkError(await rejection(fetch(origin)), origin).code).toBe("connection_reset");
    await expect.poll(() => sockets[0]?.destroyed).toBe(true);
  });

  it("takes no credentials to another origin, and turns into a GET where the status says so", async () => {
    const target = await startServer((response, { method, headers }) =>
      sendJson(response, { method, type: headers["content-type"], ...credentialsOf(headers) }),
    );
    const { origin } = await startServer((response) =>
      response.writeHead(303, { location: `${target.origin}/end` }).end(),
    );
    const credentials = {
      authorization: "Bearer tok_0123456789",
      "proxy-authorization": "Basic bTpz",
      cookie: "sid=1",
    };
    const headers = { ...credentials, "content-type": "text/plain" };
    const response = await fetch(origin, { method: "POST", headers, body: "text" });
    expect(await response.json()).toEqual({ method: "GET" });
  });

  it.each([
    [301, "POST", "GET"],
    [302, "POST", "GET"],
    [302, "PUT", "PUT"],
    [303, "PUT", "GET"],
    [303, "HEAD", "HEAD"],
    [307, "POST", "POST"],
    [308, "PUT", "PUT"],
  ])("follows a redirect with %i of a %s by a %s", async (status, method, next) => {
    const server = await startServer((response, { url }) =>
      url === "/" ? response.writeHead(status, { location: "/end" }).end() : response.end(),
    );
    const response = await fetch(server.origin, method === "HEAD" ? { method } : { method, body: "text" });
    expect(server.requests.at(-1)).toMatchObject({
      url: "/end",
      method: next,
      body: next === "PUT" || next === "POST" ? "text" : "",
    });
    expect(response.redirected).toBe(true);
  });

  it.each(["GET", "HEAD"])("sends no body with %s", async (method) => {
    await expect(fetch("http://127.0.0.1:1/", { method, body: "text" })).rejects.toThrow(TypeError);
    await expect(fetch("http://127.0.0.1:1/", { method, body: "text" })).rejects.toThrow("GET");
  });
});

describe("a request over node:http", () => {
  it.each(["keep-alive", "trailer", "te"])("cannot set the header %s", async (name) => {
    const server = await startServer((response) => response.end());
    const error = await rejection(createFetch({}, undefined)(server.origin, { headers: { [name]: "trailers" } }));
    expect(error).toMatchObject({ cause: { message: `the header ${name} cannot be set` } });
    expect(server.requests).toEqual([]);
  });

  const send = createFetch({}, undefined);

  it.each(["", "gzip"])("reports a body that broke before it was read (content coding %j)", async (coding) => {
    let isClosed = false;
    const { origin } = await startServer((response) => {
      response.once("close", () => {
        isClosed = true;
      });
      response.writeHead(200, { "content-encoding": coding }).write(coding ? gzipSync("text") : "text");
      setImmediate(() => response.destroy());
    });
    const response = await send(new HttpRequest(origin));
    await until(() => isClosed);
    // The client reads the end of the connection, and its stream closes.
    for (let turn = 0; turn < 10; turn++) await turnOfTheEventLoop();
    await expect(response.text()).rejects.toMatchObject({ message: "terminated" });
  });

  it.each([
    ["deflate", deflateSync],
    ["gzip", gzipSync],
    ["br", brotliCompressSync],
  ] as const)("unpacks a body no faster than it is read (%s)", async (coding, pack) => {
    for (const [plain, size] of [
      [Buffer.alloc(16 * 1024 * 1024), 1024 * 1024],
      [randomBytes(200_000), 1000],
    ] as const) {
      const body = pack(plain);
      const starts = Array.from({ length: Math.ceil(body.length / size) }, (_, nth) => nth * size);
      const stream = decodeContent(Readable.from(starts.map((at) => body.subarray(at, at + size))), coding);
      await once(stream, "readable");
      for (let turn = 0; turn < 200; turn++) await turnOfTheEventLoop();
      expect(stream.readableLength).toBeLessThan(1024 * 1024);
      let length = 0;
      for await (const part of stream) length += part.length;
      expect(length).toBe(plain.length);
    }
  });

  it.each(["identity, gzip", "gzip,", "GZIP"])("knows the content coding %j", async (coding) => {
    const { origin } = await startServer((response) =>
      response.writeHead(200, { "content-encoding": coding }).end(gzipSync("text")),
    );
    expect(await (await send(origin)).text()).toBe("text");
  });

  it("reads the whole of a response behind which the server sends something else", async () => {
    let hasSent = false;
    const { origin } = await startSocketServer((socket) => {
      socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok and more", () => {
        hasSent = true;
      });
    });
    const response = await send(origin);
    await until(() => hasSent);
    for (let turn = 0; turn < 10; turn++) await turnOfTheEventLoop();
    expect(await response.text()).toBe("ok");
  });

  it("has the length of its body, whatever the header content-length says", async () => {
    const server = await startServer((response) => response.end());
    const body = new Blob(["hello"]).stream();
    await send(server.origin, { method: "POST", headers: { "content-length": "2" }, body, duplex: "half" });
    expect(server.requests.map((request) => request.body)).toEqual(["hello"]);
  });

  it("leaves no listener at a signal that many requests share", async () => {
    const { origin } = await startServer((response) => response.end("text"));
    const { signal } = new AbortController();
    for (let round = 0; round < 3; round++) await (await send(origin, { signal })).text();
    await expect.poll(() => getEventListeners(signal, "abort")).toEqual([]);
  });

  it("has time for a reader that is slower than the server", async () => {
    const { origin } = await startServer((response) => response.end(Buffer.alloc(1024 * 1024)));
    const response = await createFetch({ idleTimeoutMs: 200 }, undefined)(origin);
    await setTimeout(800);
    expect((await response.arrayBuffer()).byteLength).toBe(1024 * 1024);
  });

  it("ends the connection of a body whose reader has seen enough", async () => {
    let isClosed = false;
    const { origin } = await startServer((response) => {
      response.once("close", () => {
        isClosed = true;
      });
      response.writeHead(200).write("text");
    });
    const response = (await send(new HttpRequest(origin))) as HttpResponse;
    const enough = new Error("enough");
    await expect(
      response.readTo(() => {
        throw enough;
      }),
    ).rejects.toBe(enough);
    await until(() => isClosed);
  });

  it.each(["resets", "ends"] as const)("does not use an idle connection that the server %s", async (how) => {
    const sockets = new Set<Socket>();
    const server = createServer((request, response) => {
      sockets.add(request.socket);
      response.end(request.method);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    for (let round = 0; round < 20; round++) {
      expect(await (await send(url)).text()).toBe("GET");
      for (const socket of sockets) how === "resets" ? socket.resetAndDestroy() : socket.destroy();
      sockets.clear();
      expect(await (await send(url, { method: "POST", body: "once" })).text()).toBe("POST");
      expect(sockets.size).toBe(1);
    }
  });

  it.each(["resets", "ends"] as const)("repeats nothing that was sent where the server then %s", async (how) => {
    let requests = 0;
    const server = createServer((request, response) => {
      if (++requests === 1) response.end();
      else request.once("data", () => (how === "resets" ? request.socket.resetAndDestroy() : request.socket.destroy()));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    await (await send(url)).text();
    await turnOfTheEventLoop();
    await expect(send(url, { method: "POST", body: "a code that counts once" })).rejects.toMatchObject({
      cause: { code: "ECONNRESET" },
    });
    expect(requests).toBe(2);
  });

  it("sends what cannot be repeated over no connection that was idle for longer than a second", async () => {
    const ports: (number | undefined)[] = [];
    const { origin } = await startServer((response) => {
      ports.push(response.socket?.remotePort);
      response.end();
    });
    const { now } = performance;
    let waitedMs = 0;
    vi.spyOn(performance, "now").mockImplementation(() => now.call(performance) + waitedMs);
    onTestFinished(() => void vi.restoreAllMocks());
    for (const method of ["GET", "POST", "GET", "POST"]) {
      await (await send(origin, { method })).text();
      await turnOfTheEventLoop();
      if (ports.length >= 2) waitedMs += 1500;
    }
    const [first, second, third, fourth] = ports;
    expect([second, third]).toEqual([first, first]);
    expect(fourth).not.toBe(first);
  });
});

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

it("reaches those who subscribe after the first message, also when the garbage has been collected", async () => {
  const name = `test:${randomUUID()}`;
  publish(name, { at: 1 });
  await setTimeout(0);
  collectGarbage();
  const received: unknown[] = [];
  subscribe(name, (message) => received.push(message));
  await setTimeout(10);
  expect(channel(name).hasSubscribers).toBe(true);
  publish(name, { at: 2 });
  expect(received).toEqual([{ at: 2 }]);
});

describe("a plain request", () => {
  const send = (url: string, more: Partial<PlainRequest> = {}, guard?: SsrfGuard) =>
    createSend({}, guard)({ method: "GET", url, headers: [], ...more });
  const failureOf = async (sent: Promise<unknown>) => {
    const error = await rejection(sent);
    return [String(error), (error as Error).cause instanceof Error ? String((error as Error).cause) : undefined];
  };

  it.each([
    ["ftp://127.0.0.1/", "TypeError: fetch failed", "Error: unknown scheme"],
    ["http://127.0.0.1:25/", "TypeError: fetch failed", "Error: bad port"],
    ["http://me@127.0.0.1:18009/", "TypeError: an address with credentials cannot be requested", undefined],
    ["http://:secret@127.0.0.1:18009/", "TypeError: an address with credentials cannot be requested", undefined],
  ])("is not sent to %s", async (url, error, cause) => {
    expect(await failureOf(send(url))).toEqual([error, cause]);
  });

  it.each<[Partial<PlainRequest>, Record<string, string | undefined>]>([
    [{}, { accept: "*/*", "accept-encoding": "br, gzip", "content-length": undefined }],
    [{ method: "HEAD" }, { "content-length": undefined }],
    [{ method: "POST" }, { "content-length": "0" }],
    [{ method: "POST", body: "é" }, { "content-length": "2" }],
    [{ method: "POST", body: Uint8Array.of(1, 2, 3) }, { "content-length": "3" }],
    [
      { method: "POST", body: Readable.from(["a"]) },
      { "content-length": undefined, "transfer-encoding": "chunked" },
    ],
    [{ headers: [["accept", "a/b"]] }, { accept: "a/b" }],
    [{ headers: [["accept-encoding", "identity"]] }, { "accept-encoding": "identity" }],
    [{ headers: [["connection", "Close"]] }, { connection: "Close" }],
    [{ headers: [["content-length", "7"]] }, { "content-length": undefined }],
  ])("%j has the headers %j", async (request, headers) => {
    const server = await startServer((response) => response.end());
    await send(server.origin, request);
    const [seen] = server.requests;
    expect(Object.fromEntries(Object.keys(headers).map((name) => [name, seen?.headers[name]]))).toEqual(headers);
  });

  it.each([
    ["connection", "upgrade"],
    ["connection", "keep-alive, x"],
    ["te", "trailers"],
  ])("cannot have the header %s: %s", async (name, value) => {
    const [error, cause] = await failureOf(send("http://127.0.0.1:18009/", { headers: [[name, value]] }));
    expect([error, cause]).toEqual(["TypeError: fetch failed", `TypeError: the header ${name} cannot be set`]);
  });

  it("checks the written address of a request through a proxy, whose names the proxy resolves", async () => {
    const checked: string[] = [];
    const refuse = (hostname: string) => {
      checked.push(hostname);
      throw new TypeError("not there");
    };
    const guard = { checkWritten: refuse, resolve: async () => checked.push("resolved") } as unknown as SsrfGuard;
    const viaProxy = createSend({ proxies: { http: "http://127.0.0.1:9" } }, guard);
    const sent = viaProxy({ method: "GET", url: "http://169.254.169.254/", headers: [] });
    await expect(sent).rejects.toThrow("not there");
    expect(checked).toEqual(["169.254.169.254"]);
  });

  it("fails with the very reason of its signal, before it is sent and after", async () => {
    const server = await startServer(() => abort.abort("enough"));
    const abort = new AbortController();
    await expect(send(server.origin, { signal: abort.signal })).rejects.toBe("enough");
    await expect(send(server.origin, { signal: abort.signal })).rejects.toBe("enough");
    expect(server.requests).toHaveLength(1);
    const checking = new AbortController();
    const guard = { resolve: async () => checking.abort("while it was checked") } as unknown as SsrfGuard;
    await expect(send(server.origin, { signal: checking.signal }, guard)).rejects.toBe("while it was checked");
    expect(server.requests).toHaveLength(1);
  });

  it("fails where nothing comes in time, or another protocol", async () => {
    const silent = await startServer(() => undefined);
    const waiting = createSend({ idleTimeoutMs: 20 }, undefined)({ method: "GET", url: silent.origin, headers: [] });
    expect(await rejection(waiting)).toMatchObject({ cause: { message: "no data in time", code: "ETIMEDOUT" } });
    const other = await startSocketServer((socket) =>
      socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"),
    );
    expect(await rejection(send(other.origin))).toMatchObject({
      cause: { message: "bad upgrade", code: "ECONNRESET" },
    });
    const closing = await startSocketServer((socket) => socket.end());
    expect(await rejection(send(closing.origin))).toMatchObject({
      cause: { message: "socket hang up", code: "ECONNRESET" },
    });
  });
});
