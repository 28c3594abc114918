import { readFileSync } from "node:fs";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { createServer } from "node:https";
import { type AddressInfo, connect, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { AgentAuthError } from "../../src/errors.js";
import { networkError } from "../../src/http/network-error.js";
import { createFetch, type DispatcherOptions } from "../../src/node/dispatcher.js";
import { probeTls } from "../../src/node/tls-probe.js";
import { hasOpenssl, makeAuthority } from "../helpers/certificates.js";
import { rejection } from "../helpers/service.js";

const openssl = hasOpenssl("the tests of TLS failures");

let authority: ReturnType<typeof makeAuthority>;
let service: Server;
/** The same service through tunnels, with and without TLS on the way to the proxy. */
let plainProxy: Server;
let tlsProxy: Server;
let served = 0;
let tunnels: { target: string; credentials: string | undefined }[] = [];

const portOf = (server: Server) => (server.address() as AddressInfo).port;
const open: Socket[] = [];

async function listening<T extends Server>(server: T): Promise<T> {
  server.on("connection", (socket: Socket) => open.push(socket));
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return server;
}

function tunnel(request: IncomingMessage, socket: Duplex): void {
  tunnels.push({ target: request.url ?? "", credentials: request.headers["proxy-authorization"] });
  const upstream = connect(portOf(service), "127.0.0.1", () => {
    socket.write("HTTP/1.1 200 OK\r\n\r\n");
    upstream.pipe(socket).pipe(upstream);
  });
  for (const end of [socket, upstream]) end.on("error", () => undefined);
}

beforeAll(async () => {
  if (!openssl) return;
  authority = makeAuthority();
  const { cert, key } = authority.sign({
    name: "server",
    subject: "/CN=service.test",
    names: "DNS:service.test,IP:127.0.0.1",
  });
  const own = { cert: readFileSync(cert), key: readFileSync(key) };
  service = await listening(
    createServer(own, (_request, response) => {
      served++;
      response.end("well");
    }),
  );
  plainProxy = await listening(createHttpServer().on("connect", tunnel));
  tlsProxy = await listening(createServer(own).on("connect", tunnel));
});
beforeEach(() => {
  served = 0;
  tunnels = [];
});
afterAll(() => {
  for (const server of [service, plainProxy, tlsProxy]) server?.close();
  for (const socket of open) socket.destroy();
});

const CREDENTIALS = "me:s3cret";
const BASIC = `Basic ${Buffer.from(CREDENTIALS).toString("base64")}`;

async function failure(options: DispatcherOptions, url: string): Promise<AgentAuthError> {
  return networkError(await rejection(createFetch(options, undefined)(url)), url);
}

const issuedBy = { issuer: "ca of a test, Testers", selfSigned: false };
const UNTRUSTED = "UNABLE_TO_VERIFY_LEAF_SIGNATURE";

describe.skipIf(!openssl)("a handshake shows the issuer of a certificate", () => {
  it("that is trusted, and one that is not", async () => {
    const url = new URL(`https://127.0.0.1:${portOf(service)}/x?y`);
    expect(await probeTls(url, {})).toEqual({ whose: "server", ...issuedBy, problem: UNTRUSTED });
    expect(await probeTls(url, { ca: [authority.read("ca.pem")] })).toEqual({ whose: "server", ...issuedBy });
    expect(served).toBe(0);
  });

  it("through a proxy, which gets its password for that too", async () => {
    const proxy = `http://${CREDENTIALS}@127.0.0.1:${portOf(plainProxy)}`;
    const probe = await probeTls(new URL("https://service.test/"), { proxy });
    expect(probe).toEqual({ whose: "server", ...issuedBy, problem: UNTRUSTED });
    expect(tunnels).toEqual([{ target: "service.test:443", credentials: BASIC }]);
    expect(served).toBe(0);
  });

  it("of the proxy itself, which then gets neither password nor request", async () => {
    const proxy = `https://${CREDENTIALS}@127.0.0.1:${portOf(tlsProxy)}`;
    const probe = await probeTls(new URL("https://service.test/"), { proxy });
    expect(probe).toEqual({ whose: "proxy", ...issuedBy, problem: UNTRUSTED });
    expect([tunnels, served]).toEqual([[], 0]);
  });

  it("that is self-signed", async () => {
    authority.openssl("req", "-x509", "-key", "server.key", "-out", "self.pem", "-days", "2", "-subj", "/CN=myself");
    const own = { cert: authority.read("self.pem"), key: authority.read("server.key") };
    const server = await listening(createServer(own));
    const probe = await probeTls(new URL(`https://127.0.0.1:${portOf(server)}/`), {});
    server.close();
    const problem = "DEPTH_ZERO_SELF_SIGNED_CERT";
    expect(probe).toEqual({ whose: "server", issuer: "myself", selfSigned: true, problem });
  });

  it("that is of another host", async () => {
    const probe = await probeTls(new URL(`https://localhost:${portOf(service)}/`), { ca: [authority.read("ca.pem")] });
    expect(probe).toEqual({ whose: "server", ...issuedBy, problem: expect.stringContaining("ALTNAME") });
  });

  it("and nothing where no TLS is spoken", async () => {
    expect(await probeTls(new URL(`https://127.0.0.1:${portOf(plainProxy)}/`), {})).toBeUndefined();
  });
});

describe.skipIf(!openssl)("a request that fails with TLS", () => {
  it("names the host, the code and what helps, and is sent once", async () => {
    const url = `https://127.0.0.1:${portOf(service)}/x?y`;
    expect(await failure({}, url)).toMatchObject({
      code: "tls_failed",
      class: "unavailable",
      retryable: false,
      url: `https://127.0.0.1:${portOf(service)}/x`,
      message: expect.stringMatching(/^127\.0\.0\.1:\d+: TLS failed \(UNABLE_TO_VERIFY_LEAF_SIGNATURE: /),
      hint: expect.stringContaining("authority"),
    });
    expect(served).toBe(0);
  });

  it("through a proxy makes no second tunnel", async () => {
    const proxies = { https: `http://${CREDENTIALS}@127.0.0.1:${portOf(plainProxy)}` };
    expect((await failure({ proxies }, "https://service.test/")).message).toMatch(
      /^service\.test: TLS failed \(UNABLE_/,
    );
    expect(tunnels.map(({ target }) => target)).toEqual(["service.test:443"]);
  });
});

describe.skipIf(!openssl)("other failures of TLS say what helps with them", () => {
  const attempt = async (wish: { names?: string; days?: number }) => {
    const { cert, key } = authority.sign({ name: "odd", subject: "/CN=odd", ...wish });
    const server = await listening(createServer({ cert: readFileSync(cert), key: readFileSync(key) }));
    const error = await failure({ ca: [authority.read("ca.pem")] }, `https://127.0.0.1:${portOf(server)}/`);
    server.close();
    return error;
  };

  it("a certificate that has ended", async () => {
    expect(await attempt({ names: "IP:127.0.0.1", days: -1 })).toMatchObject({
      code: "tls_failed",
      message: expect.stringContaining("CERT_HAS_EXPIRED"),
      hint: expect.stringContaining("clock"),
    });
  });

  it("a certificate for another name", async () => {
    expect(await attempt({ names: "DNS:other.test" })).toMatchObject({
      code: "tls_failed",
      message: expect.stringContaining("ERR_TLS_CERT_ALTNAME_INVALID"),
      hint: expect.stringContaining("check the host name"),
    });
  });

  it("no TLS at all", async () => {
    const server = await listening(createHttpServer());
    expect(await failure({}, `https://127.0.0.1:${portOf(server)}/`)).toMatchObject({
      code: "tls_failed",
      message: expect.stringMatching(/TLS failed \(ERR_SSL_WRONG_VERSION_NUMBER: wrong version number\)$/),
      hint: expect.stringContaining("check the port"),
    });
    server.close();
  });

  it("a server that hangs up for another reason stays what it was", async () => {
    const { cert, key } = { cert: authority.read("server.pem"), key: authority.read("server.key") };
    const server = await listening(createServer({ cert, key }, (request) => request.socket.destroy()));
    const error = await failure({ ca: [authority.read("ca.pem")] }, `https://127.0.0.1:${portOf(server)}/`);
    server.close();
    for (const socket of open) socket.destroy();
    expect(error).toMatchObject({ code: "connection_reset", retryable: true });
  });
});
