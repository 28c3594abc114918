import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { reserveRedirect } from "../../src/login/listen.js";
import { openWaiting, raw, request, STATE, statusOf } from "./support.js";

const portOf = (uri: string) => Number(new URL(uri).port);

describe("the port of a redirect address without a listener", () => {
  it("is one that the system assigns to no connection, and is free", async () => {
    for (let nth = 0; nth < 5; nth++) {
      const port = portOf(await reserveRedirect({}));
      expect(port).toBeGreaterThanOrEqual(15_000);
      expect(port).toBeLessThan(30_000);
      const server = createServer().listen(port, "127.0.0.1");
      await new Promise((resolve, reject) => server.once("listening", resolve).once("error", reject));
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it("is that of the earlier registration where that is free, and the given one in any case", async () => {
    const preferred = await reserveRedirect({});
    expect(await reserveRedirect({ preferred })).toBe(preferred);
    const server = createServer().listen(portOf(preferred), "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    expect(await reserveRedirect({ preferred })).not.toBe(preferred);
    expect(portOf(await reserveRedirect({ port: portOf(preferred) }))).toBe(portOf(preferred));
    await new Promise((resolve) => server.close(resolve));
  });
});

describe("what no response object answers", () => {
  const END = "\r\ncontent-length: 0\r\ncache-control: no-store\r\nconnection: close\r\n\r\n";

  it.each<[string, (port: number) => string, string]>([
    ["no HTTP", () => "no HTTP\r\n\r\n", "400 Bad Request"],
    [
      "headers of more than 16 KiB",
      (port) => request(port, "/", [`X-Filler: ${"a".repeat(16_384)}`]),
      "431 Request Header Fields Too Large",
    ],
    ["a request without an end", (port) => `GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n`, "408 Request Timeout"],
  ])("%s", async (_what, bytes, status) => {
    const { port } = await openWaiting({ requestTimeoutMs: 50 });
    expect(await raw(port, bytes(port))).toBe(`HTTP/1.1 ${status}${END}`);
  });

  it("but not headers of 15 KiB", async () => {
    const { port, callback } = await openWaiting();
    const target = `/callback?code=c&state=${STATE}`;
    expect(statusOf(await raw(port, request(port, target, [`X-Filler: ${"a".repeat(15_000)}`])))).toBe(303);
    expect((await callback).get("code")).toBe("c");
  });
});
