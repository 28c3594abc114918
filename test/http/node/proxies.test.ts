import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { networkInterfaces } from "node:os";
import { describe, expect, test } from "vitest";
import {
  bypassesProxy,
  explainProxyFailure,
  ProxyError,
  proxyChooser,
  type SsrfGuard,
} from "../../../src/http/node/agents.js";
import { createFetch } from "../../../src/http/node/network.js";
import { rejection } from "../../helpers/service.js";

/** An address of this machine that others reach too: what is on loopback never goes through a proxy. */
const OUTSIDE = Object.values(networkInterfaces())
  .flatMap((found) => found ?? [])
  .find(({ family, internal }) => family === "IPv4" && !internal)?.address;
if (OUTSIDE === undefined) process.stderr.write("SKIPPED: the tests of NO_PROXY need an address beside 127.0.0.1\n");

/** What the proxy has received, and what it answers in place of a tunnel. */
interface Seen {
  tunnels: { target: string | undefined; credentials: string | undefined }[];
  refusal: string | undefined;
}

const portOf = (server: Server) => (server.address() as AddressInfo).port;

/** A service behind a proxy. */
const it = test
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  .extend("servers", { scope: "file" }, async ({}, { onCleanup }) => {
    const seen: Seen = { tunnels: [], refusal: undefined };
    const service = createServer((_request, response) => response.end("well"));
    const proxy = createServer().on("connect", (request, socket) => {
      seen.tunnels.push({ target: request.url, credentials: request.headers["proxy-authorization"] });
      if (seen.refusal !== undefined) return void socket.end(`HTTP/1.1 ${seen.refusal}\r\ncontent-length: 0\r\n\r\n`);
      const upstream = connect(portOf(service), "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        upstream.pipe(socket).pipe(upstream);
      });
      for (const end of [socket, upstream]) end.on("error", () => undefined);
    });
    for (const server of [service, proxy]) {
      await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
    }
    onCleanup(() => {
      service.close();
      proxy.close();
    });
    return { service, proxy, seen };
  })
  .extend("port", ({ servers }) => portOf(servers.service))
  .extend("seen", ({ servers: { seen } }): Seen => Object.assign(seen, { tunnels: [], refusal: undefined }))
  /** Sends a request to the service, by a name or an address, and returns its response. */
  .extend("request", ({ port, servers }) => async (host: string, noProxy: string, credentials = "") => {
    const addresses = [{ address: OUTSIDE ?? "", family: 4 }];
    // This is not a test of the address policy, which may reject the address of a test machine.
    const guard: SsrfGuard = {
      resolve: async () => addresses,
      checkWritten: () => undefined,
      addressClass: async () => "public",
      onResponse: () => undefined,
    };
    const proxies = { http: `http://${credentials}127.0.0.1:${portOf(servers.proxy)}` };
    const fetch = createFetch({ proxies, noProxy }, guard);
    return (await fetch(`http://${host}:${port}/`, { headers: { connection: "close" } })).text();
  });

const PORT = "PORT";
const ADDRESS = "ADDRESS";

describe.skipIf(OUTSIDE === undefined)("a real proxy", () => {
  it.for([
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
  ])("for %s, with NO_PROXY=%s, is %s", async ([host = "", noProxy = "", how], { port, request, seen }) => {
    const filled = (text: string) => text.replaceAll(PORT, String(port)).replaceAll(ADDRESS, OUTSIDE ?? "");
    expect(await request(filled(host), filled(noProxy))).toBe("well");
    const target = `${filled(host)}:${port}`;
    expect(seen.tunnels).toEqual(how === "used" ? [{ target, credentials: undefined }] : []);
  });

  it("gets user and password decoded, also with an odd character in them", async ({ request, seen }) => {
    await request("api.example.test", "", "me%40work:p%3Aw%25@");
    expect(seen.tunnels[0]?.credentials).toBe(`Basic ${Buffer.from("me@work:p:w%").toString("base64")}`);
  });

  it.for([
    ["me:100%zz%20", "me:100%zz "],
    ["me:%", "me:%"],
    ["me:%ff", "me:%ff"],
    ["me", "me:"],
    [":secret", ":secret"],
  ])("gets the credentials of %s, whose % may encode nothing", async ([credentials, sent = ""], { request, seen }) => {
    await request("api.example.test", "", `${credentials}@`);
    expect(seen.tunnels[0]?.credentials).toBe(`Basic ${Buffer.from(sent).toString("base64")}`);
  });

  it("may send the begin of an answer with its own", async ({ request, seen }) => {
    seen.refusal = "200 OK\r\n\r\nHTTP/1.1 200 OK\r\nconnection: close";
    expect(await request("api.example.test", "")).toBe("");
  });

  it.for<[string, RegExp]>([
    ["407 Proxy Authentication Required", /: the proxy 127\.0\.0\.1:\d+ requires a user name and password/],
    ["403 Forbidden", /: the proxy 127\.0\.0\.1:\d+ refused the connection \(HTTP 403\)$/],
  ])("that answers %s is named, without its password", async ([answer, words], { request, seen }) => {
    seen.refusal = answer;
    const error = await rejection(request("api.example.test", "", "me:s3cret@"));
    expect(error).toMatchObject({ code: "proxy_failed", class: "unavailable", message: expect.stringMatching(words) });
    expect(String(error)).not.toContain("s3cret");
  });
});

const passes = (noProxy: string, url: string) => bypassesProxy(noProxy)(new URL(url));

describe("NO_PROXY", () => {
  it.each([
    ["*", "https://mcp.example/"],
    ["mcp.example", "https://mcp.example/"],
    ["MCP.Example", "https://mcp.example/"],
    ["mcp.example", "https://mcp.example./"],
    ["mcp.example.", "https://mcp.example/"],
    ["example", "https://mcp.example/"],
    [".example", "https://mcp.example/"],
    [".mcp.example", "https://mcp.example/"],
    ["*.example", "https://a.mcp.example/"],
    ["other.example,mcp.example", "https://mcp.example/"],
    [" other.example ,  mcp.example ", "https://mcp.example/"],
    ["other.example mcp.example", "https://mcp.example/"],
    ["mcp.example:443", "https://mcp.example/"],
    ["mcp.example:80", "http://mcp.example/"],
    ["FD00::/8", "https://[fd12::1]/"],
    ["2001:DB8::1", "https://[2001:db8::1]/"],
    ["mcp.example:8443", "https://mcp.example:8443/"],
    [".example:8443", "https://mcp.example:8443/"],
    ["10.0.0.1", "https://10.0.0.1/"],
    ["10.0.0.1", "https://0xa.1/"],
    ["10.0.0.1", "https://[::ffff:10.0.0.1]/"],
    ["10.0.0.1:8443", "https://10.0.0.1:8443/"],
    ["10.0.0.0/8", "https://10.200.3.4/"],
    ["10.0.0.0/8", "https://[::ffff:a00:1]/"],
    ["192.168.7.0/25", "https://192.168.7.127/"],
    ["0.0.0.0/0", "https://1.1.1.1/"],
    ["fd00::/8", "https://[fd12::1]/"],
    ["2001:db8::1", "https://[2001:db8:0::1]/"],
    ["[2001:db8::1]", "https://[2001:db8::1]/"],
    ["[2001:db8::1]:8443", "https://[2001:db8::1]:8443/"],
  ])("%s names %s", (noProxy, url) => {
    expect(passes(noProxy, url)).toBe(true);
  });

  it.each([
    ["", "https://mcp.example/"],
    [" , ,", "https://mcp.example/"],
    ["mcp.example", "https://xmcp.example/"],
    ["mcp.example", "https://mcp.example.other/"],
    [".mcp.example", "https://xmcp.example/"],
    ["mcp.example:8443", "https://mcp.example/"],
    ["mcp.example:443", "https://mcp.example:8443/"],
    ["mcp.example:443", "http://mcp.example/"],
    ["mcp.example:80", "https://mcp.example/"],
    [":443", "https://mcp.example/"],
    ["", "https://mcp.example./"],
    ["10.0.0.1", "https://10.0.0.10/"],
    ["10.0.0.1:443", "https://10.0.0.1:8443/"],
    ["10.0.0.0/8", "https://11.0.0.1/"],
    ["10.0.0.0/8", "https://10.example/"],
    ["10.0.0.0/8", "https://[fd00::1]/"],
    ["192.168.7.0/25", "https://192.168.7.128/"],
    ["10.0.0.0/33", "https://10.0.0.1/"],
    ["fd00::/8", "https://[fe00::1]/"],
    ["*x", "https://mcp.example/"],
    ["m*.example", "https://mcp.example/"],
  ])("%j does not name %s", (noProxy, url) => {
    expect(passes(noProxy, url)).toBe(false);
  });
});

describe("the proxy for an address", () => {
  const proxies = { https: "http://one.example/", http: "http://two.example/" };
  const choose = (url: string, options = { proxies }) => proxyChooser(options)(new URL(url));

  it("is the one of its scheme; one that is set for http alone does for https too", () => {
    expect(choose("https://mcp.example/")).toBe(proxies.https);
    expect(choose("http://mcp.example/")).toBe(proxies.http);
    expect(proxyChooser({ proxies: { http: "http://two.example/" } })(new URL("https://mcp.example/"))).toBe(
      "http://two.example/",
    );
    expect(proxyChooser({ proxies: { https: "http://one.example/" } })(new URL("http://mcp.example/"))).toBeUndefined();
    expect(proxyChooser({})(new URL("https://mcp.example/"))).toBeUndefined();
  });

  it.each([
    "http://localhost/",
    "https://a.localhost./",
    "http://127.1/",
    "http://[::1]/",
    "https://[::ffff:127.0.0.1]/",
  ])("is never one for %s, which is this machine", (url) => {
    expect(choose(url)).toBeUndefined();
  });
});

describe("the failure of a proxy", () => {
  const caused = (code?: unknown) => new ProxyError(Object.assign(new Error("broke"), { code }));

  it.each<[ProxyError, string | undefined]>([
    [new ProxyError(undefined, 407), "requires a user name and password, or rejected those given (HTTP 407)"],
    [new ProxyError(undefined, 403), "refused the connection (HTTP 403)"],
    [caused("ECONNREFUSED"), "cannot be reached (ECONNREFUSED)"],
    [caused("ENOTFOUND"), "cannot be reached (ENOTFOUND)"],
    [caused(), "cannot be reached"],
    [caused(5), "cannot be reached"],
    [caused("EPROTO"), undefined],
    [caused("ERR_TLS_CERT_ALTNAME_INVALID"), undefined],
    [caused("CERT_HAS_EXPIRED"), undefined],
  ])("%s is explained: %s", (error, reason) => {
    const explained = explainProxyFailure(
      error,
      "http://me:s3cret@proxy.example:8080/",
      new URL("https://mcp.example/"),
    );
    if (reason === undefined) return expect(explained).toBeUndefined();
    const message = `mcp.example: the proxy proxy.example:8080 ${reason}`;
    return expect(explained).toMatchObject({ code: "proxy_failed", class: "unavailable", message, cause: error });
  });

  it.each([
    [502, "connection_refused"],
    [503, "connection_refused"],
    [504, "timeout"],
  ])("with HTTP %i is that of the server", (status, code) => {
    const error = explainProxyFailure(
      new ProxyError(undefined, status),
      "http://proxy.example:8080/",
      new URL("https://mcp.example/"),
    );
    const message = `mcp.example: no connection, as the proxy proxy.example:8080 reports (HTTP ${status})`;
    expect(error).toMatchObject({ code, class: "unavailable", retryable: true, message });
  });

  it("is that of its connection, or the status of its answer", () => {
    const cause = new Error("broke");
    expect([String(new ProxyError(cause)), new ProxyError(cause).cause]).toEqual(["ProxyError: broke", cause]);
    const answered = new ProxyError(undefined, 502);
    expect([String(answered), answered.status, "cause" in answered]).toEqual(["ProxyError: HTTP 502", 502, false]);
  });
});
