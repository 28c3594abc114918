import { readFileSync } from "node:fs";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { createServer } from "node:https";
import { type AddressInfo, connect, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { describe, expect, test } from "vitest";
import type { AgentAuthError } from "../../src/errors.js";
import { networkError } from "../../src/http/network-error.js";
import type { ConnectOptions } from "../../src/transport/http-send.js";
import { createFetch } from "../../src/transport/network.js";
import { probeTls } from "../../src/transport/tls-probe.js";
import { hasOpenssl, makeAuthority } from "../helpers/certificates.js";
import { startSocketServer } from "../helpers/server.js";
import { rejection } from "../helpers/service.js";

const openssl = hasOpenssl("the tests of TLS failures");

const portOf = (server: Server) => (server.address() as AddressInfo).port;

/** An HTTPS server, and proxies that tunnel to it, with and without TLS on the way to the proxy. */
const it = test
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  .extend("authority", { scope: "file" }, ({}) => makeAuthority())
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  .extend("listening", { scope: "file" }, ({}, { onCleanup }) => {
    const started: [Server, Set<Socket>][] = [];
    onCleanup(() => {
      for (const [server, sockets] of started) {
        server.close();
        for (const socket of sockets) socket.destroy();
      }
    });
    return async <T extends Server>(server: T): Promise<T> => {
      const sockets = new Set<Socket>();
      started.push([server, sockets]);
      server.on("connection", (socket: Socket) => sockets.add(socket));
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      return server;
    };
  })
  .extend("certificate", { scope: "file" }, ({ authority }) => {
    const { cert, key } = authority.sign({
      name: "server",
      subject: "/CN=service.test",
      names: "DNS:service.test,IP:127.0.0.1",
    });
    return { cert: readFileSync(cert), key: readFileSync(key) };
  })
  .extend("servers", { scope: "file" }, async ({ certificate, listening }) => {
    const seen = { served: 0, tunnels: [] as { target: string; credentials: string | undefined }[] };
    const service = await listening(
      createServer(certificate, (_request, response) => {
        seen.served++;
        response.end("well");
      }),
    );
    const tunnel = (request: IncomingMessage, socket: Duplex) => {
      seen.tunnels.push({ target: request.url ?? "", credentials: request.headers["proxy-authorization"] });
      const upstream = connect(portOf(service), "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 OK\r\n\r\n");
        upstream.pipe(socket).pipe(upstream);
      });
      for (const end of [socket, upstream]) end.on("error", () => undefined);
    };
    const plainProxy = await listening(createHttpServer().on("connect", tunnel));
    const tlsProxy = await listening(createServer(certificate).on("connect", tunnel));
    return { seen, service, tunnel, plainProxy, tlsProxy };
  })
  .extend("service", ({ servers }) => servers.service)
  .extend("tunnel", ({ servers }) => servers.tunnel)
  .extend("plainProxy", ({ servers }) => servers.plainProxy)
  .extend("tlsProxy", ({ servers }) => servers.tlsProxy)
  /** What has reached the servers in this test. */
  .extend("seen", ({ servers: { seen } }) => Object.assign(seen, { served: 0, tunnels: [] }));

const CREDENTIALS = "me:s3cret";
const BASIC = `Basic ${Buffer.from(CREDENTIALS).toString("base64")}`;

async function failure(options: ConnectOptions, url: string): Promise<AgentAuthError> {
  return networkError(await rejection(createFetch(options, undefined)(url)), url);
}

const issuedBy = { issuer: "ca of a test, Testers", selfSigned: false };
const UNTRUSTED = "UNABLE_TO_VERIFY_LEAF_SIGNATURE";

describe.skipIf(!openssl)("a handshake shows the issuer of a certificate", () => {
  it("that is trusted, and one that is not", async ({ authority, seen, service }) => {
    const url = new URL(`https://127.0.0.1:${portOf(service)}/x?y`);
    expect(await probeTls(url, {})).toEqual({ whose: "server", ...issuedBy, problem: UNTRUSTED });
    expect(await probeTls(url, { ca: [authority.read("ca.pem")] })).toEqual({ whose: "server", ...issuedBy });
    expect(seen.served).toBe(0);
  });

  it("through a proxy, which gets its password for that too", async ({ plainProxy, seen }) => {
    const proxy = `http://${CREDENTIALS}@127.0.0.1:${portOf(plainProxy)}`;
    const probe = await probeTls(new URL("https://service.test/"), { proxy });
    expect(probe).toEqual({ whose: "server", ...issuedBy, problem: UNTRUSTED });
    expect(seen.tunnels).toEqual([{ target: "service.test:443", credentials: BASIC }]);
    expect(seen.served).toBe(0);
  });

  it("through a proxy whose password has a % that encodes nothing", async ({ plainProxy, seen }) => {
    const proxy = `http://me:100%zz@127.0.0.1:${portOf(plainProxy)}`;
    await probeTls(new URL("https://service.test/"), { proxy });
    expect(seen.tunnels.map(({ credentials }) => credentials)).toEqual([`Basic ${btoa("me:100%zz")}`]);
  });

  it("through a proxy whose own certificate is trusted", async ({ authority, seen, tlsProxy }) => {
    const proxy = `https://${CREDENTIALS}@127.0.0.1:${portOf(tlsProxy)}`;
    const ca = [authority.read("ca.pem")];
    expect(await probeTls(new URL("https://service.test/"), { proxy, ca })).toEqual({ whose: "server", ...issuedBy });
    expect(seen).toEqual({ served: 0, tunnels: [{ target: "service.test:443", credentials: BASIC }] });
  });

  it("of the proxy itself, which then gets neither password nor request", async ({ seen, tlsProxy }) => {
    const proxy = `https://${CREDENTIALS}@127.0.0.1:${portOf(tlsProxy)}`;
    const probe = await probeTls(new URL("https://service.test/"), { proxy });
    expect(probe).toEqual({ whose: "proxy", ...issuedBy, problem: UNTRUSTED });
    expect(seen).toEqual({ served: 0, tunnels: [] });
  });

  it.for([
    ["/CN=myself", "myself"],
    ["/OU=a unit", "a unit"],
    ["/CN=myself/OU=a unit", "myself"],
    ["/C=DE", "an unnamed issuer"],
  ] as const)("that is self-signed as %s", async ([subject, issuer], { authority, certificate, listening }) => {
    authority.openssl("req", "-x509", "-key", "server.key", "-out", "self.pem", "-days", "2", "-subj", subject);
    const own = { cert: authority.read("self.pem"), key: certificate.key };
    const server = await listening(createServer(own));
    const probe = await probeTls(new URL(`https://127.0.0.1:${portOf(server)}/`), {});
    server.close();
    const problem = "DEPTH_ZERO_SELF_SIGNED_CERT";
    expect(probe).toEqual({ whose: "server", issuer, selfSigned: true, problem });
  });

  it("that is of another host", async ({ authority, service }) => {
    const probe = await probeTls(new URL(`https://localhost:${portOf(service)}/`), { ca: [authority.read("ca.pem")] });
    expect(probe).toEqual({ whose: "server", ...issuedBy, problem: expect.stringContaining("ALTNAME") });
  });

  it("and nothing where no TLS is spoken", async ({ plainProxy }) => {
    expect(await probeTls(new URL(`https://127.0.0.1:${portOf(plainProxy)}/`), {})).toBeUndefined();
  });
});

describe.skipIf(!openssl)("a proxy that is reached by TLS", () => {
  const through = (tlsProxy: Server, host = "127.0.0.1") => ({
    https: `https://${CREDENTIALS}@${host}:${portOf(tlsProxy)}`,
  });

  it("gets its credentials, and tunnels to the server, where its certificate is of its own host", async ({
    authority,
    listening,
    seen,
    tunnel,
  }) => {
    for (const [host, names] of [
      ["127.0.0.1", "IP:127.0.0.1"],
      ["localhost", "DNS:localhost"],
    ] as const) {
      const { cert } = authority.sign({ name: "proxy", subject: "/CN=proxy", names });
      const key = authority.read("proxy.key");
      const proxy = await listening(createServer({ cert: readFileSync(cert), key }).on("connect", tunnel));
      const fetch = createFetch({ proxies: through(proxy, host), ca: [authority.read("ca.pem")] }, undefined);
      const response = await fetch("https://service.test/", { headers: { connection: "close" } });
      expect(await response.text()).toBe("well");
    }
    const target = { target: "service.test:443", credentials: BASIC };
    expect(seen).toEqual({ served: 2, tunnels: [target, target] });
  });

  it("gets nothing where its certificate is not trusted, or is that of another host", async ({
    authority,
    seen,
    tlsProxy,
  }) => {
    expect(await failure({ proxies: through(tlsProxy) }, "https://service.test/")).toMatchObject({
      code: "tls_failed",
      message: expect.stringContaining(UNTRUSTED),
    });
    const options = { proxies: through(tlsProxy, "localhost"), ca: [authority.read("ca.pem")] };
    expect(await failure(options, "https://service.test/")).toMatchObject({
      code: "tls_failed",
      message: expect.stringContaining("ALTNAME"),
    });
    expect(seen).toEqual({ served: 0, tunnels: [] });
  });
});

describe.skipIf(!openssl)("a request that fails with TLS", () => {
  it("names the host, the code and what helps, and is sent once", async ({ seen, service }) => {
    const url = `https://127.0.0.1:${portOf(service)}/x?y`;
    expect(await failure({}, url)).toMatchObject({
      code: "tls_failed",
      class: "unavailable",
      retryable: false,
      url: `https://127.0.0.1:${portOf(service)}/x`,
      message: expect.stringMatching(/^127\.0\.0\.1:\d+: TLS failed \(UNABLE_TO_VERIFY_LEAF_SIGNATURE: /),
      hint: expect.stringContaining("authority"),
    });
    expect(seen.served).toBe(0);
  });

  it("through a proxy makes no second tunnel", async ({ plainProxy, seen }) => {
    const proxies = { https: `http://${CREDENTIALS}@127.0.0.1:${portOf(plainProxy)}` };
    expect((await failure({ proxies }, "https://service.test/")).message).toMatch(
      /^service\.test: TLS failed \(UNABLE_/,
    );
    expect(seen.tunnels.map(({ target }) => target)).toEqual(["service.test:443"]);
  });
});

describe.skipIf(!openssl)("other failures of TLS say what helps with them", () => {
  const attemptTest = it.extend(
    "attempt",
    ({ authority, listening }) =>
      async (wish: { names?: string; days?: number }) => {
        const { cert, key } = authority.sign({ name: "odd", subject: "/CN=odd", ...wish });
        const server = await listening(createServer({ cert: readFileSync(cert), key: readFileSync(key) }));
        const error = await failure({ ca: [authority.read("ca.pem")] }, `https://127.0.0.1:${portOf(server)}/`);
        server.close();
        return error;
      },
  );

  attemptTest("a certificate that has ended", async ({ attempt }) => {
    expect(await attempt({ names: "IP:127.0.0.1", days: -1 })).toMatchObject({
      code: "tls_failed",
      message: expect.stringContaining("CERT_HAS_EXPIRED"),
      hint: expect.stringContaining("clock"),
    });
  });

  attemptTest("a certificate for another name", async ({ attempt }) => {
    expect(await attempt({ names: "DNS:other.test" })).toMatchObject({
      code: "tls_failed",
      message: expect.stringContaining("ERR_TLS_CERT_ALTNAME_INVALID"),
      hint: expect.stringContaining("check the host name"),
    });
  });

  it("no TLS at all", async ({ listening }) => {
    const server = await listening(createHttpServer());
    expect(await failure({}, `https://127.0.0.1:${portOf(server)}/`)).toMatchObject({
      code: "tls_failed",
      message: expect.stringMatching(/TLS failed \(ERR_SSL_WRONG_VERSION_NUMBER: wrong version number\)$/),
      hint: expect.stringContaining("check the port"),
    });
    server.close();
  });

  it("a server that hangs up for another reason stays what it was", async ({ authority, certificate, listening }) => {
    const server = await listening(createServer(certificate, (request) => request.socket.destroy()));
    const error = await failure({ ca: [authority.read("ca.pem")] }, `https://127.0.0.1:${portOf(server)}/`);
    server.close();
    expect(error).toMatchObject({ code: "connection_reset", retryable: true });
  });
});

test("a probe gives up on a server that says nothing", async () => {
  const { origin } = await startSocketServer(() => {});
  expect(await probeTls(new URL(origin), {})).toBeUndefined();
});
