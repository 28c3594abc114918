import { inspect } from "node:util";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { AgentAuthError } from "../../src/errors.js";
import { saysJson } from "../../src/http/buffered-response.js";
import { createTransport, type TransportOptions } from "../../src/http/transport.js";
import { FakeClock } from "../helpers/clock.js";
import { type Answer, sendJson, startServer, startSocketServer, until } from "../helpers/server.js";
import { rejection } from "../helpers/service.js";

const json = { "content-type": "application/json" };

function sender(origin: string, options: TransportOptions = {}) {
  const transport = createTransport({ clock: new FakeClock(), random: () => 0, ...options });
  return () => transport(new Request(`${origin}/api/v1/device?pool_id=p`));
}

async function setUp(answer: Answer, options: TransportOptions = {}) {
  const server = await startServer(answer);
  return { server, send: sender(server.origin, options) };
}

/** Serves bytes with these headers. */
function serving(bytes: Uint8Array | string, headers: Record<string, string> = {}): Answer {
  return (response) => response.writeHead(200, { ...json, ...headers }).end(bytes);
}

describe("a body larger than the cap", () => {
  const options = { maxBodyBytes: 1000 };

  it("is not read when its length says so, and its connection is closed", async () => {
    let isClosed = false;
    const { server, send } = await setUp((response) => {
      response.on("close", () => {
        isClosed = true;
      });
      response.writeHead(200, { ...json, "content-length": "600000000" }).write("[");
    }, options);
    const error = (await rejection(send())) as AgentAuthError;
    expect(error).toMatchObject({ code: "body_too_large", class: "refused", retryable: false, status: 200 });
    expect(error.message).toBe(`${server.origin}/api/v1/device: the response is larger than 1000 bytes`);
    await until(() => isClosed);
    expect(server.requests).toHaveLength(1);
  });

  it("is cancelled at the cap when it comes in chunks without end", async () => {
    let isClosed = false;
    const { send } = await setUp((response) => {
      response.writeHead(200, json);
      const more = () => {
        while (!isClosed && response.write("x".repeat(500)));
      };
      response.on("drain", more).on("close", () => {
        isClosed = true;
      });
      more();
    }, options);
    expect(await rejection(send())).toMatchObject({ code: "body_too_large" });
    await until(() => isClosed);
  });

  it.each([
    ["gzip", gzipSync],
    ["br", brotliCompressSync],
  ])("is given up at the cap while it is decompressed: %s", async (coding, compress) => {
    const bomb = compress(Buffer.alloc(50_000_000, "["));
    const { send } = await setUp(serving(bomb, { "content-encoding": coding }), { maxBodyBytes: 1_000_000 });
    expect(bomb.byteLength).toBeLessThan(1_000_000);
    expect(await rejection(send())).toMatchObject({ code: "body_too_large", class: "refused" });
  });

  it("is cancelled at the cap although a length that is stated counts only what is compressed", async () => {
    let isCancelled = false;
    const endless = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(100)),
      cancel() {
        isCancelled = true;
      },
    });
    // As fetch gives it: decompressed, with the headers of what was sent.
    const fetch = async () => new Response(endless, { headers: { "content-encoding": "gzip", "content-length": "5" } });
    expect(await rejection(sender("https://agentauth.example", { fetch, ...options })())).toMatchObject({
      code: "body_too_large",
    });
    expect(isCancelled).toBe(true);
  });

  it("is one byte too long; one of exactly the cap is read", async () => {
    for (const headers of [{}, { "content-encoding": "gzip" }]) {
      const encode = (text: string) => ("content-encoding" in headers ? gzipSync(text) : Buffer.from(text));
      const exact = await setUp(serving(encode(`"${"x".repeat(998)}"`), headers), options);
      expect((await exact.send()).text).toHaveLength(1000);
      const over = await setUp(serving(encode(`"${"x".repeat(999)}"`), headers), options);
      expect(await rejection(over.send())).toMatchObject({ code: "body_too_large" });
    }
  });

  it("is refused too when a fetch of one's own states a length that is too small", async () => {
    const fetch = async () => new Response("x".repeat(2000), { headers: { ...json, "content-length": "5" } });
    expect(await rejection(sender("https://agentauth.example", { fetch, ...options })())).toMatchObject({
      code: "body_too_large",
    });
  });
});

describe("a compressed body", () => {
  it("is read as what it holds", async () => {
    const { send } = await setUp(serving(gzipSync('{"text":"ä"}'), { "content-encoding": "gzip" }));
    expect((await send()).json).toEqual({ text: "ä" });
  });

  it("that is compressed more than once is refused", async () => {
    const twice = gzipSync(gzipSync("{}"));
    const { server, send } = await setUp(serving(twice, { "content-encoding": "gzip, gzip" }));
    const error = (await rejection(send())) as AgentAuthError;
    expect(error).toMatchObject({ code: "bad_content_type", class: "refused" });
    expect(error.message).toContain('content-encoding "gzip, gzip"');
    expect(server.requests).toHaveLength(1);
  });

  it("that is cut is requested again", async () => {
    const items = Array.from({ length: 500 }, (_, index) => Math.sqrt(index));
    const whole = gzipSync(JSON.stringify(items));
    const { server, send } = await setUp((response, request, nth) =>
      serving(nth === 1 ? whole.subarray(0, whole.length / 2) : whole, { "content-encoding": "gzip" })(
        response,
        request,
        nth,
      ),
    );
    expect((await send()).json).toEqual(items);
    expect(server.requests).toHaveLength(2);
  });
});

describe("a body that is cut on the way", () => {
  it.each([
    [
      "shorter than its length",
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{"a":',
    ],
    [
      "without the last chunk",
      'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"a":\r\n',
    ],
    ["without the end of its head", "HTTP/1.1 200 OK\r\ncontent-type: appl"],
    ["before its first byte", ""],
  ])("is requested again, then is `connection_reset`: %s", async (_what, bytes) => {
    const server = await startSocketServer((socket) => socket.end(bytes));
    expect(await rejection(sender(server.origin)())).toMatchObject({ code: "connection_reset", class: "unavailable" });
    expect(server.heads).toHaveLength(3);
  });

  it("is read when it comes whole the next time", async () => {
    const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 2\r\n\r\n";
    const server = await startSocketServer((socket, _head, nth) => socket.end(nth === 1 ? `${head}{` : `${head}{}`));
    expect((await sender(server.origin)()).json).toEqual({});
    expect(server.heads).toHaveLength(2);
  });

  it("by a reset in the middle is requested again", async () => {
    const { server, send } = await setUp((response, _request, nth) => {
      if (nth > 1) return sendJson(response, { nth });
      response.writeHead(200, json).write('{"a":', () => response.socket?.resetAndDestroy());
      return undefined;
    });
    expect((await send()).json).toEqual({ nth: 2 });
    expect(server.requests).toHaveLength(2);
  });
});

describe("JSON", () => {
  it("that is cut is requested again, then is `bad_json`, with the place", async () => {
    const { server, send } = await setUp(serving('{"summaries":[\n{"id":1},'));
    const error = (await rejection(send())) as AgentAuthError;
    expect(error).toMatchObject({ code: "bad_json", class: "refused", retryable: true, status: 200 });
    expect(error.message).toContain("the body is not JSON: it ends too early (line 2, column 10)");
    expect(server.requests).toHaveLength(3);
  });

  it("that cannot be parsed is never quoted, since the cut may lay bare a secret", async () => {
    const secret = "s3cr3t-of-a-client";
    for (const body of [`{"client_secret":"${secret}`, `{"client_secret":"${secret}"`, `{"a":"${secret}" x`, secret]) {
      const { send } = await setUp(serving(body), { maxRetries: 0 });
      const error = (await rejection(send())) as AgentAuthError;
      expect(error.code).toBe("bad_json");
      expect(inspect(error, { depth: 9 }) + String(error) + JSON.stringify(error) + error.stack).not.toContain(
        "s3cr3t",
      );
    }
  });

  it("of 8 MB that is cut inside a string fails like any other", async () => {
    const { send } = await setUp(serving(`{"a":"${"x".repeat(8_000_000)}`), { maxRetries: 0 });
    expect(await rejection(send())).toMatchObject({ code: "bad_json" });
  });

  it.each([
    ["a lone continuation byte", [0x22, 0x80, 0x22]],
    ["an overlong form", [0x22, 0xc0, 0xaf, 0x22]],
    ["Latin-1", [0x22, 0xe4, 0x22]],
    ["a surrogate", [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ["UTF-16", [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
  ])("that is not UTF-8 is refused: %s", async (_what, bytes) => {
    const { send } = await setUp(serving(Uint8Array.from(bytes)));
    const error = (await rejection(send())) as AgentAuthError;
    expect(error).toMatchObject({ code: "bad_json", class: "refused" });
    expect(error.message).toContain("not UTF-8");
  });

  it("is read as any other after one that broke in its second part", async () => {
    const bodies = [
      [Buffer.from("\ufeff["), Uint8Array.from([0xff])],
      [Buffer.from("\ufeff["), Buffer.from("1]")],
    ];
    const fetch = async () => new Response(ReadableStream.from(bodies.shift() ?? []), { headers: json });
    const send = sender("https://service.example", { fetch, maxRetries: 0 });
    expect(await rejection(send())).toMatchObject({ code: "bad_json" });
    expect((await send()).json).toEqual([1]);
  });

  it("may be cut in the middle of a character on its way", async () => {
    const parts = [Uint8Array.of(0x22, 0xc3), Uint8Array.of(0xa4, 0x22)];
    const fetch = async () => new Response(ReadableStream.from(parts), { headers: json });
    expect((await sender("https://service.example", { fetch })()).json).toBe("ä");
  });

  it("may begin with a byte order mark", async () => {
    const { send } = await setUp(serving("\ufeff{}"));
    expect((await send()).json).toEqual({});
  });

  it("has the names that are written, after a text from which JSON.parse of Node.js 24 and 26 would take one", async () => {
    const { send } = await setUp(serving('{"h":1,"\\"":2}'));
    JSON.parse('{"h":[],"\\\\":0}');
    expect((await send()).json).toEqual({ h: 1, '"': 2 });
  });

  it("is not looked for where the answer says it is something else, or is empty", async () => {
    for (const answer of [serving("<html>", { "content-type": "text/html" }), serving("")]) {
      const { server, send } = await setUp(answer);
      expect((await send()).json).toBeUndefined();
      expect(server.requests).toHaveLength(1);
    }
  });

  it("in the body of an error helps where it is well-formed and never hides the status", async () => {
    for (const [body, expected] of [
      ['{"code":"x"}', { code: "x" }],
      ["{", undefined],
      [Uint8Array.of(0x22, 0x80, 0x22), "\ufffd"],
    ] as const) {
      const { send } = await setUp((response) => response.writeHead(404, json).end(body));
      expect(await send()).toMatchObject({ status: 404, json: expected });
    }
  });

  it.each([
    ["application/json", true],
    ["application/json; charset=utf-8", true],
    ["Application/Problem+JSON", true],
    ["application/json ;x", true],
    ["application/jsonp", false],
    ["application/json-seq", false],
    ["text/json", false],
    ["text/html; application/json", false],
    ["", false],
  ])("is said by %j: %s", (type, expected) => {
    expect(saysJson(new Headers(type === "" ? {} : { "content-type": type }))).toBe(expected);
  });
});
