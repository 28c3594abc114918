import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { hasOpenssl, makeAuthority } from "../helpers/certificates.js";
import { runCli, startProcesses } from "../helpers/cli.js";

startProcesses();

const openssl = hasOpenssl("the tests of proxies and TLS");

let authority: ReturnType<typeof makeAuthority>;
/** Its own authority, and that of somebody else. */
let CA: string;
let STRANGER: string;

const PAGE = JSON.stringify({ status: "success", pagination: {}, summaries: [{ id: "dev_1", type: "device" }] });

/** What reached the service: the path and the token. */
let served: { path: string; token: string | undefined }[] = [];
/** What reached the proxy. */
let proxied: { target: string; headers: IncomingMessage["headers"] }[] = [];
/** What the proxy answers instead of a tunnel. */
let refusal: string | undefined;
let service: Server;
let proxy: Server;

function serve(request: IncomingMessage, response: import("node:http").ServerResponse): void {
  served.push({ path: request.url?.split("?")[0] ?? "", token: request.headers.authorization });
  response.setHeader("content-type", "application/json");
  response.end(PAGE);
}

/** Joins the client with the service whatever name it asks for: names are the proxy's business. */
function tunnel(request: IncomingMessage, socket: Duplex): void {
  proxied.push({ target: request.url ?? "", headers: request.headers });
  if (refusal !== undefined) {
    socket.end(`HTTP/1.1 ${refusal}\r\ncontent-length: 0\r\n\r\n`);
    return;
  }
  const upstream = connect(portOf(service), "127.0.0.1", () => {
    socket.write("HTTP/1.1 200 OK\r\n\r\n");
    upstream.pipe(socket).pipe(upstream);
  });
  for (const end of [socket, upstream]) end.on("error", () => {});
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

async function listening<T extends Server>(server: T): Promise<T> {
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return server;
}

beforeAll(async () => {
  if (!openssl) return;
  authority = makeAuthority();
  CA = authority.ca;
  STRANGER = makeAuthority("stranger").ca;
  authority.sign({ name: "server", subject: "/CN=service.test", names: "DNS:service.test,IP:127.0.0.1" });
  const own = { key: authority.read("server.key"), cert: authority.read("server.pem") };
  service = await listening(createTlsServer(own, serve) as unknown as Server);
  proxy = await listening(createServer((_request, response) => response.writeHead(400).end()).on("connect", tunnel));
});
beforeEach(() => {
  served = [];
  proxied = [];
  refusal = undefined;
});
afterAll(() => {
  service?.close();
  proxy?.close();
});

const TOKEN = "tok_0123456789abcdef";
const PASSWORD = "s3cret-of-the-proxy";

/** Lists the devices of `https://service.test`, without repetitions. */
function list(args: readonly string[] = [], env: Record<string, string> = {}) {
  const fixed = ["devices", "list", "--pool", "p", "-o", "id", "--retries", "0", "--base-url", "https://service.test"];
  return runCli([...fixed, ...args], { env: { AGENTAUTH_API_TOKEN: TOKEN, ...env } });
}

const proxyUrl = (credentials = "") => `http://${credentials}127.0.0.1:${portOf(proxy)}`;
const works = { code: 0, stdout: "dev_1\n", stderr: "" };

describe.skipIf(!openssl)("a proxy", () => {
  it("is asked for a tunnel, and sees nothing of what goes through it", async () => {
    expect(await list(["--proxy", proxyUrl(), "--ca-file", CA])).toMatchObject(works);
    expect(proxied.map(({ target }) => target)).toEqual(["service.test:443"]);
    expect(JSON.stringify(proxied)).not.toContain(TOKEN);
    expect(served).toEqual([{ path: "/api/v1/device", token: `Bearer ${TOKEN}` }]);
  });

  it.each(["HTTPS_PROXY", "https_proxy"])("is taken from %s", async (name) => {
    expect(await list(["--ca-file", CA], { [name]: proxyUrl() })).toMatchObject(works);
    expect(proxied).toHaveLength(1);
  });

  it("is named by the flag before the environment, also without http://", async () => {
    const args = ["--proxy", proxyUrl().replace("http://", ""), "--ca-file", CA];
    expect(await list(args, { HTTPS_PROXY: "http://127.0.0.1:9" })).toMatchObject(works);
  });

  it.each(["service.test", ".test", "other.example, service.test", "*"])(
    "is passed by for what NO_PROXY=%s names",
    async (names) => {
      const { code, stderr } = await list(["--ca-file", CA], { HTTPS_PROXY: proxyUrl(), NO_PROXY: names });
      expect([code, proxied]).toEqual([5, []]);
      expect(stderr).toContain("service.test: the host name could not be resolved");
    },
  );

  it("gets its user and password", async () => {
    expect(await list(["--ca-file", CA], { HTTPS_PROXY: proxyUrl(`me:${PASSWORD}@`) })).toMatchObject(works);
    const basic = Buffer.from(`me:${PASSWORD}`).toString("base64");
    expect(proxied[0]?.headers["proxy-authorization"]).toBe(`Basic ${basic}`);
  });

  it.each([
    ["407 Proxy Authentication Required", /requires a user name and password/],
    ["403 Forbidden", /refused the connection \(HTTP 403\)/],
    ["502 Bad Gateway", /refused the connection \(HTTP 502\)/],
  ])("that answers %s: exit 5, the proxy is named, its password is not", async (answer, words) => {
    refusal = answer;
    for (const flags of [[], ["-v"], ["--debug"], ["-o", "json"]]) {
      const { code, stdout, stderr } = await list(["--ca-file", CA, ...flags], {
        HTTPS_PROXY: proxyUrl(`me:${PASSWORD}@`),
      });
      expect({ code, stdout }).toEqual({ code: 5, stdout: "" });
      expect(stderr).toMatch(words);
      expect(stderr).toContain(`service.test: the proxy 127.0.0.1:${portOf(proxy)} `);
      expect(stderr).not.toContain(PASSWORD);
      expect(stderr).not.toContain(Buffer.from(`me:${PASSWORD}`).toString("base64"));
    }
    expect(served).toEqual([]);
  });

  it("that is not there: exit 5, and it is the proxy that is named", async () => {
    const gone = await listening(createServer());
    const url = `http://me:${PASSWORD}@127.0.0.1:${portOf(gone)}`;
    await new Promise((resolve) => gone.close(resolve));
    const { code, stderr } = await list(["--debug"], { HTTPS_PROXY: url });
    expect(code).toBe(5);
    expect(stderr).toMatch(
      /error: service\.test: the proxy 127\.0\.0\.1:\d+ cannot be reached \(ECONNREFUSED\)\nhint: check (?:--proxy|HTTPS_PROXY)/,
    );
    expect(stderr).not.toContain(PASSWORD);
  });

  it("with an address that is none does not show its password either", async () => {
    const { code, stderr } = await list([], { HTTPS_PROXY: `socks5://me:${PASSWORD}@127.0.0.1:1` });
    expect([code, stderr.includes(PASSWORD)]).toEqual([2, false]);
  });

  it.each(["http", "socks5"])("as a flag with a password is refused, and no request is sent (%s)", async (scheme) => {
    const { code, stderr } = await list(["--proxy", `${scheme}://me:${PASSWORD}@127.0.0.1:${portOf(proxy)}`]);
    expect([code, stderr.includes(PASSWORD), proxied]).toEqual([2, false, []]);
    expect(stderr).toContain("--proxy: a password must not be on the command line");
    expect(stderr).toContain("HTTPS_PROXY");
  });

  it("is never used for this machine, since it would see the token", async () => {
    const local = await listening(createServer(serve));
    try {
      for (const host of ["127.0.0.1", "localhost"]) {
        const args = ["--base-url", `http://${host}:${portOf(local)}`, "--proxy", proxyUrl()];
        expect(await list(args, { HTTP_PROXY: proxyUrl() })).toMatchObject(works);
      }
      expect([proxied, served.length]).toEqual([[], 2]);
    } finally {
      local.close();
    }
  });
});

/** The check of the certificate in a report of doctor. */
function checkOf(report: string): { state: string; found: string; hint?: string } | undefined {
  const { checks } = JSON.parse(report) as { checks: { name: string; state: string; found: string; hint?: string }[] };
  return checks.find(({ name }) => name.endsWith(" certificate"));
}

describe.skipIf(!openssl)("TLS", () => {
  it("with an authority that nobody knows: exit 5, and the token stays here", async () => {
    const { code, stdout, stderr } = await list(["--proxy", proxyUrl()]);
    expect({ code, stdout }).toEqual({ code: 5, stdout: "" });
    expect(stderr).toMatch(
      /^error: service\.test: TLS failed \(UNABLE_TO_VERIFY_LEAF_SIGNATURE: .*\nhint: --ca-file <file> trusts .*; agentauth doctor https:\/\/service\.test shows who issued the certificate\n$/,
    );
    expect([served, proxied.length]).toEqual([[], 1]);
  });

  it("with an authority that nobody knows: doctor names it", async () => {
    const doctor = (args: readonly string[]) => runCli(["doctor", ...args, "--proxy", proxyUrl(), "-o", "json"]);
    for (const args of [["https://service.test/mcp"], ["--online", "--base-url", "https://service.test"]]) {
      const { code, stdout } = await doctor(args);
      const check = checkOf(stdout);
      expect([code, check?.state]).toEqual([5, "failed"]);
      expect(check?.found).toBe(
        'service.test: TLS failed: the certificate was issued by "ca of a test, Testers", which is not trusted (UNABLE_TO_VERIFY_LEAF_SIGNATURE)',
      );
      expect(check?.hint).toMatch(/^--ca-file <file> trusts/);
    }
    const { stdout } = await doctor(["https://service.test/mcp", "--ca-file", CA]);
    expect(checkOf(stdout)).toMatchObject({
      state: "ok",
      found: 'service.test: issued by "ca of a test, Testers", which is trusted',
    });
  });

  it("with a certificate for another name: exit 5", async () => {
    const { code, stderr } = await list(["--proxy", proxyUrl(), "--ca-file", CA, "--base-url", "https://other.test"]);
    expect([code, stderr]).toEqual([
      5,
      expect.stringMatching(/^error: other\.test: TLS failed \(ERR_TLS_CERT_ALTNAME_INVALID/),
    ]);
    expect(served).toEqual([]);
  });

  it("trusts --ca-file without a proxy too", async () => {
    const url = ["--base-url", `https://127.0.0.1:${portOf(service)}`];
    expect((await list(url)).code).toBe(5);
    expect(await list([...url, "--ca-file", CA])).toMatchObject(works);
  });

  it("trusts NODE_EXTRA_CA_CERTS, with a proxy and beside --ca-file", async () => {
    const env = { NODE_EXTRA_CA_CERTS: CA };
    expect(await list(["--base-url", `https://127.0.0.1:${portOf(service)}`], env)).toMatchObject(works);
    expect(await list(["--proxy", proxyUrl()], env)).toMatchObject(works);
    expect(await list(["--proxy", proxyUrl(), "--ca-file", STRANGER], env)).toMatchObject(works);
  });

  it("does not trust a stranger's authority", async () => {
    expect((await list(["--proxy", proxyUrl(), "--ca-file", STRANGER])).code).toBe(5);
  });
});
