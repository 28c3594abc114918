import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setImmediate as turnOfTheEventLoop } from "node:timers/promises";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { HttpRequest } from "../../src/http/http-request.js";
import type { HttpResponse } from "../../src/http/http-response.js";
import { networkError } from "../../src/http/network-error.js";
import { createFetch } from "../../src/transport/dispatcher.js";
import { sendJson, startServer, startSocketServer, until } from "../helpers/server.js";
import { rejection } from "../helpers/service.js";

describe.each([
  ["Node's fetch", globalThis.fetch],
  ["node:http", createFetch({}, undefined)],
])("a request over %s", (_over, fetch) => {
  it.each([
    ["gzip", gzipSync("text")],
    ["x-gzip", gzipSync("text")],
    ["deflate", deflateSync("text")],
    ["deflate", deflateRawSync("text")],
    ["br", brotliCompressSync("text")],
    ["deflate, gzip", gzipSync(deflateSync("text"))],
    ["unknown", Buffer.from("text")],
  ])("reads a body with the content coding %s", async (coding, body) => {
    const { origin } = await startServer((response) =>
      response.writeHead(200, { "content-encoding": coding }).end(body),
    );
    expect(await (await fetch(origin)).text()).toBe("text");
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
    const { origin } = await startSocketServer((socket) =>
      socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"),
    );
    expect(networkError(await rejection(fetch(origin)), origin).code).toBe("connection_reset");
  });

  it("takes no credentials to another origin, and turns into a GET where the status says so", async () => {
    const target = await startServer((response, { method, headers }) =>
      sendJson(response, { method, token: headers.authorization, type: headers["content-type"] }),
    );
    const { origin } = await startServer((response) =>
      response.writeHead(303, { location: `${target.origin}/end` }).end(),
    );
    const headers = { authorization: "Bearer tok_0123456789", "content-type": "text/plain" };
    const response = await fetch(origin, { method: "POST", headers, body: "text" });
    expect(await response.json()).toEqual({ method: "GET" });
  });

  it("ends in a loop of redirects", async () => {
    const server = await startServer((response) => response.writeHead(302, { location: "/" }).end());
    await expect(fetch(server.origin)).rejects.toThrow("fetch failed");
    expect(server.requests).toHaveLength(21);
  });
});

describe("a request over node:http", () => {
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
