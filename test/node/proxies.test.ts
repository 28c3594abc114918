import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { networkInterfaces } from "node:os";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createFetch } from "../../src/node/dispatcher.js";
import type { SsrfGuard } from "../../src/node/ssrf-guard.js";
import { rejection } from "../helpers/service.js";

/** An address of this machine that others reach too: what is on loopback never goes through a proxy. */
const OUTSIDE = Object.values(networkInterfaces())
  .flatMap((found) => found ?? [])
  .find(({ family, internal }) => family === "IPv4" && !internal)?.address;
if (OUTSIDE === undefined) process.stderr.write("SKIPPED: the tests of NO_PROXY need an address beside 127.0.0.1\n");

let service: Server;
let proxy: Server;
/** What the proxy was asked for, and with which credentials. */
let asked: { target: string | undefined; credentials: string | undefined }[] = [];
/** What the proxy answers in place of a tunnel. */
let refusal: string | undefined;

const portOf = (server: Server) => (server.address() as AddressInfo).port;

beforeAll(async () => {
  service = createServer((_request, response) => response.end("well"));
  proxy = createServer().on("connect", (request, socket) => {
    asked.push({ target: request.url, credentials: request.headers["proxy-authorization"] });
    if (refusal !== undefined) return void socket.end(`HTTP/1.1 ${refusal}\r\ncontent-length: 0\r\n\r\n`);
    const upstream = connect(portOf(service), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      upstream.pipe(socket).pipe(upstream);
    });
    for (const end of [socket, upstream]) end.on("error", () => undefined);
  });
  for (const server of [service, proxy]) await new Promise<void>((done) => server.listen(0, "0.0.0.0", done));
});
beforeEach(() => {
  asked = [];
  refusal = undefined;
});
afterAll(() => {
  service.close();
  proxy.close();
});

/** Asks the service by a name or an address of it, and says what the proxy was asked for. */
async function ask(host: string, noProxy: string, credentials = "") {
  const addresses = [{ address: OUTSIDE ?? "", family: 4 }];
  // What may be connected to is not the matter here, and an address of a test machine may be none that is ever allowed.
  const guard: SsrfGuard = {
    resolve: async () => addresses,
    checkWritten: () => undefined,
    addressClass: async () => "public",
  };
  const proxies = { http: `http://${credentials}127.0.0.1:${portOf(proxy)}` };
  const url = `http://${host}:${portOf(service)}/`;
  const fetch = createFetch({ proxies, noProxy }, guard);
  return (await fetch(url, { headers: { connection: "close" } })).text();
}

const PORT = "PORT";
const ADDRESS = "ADDRESS";

describe.skipIf(OUTSIDE === undefined)("a real proxy", () => {
  it.each([
    ["api.example.test", "", "used"],
    ["api.example.test", "*", "passed by"],
    ["api.example.test", "api.example.test", "passed by"],
    ["api.example.test", "API.Example.TEST", "passed by"],
    ["api.example.test", "example.test", "passed by"],
    ["api.example.test", ".example.test", "passed by"],
    ["api.example.test", "*.example.test", "passed by"],
    ["api.example.test", "other.test, example.test", "passed by"],
    ["api.example.test", "other.test example.test", "passed by"],
    ["api.example.test", "ample.test", "used"],
    ["api.example.test", "api", "used"],
    ["api.example.test", `example.test:${PORT}`, "passed by"],
    ["api.example.test", "example.test:1", "used"],
    [ADDRESS, "", "used"],
    [ADDRESS, ADDRESS, "passed by"],
    [ADDRESS, `${ADDRESS}:${PORT}`, "passed by"],
    [ADDRESS, `${ADDRESS}:1`, "used"],
    [ADDRESS, `${ADDRESS}/32`, "passed by"],
    [ADDRESS, `${ADDRESS}/8`, "passed by"],
    [ADDRESS, "203.0.113.0/24", "used"],
    [ADDRESS, "example.test", "used"],
    ["api.example.test", `${ADDRESS}/8`, "used"],
  ])("for %s, with NO_PROXY=%s, is %s", async (host, noProxy, how) => {
    const filled = (text: string) => text.replaceAll(PORT, String(portOf(service))).replaceAll(ADDRESS, OUTSIDE ?? "");
    expect(await ask(filled(host), filled(noProxy))).toBe("well");
    const target = `${filled(host)}:${portOf(service)}`;
    expect(asked.map((one) => one.target)).toEqual(how === "used" ? [target] : []);
  });

  it("gets user and password decoded, also with an odd character in them", async () => {
    await ask("api.example.test", "", "me%40work:p%3Aw%25@");
    expect(asked[0]?.credentials).toBe(`Basic ${Buffer.from("me@work:p:w%").toString("base64")}`);
  });

  it.each([
    ["407 Proxy Authentication Required", /: the proxy 127\.0\.0\.1:\d+ requires a user name and password/],
    ["502 Bad Gateway", /: the proxy 127\.0\.0\.1:\d+ refused the connection \(HTTP 502\)$/],
  ])("that answers %s is named, without its password", async (answer, words) => {
    refusal = answer;
    const error = await rejection(ask("api.example.test", "", "me:s3cret@"));
    expect(error).toMatchObject({ code: "proxy_failed", class: "unavailable", message: expect.stringMatching(words) });
    expect(String(error)).not.toContain("s3cret");
  });
});
