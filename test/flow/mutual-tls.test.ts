import { once } from "node:events";
import { chmodSync, readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createServer, get, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { nodeNetwork } from "../../src/node/network.js";
import { AgentClient, type AgentClientOptions } from "../../src/oauth/agent.js";
import { fileStore } from "../../src/store/file/file.js";
import { memoryStore } from "../../src/store/memory.js";
import { hasOpenssl, makeAuthority } from "../helpers/certificates.js";
import { runCli, temporaryFolder } from "../helpers/cli.js";
import { browserCommand } from "./support.js";

const openssl = hasOpenssl("the tests of addresses for clients with a certificate");

let authority: ReturnType<typeof makeAuthority>;
let mine: { cert: string; key: string };
/** MCP server and issuer, which ask nobody for a certificate; and the addresses of the issuer that let in nobody without. */
const servers: Server[] = [];
let plain: string;
let mutual: string;
/** What was asked: where, method and path, and by whom, according to the certificate. */
let log: string[] = [];
/** The forms that came to the token endpoints, in order. */
let forms: URLSearchParams[] = [];
/** What the metadata names for clients with a certificate. */
let aliases: Record<string, string> | undefined;
let methods: string[];
const browser = browserCommand(visit);

const ALIASED = ["token", "registration", "introspection", "revocation"];

function metadata() {
  const path = (name: string) => [`${name}_endpoint`, `${plain}/pool/${name}`];
  return {
    issuer: `${plain}/pool`,
    ...Object.fromEntries(["authorization", ...ALIASED].map(path)),
    response_types_supported: ["code"],
    grant_types_supported: ["authorization_code", "refresh_token", "client_credentials"],
    code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: methods,
    tls_client_certificate_bound_access_tokens: true,
    ...(aliases && { mtls_endpoint_aliases: aliases }),
  };
}

/** Answers as an issuer that says yes to everything; its tokens carry the name in the certificate. */
function answer(path: string, body: string, caller: string): { status?: number; location?: string; json?: unknown } {
  const [route = "", query = ""] = path.split("?");
  if (route === "/.well-known/oauth-protected-resource/mcp")
    return { json: { resource: `${plain}/mcp`, authorization_servers: [`${plain}/pool`] } };
  if (route === "/pool/.well-known/oauth-authorization-server") return { json: metadata() };
  if (route === "/pool/authorization") {
    const asked = new URLSearchParams(query);
    const back = new URLSearchParams({ code: "code-1", state: asked.get("state") ?? "" });
    return { status: 302, location: `${asked.get("redirect_uri")}?${back}` };
  }
  if (route.endsWith("/registration"))
    return { status: 201, json: { ...(JSON.parse(body) as object), client_id: "made-here" } };
  if (route.endsWith("/introspection")) return { json: { active: true, scope: "tools" } };
  if (route.endsWith("/revocation")) return { json: {} };
  if (route.endsWith("/token")) {
    const nth = forms.push(new URLSearchParams(body));
    const tokens = { access_token: `token-${nth}-of-${caller}`, refresh_token: `refresh-${nth}` };
    return { json: { ...tokens, token_type: "Bearer", expires_in: 3600 } };
  }
  return { status: 401 };
}

async function listen(name: "plain" | "mutual", host: string, options: object): Promise<string> {
  const server = createServer(options, async (request: IncomingMessage, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const { method, url = "" } = request;
    const caller = String((request.socket as TLSSocket).getPeerCertificate().subject?.CN ?? "nobody");
    log.push(`${name} ${method} ${url.split("?")[0]} by ${caller}`);
    const { status = 200, location, json } = answer(url, Buffer.concat(parts).toString(), caller);
    const challenge = `Bearer resource_metadata="${plain}/.well-known/oauth-protected-resource/mcp"`;
    if (status === 401) response.setHeader("www-authenticate", challenge);
    if (location !== undefined) response.setHeader("location", location);
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(json ?? {}));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return `https://${host}:${(server.address() as AddressInfo).port}`;
}

/** Opens an address of the issuer in a browser that trusts the authority, and follows the redirect to this machine. */
async function visit(address: string): Promise<void> {
  const [response] = (await once(get(address, { ca: readFileSync(authority.ca) }), "response")) as [IncomingMessage];
  response.resume();
  await (await fetch(response.headers.location ?? "")).text();
}

beforeAll(async () => {
  if (!openssl) return;
  authority = makeAuthority();
  mine = authority.sign({ name: "mine", subject: "/CN=agent-7" });
  chmodSync(mine.key, 0o600);
  const { cert, key } = authority.sign({ name: "server", subject: "/CN=server", names: "IP:127.0.0.1,DNS:localhost" });
  const own = { cert: readFileSync(cert), key: readFileSync(key), ca: readFileSync(authority.ca) };
  plain = await listen("plain", "127.0.0.1", own);
  mutual = await listen("mutual", "localhost", { ...own, requestCert: true, rejectUnauthorized: true });
});
beforeEach(() => {
  log = [];
  forms = [];
  methods = ["none", "tls_client_auth", "self_signed_tls_client_auth"];
  aliases = Object.fromEntries(ALIASED.map((name) => [`${name}_endpoint`, `${mutual}/of/${name}`]));
});
afterAll(async () => {
  for (const server of servers) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** Where endpoints were asked that metadata names, in order. */
const asked = () => log.filter((line) => /(pool|of)\/(token|reg|intro|revo)/.test(line));

describe.skipIf(!openssl)("agentauth, where the issuer has other addresses for clients with a certificate", () => {
  function newcomer() {
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    return {
      run: (args: string[]) => runCli([...args, "--ca-file", authority.ca, "--retries", "0"], { env }),
      /** The names of hosts and paths that the login will go on with. */
      stored: async () => (await fileStore(env.AGENTAUTH_HOME).list())[0]?.endpoints,
    };
  }
  const shown = () => ["--client-cert", mine.cert, "--client-key", mine.key];
  // The addresses for clients with a certificate are on another port, and the issuer promises no iss.
  const signIn = () => ["--login", "--browser", browser, "--allow-cross-origin-endpoints"];
  const mcp = () => `${plain}/mcp`;

  it("registers, gets tokens and renews them there, with the certificate", async () => {
    const user = newcomer();
    const first = await user.run(["token", mcp(), ...shown(), ...signIn()]);
    expect(first).toMatchObject({ code: 0, stdout: "token-1-of-agent-7\n" });
    expect(asked()).toEqual(["mutual POST /of/registration by agent-7", "mutual POST /of/token by agent-7"]);
    expect(forms[0]?.get("client_id")).toBe("made-here");
    const renewed = await user.run(["token", mcp(), ...shown(), "--force-refresh"]);
    expect(renewed).toMatchObject({ code: 0, stdout: "token-2-of-agent-7\n" });
    expect(forms[1]?.get("grant_type")).toBe("refresh_token");
    expect(asked().slice(2)).toEqual(["mutual POST /of/token by agent-7"]);
    expect(await user.stored()).toMatchObject({ token: `${mutual}/of/token` });
  });

  it("introspects and revokes there", async () => {
    const user = newcomer();
    await user.run(["token", mcp(), ...shown(), ...signIn()]);
    log = [];
    expect(await user.run(["introspect", mcp(), ...shown(), "-o", "json"])).toMatchObject({ code: 0 });
    expect(asked()).toEqual(["mutual POST /of/introspection by agent-7"]);
    log = [];
    expect(await user.run(["logout", mcp(), ...shown()])).toMatchObject({ code: 0 });
    expect(new Set(asked())).toEqual(new Set(["mutual POST /of/revocation by agent-7"]));
  });

  it("uses the plain addresses without a certificate", async () => {
    const user = newcomer();
    const { code, stdout } = await user.run(["token", mcp(), ...signIn()]);
    expect([code, stdout]).toEqual([0, "token-1-of-nobody\n"]);
    expect(asked()).toEqual(["plain POST /pool/registration by nobody", "plain POST /pool/token by nobody"]);
  });

  it("uses the plain addresses where there are no others", async () => {
    aliases = { token_endpoint: `${mutual}/of/token` };
    const user = newcomer();
    expect((await user.run(["token", mcp(), ...shown(), ...signIn()])).code).toBe(0);
    expect(asked()).toEqual(["plain POST /pool/registration by nobody", "mutual POST /of/token by agent-7"]);
  });

  it("gets a machine its token by the certificate alone", async () => {
    methods = ["tls_client_auth"];
    const user = newcomer();
    const machine = ["token", mcp(), "--grant", "client-credentials", "--client-id", "machine"];
    const { code, stdout } = await user.run([...machine, ...shown()]);
    expect([code, stdout]).toEqual([0, "token-1-of-agent-7\n"]);
    expect(forms[0]?.get("client_id")).toBe("machine");
    expect(asked()).toEqual(["mutual POST /of/token by agent-7"]);
  });

  it("says what is missing where a login that was made with a certificate goes on without", async () => {
    const user = newcomer();
    await user.run(["token", mcp(), ...shown(), ...signIn()]);
    log = [];
    const { code, stdout, stderr } = await user.run(["token", mcp(), "--force-refresh"]);
    expect([code, stdout, log]).toEqual([5, "", []]);
    expect(stderr).toMatch(
      /localhost:\d+: the connection broke .*\n.*; agentauth doctor https:\/\/localhost:\d+ shows whether the server requires a client certificate\n$/,
    );
    expect((await user.run(["token", mcp(), ...shown(), "--force-refresh"])).code).toBe(0);
  });

  it("refuses an address for such clients that is in the clear, and names it", async () => {
    aliases = { token_endpoint: "http://as.example/token" };
    const { code, stderr } = await newcomer().run(["token", mcp(), ...shown(), ...signIn()]);
    expect(code).toBe(3);
    expect(stderr).toContain("mtls_endpoint_aliases.token_endpoint");
    expect(asked()).toEqual([]);
  });
});

describe.skipIf(!openssl)("the agent client with the network of this machine", () => {
  const agent = (options: Partial<AgentClientOptions>, withCertificate = true) => {
    const ca = [readFileSync(authority.ca, "utf8")];
    const clientCertificate = { cert: readFileSync(mine.cert, "utf8"), key: readFileSync(mine.key, "utf8") };
    const network = nodeNetwork({ ca, ...(withCertificate && { clientCertificate }) });
    const grant = { type: "client_credentials" } as const;
    return new AgentClient({ store: memoryStore(), network, client: { clientId: "machine" }, grant, ...options });
  };

  it("takes the addresses for clients with a certificate where it is told that it shows one", async () => {
    const client = agent({ mutualTls: true });
    expect((await client.token(`${plain}/mcp`)).value).toBe("token-1-of-agent-7");
    expect((await client.token(`${plain}/mcp`, { forceRefresh: true })).value).toBe("token-2-of-agent-7");
    expect(asked()).toEqual(Array(2).fill("mutual POST /of/token by agent-7"));
  });

  it("takes the others without that", async () => {
    const client = { clientId: "machine", clientSecret: "made-up", issuer: `${plain}/pool` };
    methods = ["client_secret_basic"];
    expect((await agent({ client }, false).token(`${plain}/mcp`)).value).toBe("token-1-of-nobody");
    expect(asked()).toEqual(["plain POST /pool/token by nobody"]);
  });
});
