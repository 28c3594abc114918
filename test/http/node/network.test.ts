import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { ManagementClient } from "../../../src/api/client.js";
import { type AgentAuthError, isAgentAuthError } from "../../../src/errors.js";
import type { Exemptions } from "../../../src/http/address-class.js";
import { HttpRequest } from "../../../src/http/http-message.js";
import { networkError } from "../../../src/http/network-error.js";
import type { ConnectOptions } from "../../../src/http/node/http-send.js";
import { createFetch, type NodeNetworkOptions, nodeNetwork } from "../../../src/http/node/network.js";
import { AgentClient } from "../../../src/oauth/agent.js";
import { memoryStore } from "../../../src/store/memory.js";
import { CLOSED_PORT } from "../../helpers/port.js";
import {
  type Answer,
  sendJson,
  startServer,
  startSocketServer,
  startTlsServer,
  type TestServer,
} from "../../helpers/server.js";
import { rejection } from "../../helpers/service.js";

const PUBLIC = "93.184.215.14";
const NO_HOST: Exemptions = new Set();
const PEM = readFileSync(new URL("../../fixtures/self-signed.pem", import.meta.url), "utf8");

/** A server that records its requests. */
const echo: Answer = (response, request) =>
  sendJson(response, { method: request.method, url: request.url, body: request.body, headers: request.headers });

/** Names and, for each lookup in turn, their addresses; the last ones stay. */
function lookupOf(zone: Record<string, readonly (readonly string[])[]>) {
  const lookups: string[] = [];
  const lookup = async (hostname: string) => {
    const nth = lookups.filter((name) => name === hostname).length;
    lookups.push(hostname);
    const answers = zone[hostname] ?? [];
    const addresses = answers[Math.min(nth, answers.length - 1)];
    if (!addresses) throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
    return addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  };
  return { lookup, lookups };
}

const portOf = ({ origin }: TestServer) => new URL(origin).port;
const wayOf = (server: string, options: NodeNetworkOptions, lifted: Exemptions = NO_HOST) =>
  nodeNetwork(options).connectTo(new URL(server), lifted);
const bodyOf = async (response: Response) => (await response.json()) as Record<string, unknown>;

describe("a connection", () => {
  it("goes to the addresses that were checked, though the name has others by then", async () => {
    const server = await startServer(echo);
    const { lookup, lookups } = lookupOf({ "mcp.test": [["127.0.0.1"], ["169.254.169.254"]] });
    const url = `http://mcp.test:${portOf(server)}/mcp`;
    const { fetch } = wayOf(url, { lookup });
    expect(await bodyOf(await fetch(url))).toMatchObject({
      url: "/mcp",
      headers: { host: `mcp.test:${portOf(server)}` },
    });
    expect(lookups).toEqual(["mcp.test"]);
  });

  it("tries one checked address after the other", async () => {
    const server = await startServer(echo);
    const { lookup } = lookupOf({ "mcp.test": [["127.0.0.9", "127.0.0.1"]] });
    const url = `http://mcp.test:${portOf(server)}/`;
    expect((await wayOf(url, { lookup }).fetch(url)).status).toBe(200);
  });

  it.each(["127.0.0.1", "0x7f.1", "[::ffff:127.0.0.1]", "localhost"])(
    "is not made to %s for a server elsewhere, which needs no lookup of ours",
    async (host) => {
      const server = await startServer(echo);
      const { lookup } = lookupOf({ "mcp.test": [[PUBLIC]], localhost: [["127.0.0.1"]] });
      const { fetch } = wayOf("https://mcp.test/", { lookup });
      const error = await rejection(fetch(`http://${host}:${portOf(server)}/`));
      expect(error).toMatchObject({ code: "bad_address", message: expect.stringContaining("this machine") });
      expect(server.requests).toEqual([]);
    },
  );

  it("of one way is not used by another, for which other rules hold", async () => {
    const server = await startServer(echo);
    const { lookup } = lookupOf({ "mcp.test": [[PUBLIC]], "as.test": [["127.0.0.1"]] });
    const network = nodeNetwork({ lookup });
    const url = `http://as.test:${portOf(server)}/`;
    const lax = network.connectTo(new URL("https://mcp.test/"), "all");
    await (await lax.fetch(url)).text();
    const strict = network.connectTo(new URL("https://mcp.test/"), NO_HOST);
    expect(await rejection(strict.fetch(url))).toMatchObject({ code: "bad_address" });
    expect(server.requests).toHaveLength(1);
  });

  it("uses the names of this machine's own list", async () => {
    const server = await startServer(echo);
    const url = `http://localhost:${portOf(server)}/`;
    const way = wayOf(url, {});
    expect((await way.fetch(url)).status).toBe(200);
    expect(await way.addressClass()).toBe("loopback");
  });

  it("fails as always where the name does not exist", async () => {
    const error = await rejection(wayOf("https://mcp.test/", lookupOf({})).fetch("https://mcp.test/"));
    expect(isAgentAuthError(error)).toBe(false);
    expect(error).toMatchObject({ cause: { code: "ENOTFOUND" } });
  });

  it("checks certificates, whatever the environment says", async () => {
    const server = await startTlsServer(PEM, echo);
    const before = process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    onTestFinished(() => {
      if (before === undefined) delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
      else process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = before;
    });
    const url = `${server.origin}/`;
    expect(networkError(await rejection(wayOf(url, {}).fetch(url)), url)).toMatchObject({
      code: "tls_failed",
      message: expect.stringContaining("DEPTH_ZERO_SELF_SIGNED_CERT"),
    });
    expect((await wayOf(url, { ca: [PEM] }).fetch(url)).status).toBe(200);
  });
});

describe("a redirect", () => {
  it.each([
    ["http://169.254.169.254/latest/meta-data/", "where nothing is ever sent"],
    ["http://metadata.google.internal/", "where nothing is ever sent"],
    ["http://[::ffff:a9fe:a9fe]/", "where nothing is ever sent"],
    ["http://inner.test/", "where nothing is ever sent"],
  ])("to %s is not followed, not even from this machine", async (location, words) => {
    const server = await startServer((response) => response.writeHead(302, { location }).end());
    const { fetch } = wayOf(server.origin, lookupOf({ "inner.test": [["169.254.1.1"]] }));
    expect(await rejection(fetch(server.origin))).toMatchObject({
      code: "bad_address",
      message: expect.stringContaining(words),
    });
  });

  it("is judged at every hop by where its name leads", async () => {
    const inner = await startServer(echo);
    const outer = await startServer((response, request) => {
      const location = request.url === "/" ? "/again" : `http://inner.test:${portOf(inner)}/secret`;
      return response.writeHead(307, { location }).end();
    });
    const zone = { "mcp.test": [[PUBLIC], ["127.0.0.1"]], "inner.test": [["127.0.0.1"]] };
    const url = `http://mcp.test:${portOf(outer)}/`;
    // Only its own host is lifted, so that the first hop can be made to this machine.
    const way = wayOf(url, { lookup: lookupOf(zone).lookup }, new Set(["mcp.test"]));
    await way.addressClass();
    const error = await rejection(way.fetch(url, { method: "POST", body: "question" }));
    expect(error).toMatchObject({ code: "bad_address", message: expect.stringContaining('"inner.test"') });
    expect([outer.requests.length, inner.requests.length]).toEqual([2, 0]);
  });
});

describe("its fetch", () => {
  const form = new FormData();
  form.set("name", "value");
  it.each([
    ["a string", "text", "text"],
    ["bytes", new TextEncoder().encode("text"), "text"],
    ["parameters", new URLSearchParams({ a: "b c" }), "a=b+c"],
    ["a blob", new Blob(["text"]), "text"],
    ["a form", form, 'name="name"'],
  ] as const)("sends %s", async (_what, body, expected) => {
    const server = await startServer(echo);
    await wayOf(server.origin, {}).fetch(server.origin, { method: "POST", body });
    const [request] = server.requests;
    expect(request?.body).toContain(expected);
    expect(request?.headers["transfer-encoding"]).toBeUndefined();
    if (body instanceof FormData) {
      const boundary = /boundary=(\S+)$/.exec(request?.headers["content-type"] ?? "")?.[1] ?? "?";
      expect(request?.body.startsWith(`--${boundary}\r\n`)).toBe(true);
    }
  });

  it.each([
    ["a Request", Request, "from the request"],
    ["a Request of ours", HttpRequest, "from the request"],
    ["a Request of ours with a Blob", HttpRequest, new Blob(["from the request"])],
    ["a Request of ours with a stream", HttpRequest, "stream"],
  ])("sends %s with its method, headers and body, which what is beside it replaces", async (_name, Kind, given) => {
    const server = await startServer(echo);
    const { fetch } = wayOf(server.origin, {});
    const request = () => {
      const body = given === "stream" ? new Blob(["from the request"]).stream() : given;
      return new Kind(`${server.origin}/a`, { method: "PUT", headers: { "x-one": "1" }, body, duplex: "half" });
    };
    expect(await bodyOf(await fetch(request()))).toMatchObject({
      method: "PUT",
      url: "/a",
      body: "from the request",
      headers: { "x-one": "1" },
    });
    const replaced = await fetch(request(), { method: "POST", headers: { "x-two": "2" }, body: "from beside it" });
    const { headers, ...rest } = await bodyOf(replaced);
    expect(rest).toMatchObject({ method: "POST", body: "from beside it" });
    expect(headers).toMatchObject({ "x-two": "2" });
    expect(headers).not.toHaveProperty("x-one");
  });

  it.each(["an address", "a request"])("gives agent.fetch of %s a Response of the global class", async (form) => {
    const server = await startServer((response, { url, method, body }) => {
      if (url !== "/mcp") return sendJson(response, {}, 404);
      if (method !== "POST") return response.end("done");
      return sendJson(response, { jsonrpc: "2.0", id: JSON.parse(body).id, result: { tools: [] } });
    });
    const agent = new AgentClient({ store: memoryStore(), network: nodeNetwork() });
    const url = `${server.origin}/mcp`;
    const response = await agent.fetch(form === "a request" ? new Request(url) : url);
    expect(response).toBeInstanceOf(Response);
    expect([await response.clone().text(), await response.text()]).toEqual(["done", "done"]);
  });

  it("gives a Response of the global class, with address, redirect and every cookie", async () => {
    const server = await startServer((response, request) => {
      if (request.url === "/") return response.writeHead(302, { location: "/end" }).end();
      return response.writeHead(201, { "set-cookie": ["a=1", "b=2"] }).end("done");
    });
    const response = await wayOf(server.origin, {}).fetch(new URL(server.origin));
    expect(response).toBeInstanceOf(Response);
    expect([response.status, response.url, response.redirected]).toEqual([201, `${server.origin}/end`, true]);
    expect(response.headers.getSetCookie()).toEqual(["a=1", "b=2"]);
    expect(await response.text()).toBe("done");
  });

  it.each([204, 304])("gives an answer without a body for %i", async (status) => {
    const server = await startServer((response) => response.writeHead(status).end());
    const response = await wayOf(server.origin, {}).fetch(server.origin);
    expect([response.status, response.body]).toEqual([status, null]);
  });

  it("gives no body for HEAD", async () => {
    const server = await startServer((response) => response.writeHead(200, { "content-length": 5 }).end());
    const response = await wayOf(server.origin, {}).fetch(server.origin, { method: "HEAD" });
    expect([response.status, response.redirected, response.body]).toEqual([200, false, null]);
  });

  it("returns a redirect with `redirect: manual`", async () => {
    const server = await startServer((response) => response.writeHead(302, { location: "/end" }).end());
    const response = await wayOf(server.origin, {}).fetch(server.origin, { redirect: "manual" });
    expect([response.status, response.headers.get("location")]).toEqual([302, "/end"]);
  });

  it("ends with its signal, in the request and in the body", async () => {
    const server = await startServer((response) => response.writeHead(200).write("begun"));
    const controller = new AbortController();
    const response = await wayOf(server.origin, {}).fetch(server.origin, { signal: controller.signal });
    const reading = rejection(response.text());
    controller.abort(new Error("enough"));
    expect(await reading).toMatchObject({ message: "enough" });
    const { signal } = controller;
    expect(await rejection(wayOf(server.origin, {}).fetch(server.origin, { signal }))).toMatchObject({
      message: "enough",
    });
    expect(server.requests).toHaveLength(1);
  });

  // Each step before the first byte waits, if only for a turn.
  it.each([0, 1, 2, 3, 4])("fails with a signal that fires %i turns after the call", async (turns) => {
    const server = await startServer(echo);
    const controller = new AbortController();
    const { signal } = controller;
    const sending = rejection(wayOf(server.origin, {}).fetch(server.origin, { signal }));
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    controller.abort(new Error("enough"));
    expect(await sending).toMatchObject({ message: "enough" });
  });
});

/** A proxy that joins whatever is lookups for with one server, and notes it. */
async function startProxy(target: TestServer) {
  const tunnels: string[] = [];
  const plain: string[] = [];
  const proxy: Server = createServer((request, response) => {
    plain.push(request.url ?? "");
    response.writeHead(400).end();
  });
  proxy.on("connect", (request, socket) => {
    tunnels.push(request.url ?? "");
    const upstream = connect(Number(portOf(target)), "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      upstream.pipe(socket).pipe(upstream);
    });
    for (const end of [socket, upstream]) end.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void proxy.close());
  return { uri: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, tunnels, plain };
}

describe("behind a proxy", () => {
  it("looks no name up: tunnels to it, for http too, so that the proxy sees nothing of a request", async () => {
    const server = await startServer(echo);
    const { uri, tunnels, plain } = await startProxy(server);
    const { lookup, lookups } = lookupOf({});
    const { fetch } = wayOf("http://mcp.test/", { lookup, proxies: { http: uri } });
    expect(await bodyOf(await fetch("http://mcp.test/mcp", { method: "POST", body: "secret" }))).toMatchObject({
      body: "secret",
    });
    expect({ tunnels, plain, lookups }).toEqual({ tunnels: ["mcp.test:80"], plain: [], lookups: [] });
  });

  it.each(["http://10.0.0.7/", "http://169.254.169.254/", "http://0xA9FEA9FE/", "http://[fd12::1]/"])(
    "asks the proxy for no tunnel to %s, neither at once nor by a redirect",
    async (location) => {
      const server = await startServer((response) => response.writeHead(302, { location }).end());
      const { uri, tunnels } = await startProxy(server);
      const { fetch } = wayOf("http://mcp.test/", { ...lookupOf({}), proxies: { http: uri } });
      for (const url of [location, "http://mcp.test/"]) {
        expect(await rejection(fetch(url))).toMatchObject({ code: "bad_address", class: "refused" });
      }
      expect(tunnels).toEqual(["mcp.test:80"]);
    },
  );

  it("sends what is for this machine through it only where that is wanted", async () => {
    const server = await startServer(echo);
    const { uri, tunnels } = await startProxy(server);
    for (const host of ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"]) {
      const url = `http://${host}:${portOf(server)}/`;
      expect((await wayOf(url, { proxies: { http: uri, https: uri } }).fetch(url)).status).toBe(200);
    }
    expect(tunnels).toEqual([]);
    const url = `http://127.0.0.1:${portOf(server)}/`;
    expect((await wayOf(url, { proxies: { http: uri, forLoopback: true } }).fetch(url)).status).toBe(200);
    expect(tunnels).toEqual([`127.0.0.1:${portOf(server)}`]);
  });

  it("looks up and judges what is reached without it", async () => {
    const server = await startServer(echo);
    const { uri, tunnels } = await startProxy(server);
    const { lookup, lookups } = lookupOf({ "as.test": [["127.0.0.1"]] });
    const options = { lookup, proxies: { http: uri }, noProxy: "as.test" };
    const { fetch } = wayOf("http://mcp.test/", options);
    expect(await rejection(fetch(`http://as.test:${portOf(server)}/`))).toMatchObject({ code: "bad_address" });
    expect({ tunnels, lookups, requests: server.requests }).toEqual({
      tunnels: [],
      lookups: ["as.test"],
      requests: [],
    });
  });
});

const TIMEOUT_MS = 300;

/** What the library says of a server, where it asks for a list, and where it asks who gives tokens. */
async function failures(origin: string, options: ConnectOptions = {}) {
  const settings = { timeoutMs: TIMEOUT_MS, maxRetries: 0 };
  const service = new ManagementClient({
    baseUrl: origin,
    token: "tok_0123456789",
    fetch: createFetch(options, undefined),
    ...settings,
  });
  const agent = new AgentClient({ store: memoryStore(), network: nodeNetwork(options), ...settings });
  const listed = (await rejection(service.pools.list({ domain_id: "d" }).toArray())) as AgentAuthError;
  const { error } = await agent.discover(`${origin}/mcp`);
  return [listed, error] as const;
}

const CLOSED = `http://127.0.0.1:${CLOSED_PORT}`;

it.each<[string, string, () => Promise<[string, ConnectOptions?]>, RegExp]>([
  ["a name that does not exist", "dns_failed", async () => ["https://no-such-host.invalid"], /could not be resolved/],
  ["a closed port", "connection_refused", async () => [CLOSED], /the connection was refused/],
  [
    "a connection that is cut",
    "connection_reset",
    async () => [(await startSocketServer((socket) => socket.resetAndDestroy())).origin],
    /the connection broke/,
  ],
  [
    "an answer that is cut",
    "connection_reset",
    async () => {
      const cut = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{";
      return [(await startSocketServer((socket) => socket.end(cut))).origin];
    },
    /the connection broke/,
  ],
  [
    "a server that says nothing",
    "timeout",
    async () => [(await startSocketServer(() => undefined)).origin],
    /no (?:complete )?response in 0\.3 s/,
  ],
  [
    "a certificate that is not trusted",
    "tls_failed",
    async () => [(await startTlsServer(PEM, (response) => response.end())).origin],
    /TLS failed \(DEPTH_ZERO_SELF_SIGNED_CERT: /,
  ],
  [
    "a proxy that is not there",
    "proxy_failed",
    async () => ["https://service.test", { proxies: { https: CLOSED } }],
    /^service\.test: the proxy 127\.0\.0\.1:\d+ cannot be reached \(ECONNREFUSED\)/,
  ],
])(
  "a failure on the way is distinguished, for lists and for tokens alike %s is %s",
  async (_what, code, arrange, words) => {
    const [origin, options] = await arrange();
    for (const error of await failures(origin, options)) {
      expect(error).toMatchObject({ code, class: "unavailable", message: expect.stringMatching(words) });
    }
  },
);
