import { once } from "node:events";
import { chmodSync, readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createServer, get, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { describe, expect, test } from "vitest";
import { nodeNetwork } from "../../src/http/node/network.js";
import { AgentClient, type AgentClientOptions } from "../../src/oauth/agent.js";
import { fileStore } from "../../src/store/file/file.js";
import { memoryStore } from "../../src/store/memory.js";
import { hasOpenssl, makeAuthority } from "../helpers/certificates.js";
import { runCli, temporaryFolder } from "../helpers/cli.js";
import { browserCommand } from "./support.js";

const openssl = hasOpenssl("the tests of addresses for clients with a certificate");

const ALIASED = ["token", "registration", "introspection", "revocation"];

/** What a test sees of the servers and changes at them; a new one for each test. */
interface State {
  /** The requests: where, method, path, and the name in the client's certificate. */
  log: string[];
  /** The forms that the token endpoints received, in order. */
  forms: URLSearchParams[];
  /** The endpoints that the metadata name for clients with a certificate. */
  aliases: Record<string, string>;
  methods: string[];
}

/**
 * An MCP server and its issuer, which request no certificate, and the endpoints of the issuer that require one. The
 * issuer approves everything; its tokens have the name in the certificate.
 */
async function startServers() {
  const authority = makeAuthority();
  const certificate = authority.sign({ name: "agent", subject: "/CN=agent-7" });
  chmodSync(certificate.key, 0o600);
  const ca = readFileSync(authority.ca);
  const { cert, key } = authority.sign({ name: "server", subject: "/CN=server", names: "IP:127.0.0.1,DNS:localhost" });
  const tls = { cert: readFileSync(cert), key: readFileSync(key), ca };
  const open: Server[] = [];
  let state: State;

  function metadata() {
    const path = (name: string) => [`${name}_endpoint`, `${plain}/pool/${name}`];
    return {
      issuer: `${plain}/pool`,
      ...Object.fromEntries(["authorization", ...ALIASED].map(path)),
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token", "client_credentials"],
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: state.methods,
      tls_client_certificate_bound_access_tokens: true,
      mtls_endpoint_aliases: state.aliases,
    };
  }

  function answer(path: string, body: string, caller: string): { status?: number; location?: string; json?: unknown } {
    const [route = "", query = ""] = path.split("?");
    if (route === "/.well-known/oauth-protected-resource/mcp")
      return { json: { resource: `${plain}/mcp`, authorization_servers: [`${plain}/pool`] } };
    if (route === "/pool/.well-known/oauth-authorization-server") return { json: metadata() };
    if (route === "/pool/authorization") {
      const requested = new URLSearchParams(query);
      const back = new URLSearchParams({ code: "code-1", state: requested.get("state") ?? "" });
      return { status: 302, location: `${requested.get("redirect_uri")}?${back}` };
    }
    if (route.endsWith("/registration"))
      return { status: 201, json: { ...(JSON.parse(body) as object), client_id: "registered" } };
    if (route.endsWith("/introspection")) return { json: { active: true, scope: "tools" } };
    if (route.endsWith("/revocation")) return { json: {} };
    if (route.endsWith("/token")) {
      const nth = state.forms.push(new URLSearchParams(body));
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
      const caller = String((request.socket as TLSSocket).getPeerCertificate().subject?.CN ?? "none");
      state.log.push(`${name} ${method} ${url.split("?")[0]} by ${caller}`);
      const { status = 200, location, json } = answer(url, Buffer.concat(parts).toString(), caller);
      const challenge = `Bearer resource_metadata="${plain}/.well-known/oauth-protected-resource/mcp"`;
      if (status === 401) response.setHeader("www-authenticate", challenge);
      if (location !== undefined) response.setHeader("location", location);
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(json ?? {}));
    });
    open.push(server);
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    return `https://${host}:${(server.address() as AddressInfo).port}`;
  }

  const plain = await listen("plain", "127.0.0.1", tls);
  const mutual = await listen("mutual", "localhost", { ...tls, requestCert: true, rejectUnauthorized: true });
  return {
    authority,
    certificate,
    plain,
    mutual,
    mcpUrl: `${plain}/mcp`,
    /** Opens an authorization address as a browser that trusts the authority, and follows the redirect. */
    async visit(address: string): Promise<void> {
      const [response] = (await once(get(address, { ca }), "response")) as [IncomingMessage];
      response.resume();
      await (await fetch(response.headers.location ?? "")).text();
    },
    newState(): State {
      const aliases = Object.fromEntries(ALIASED.map((name) => [`${name}_endpoint`, `${mutual}/of/${name}`]));
      state = { log: [], forms: [], methods: ["none", "tls_client_auth", "self_signed_tls_client_auth"], aliases };
      return state;
    },
    async close(): Promise<void> {
      for (const server of open) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}

const it = test
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  .extend("servers", { scope: "file" }, async ({}, { onCleanup }) => {
    const servers = await startServers();
    onCleanup(() => servers.close());
    return servers;
  })
  .extend("state", ({ servers }) => servers.newState())
  .extend(
    "requested",
    ({ state }) =>
      () =>
        state.log.filter((line) => /(pool|of)\/(token|reg|intro|revo)/.test(line)),
  )
  .extend("withCertificate", ({ servers: { certificate } }) => [
    ...["--client-cert", certificate.cert, "--client-key", certificate.key],
  ])
  // The endpoints for clients with a certificate are on another port, and the issuer promises no iss.
  .extend("logIn", ({ servers }) => [...["--browser", browserCommand(servers.visit), "--allow-cross-origin-endpoints"]])
  .extend("home", () => temporaryFolder())
  .extend(
    "run",
    ({ servers, home, state: _state }) =>
      (args: string[]) =>
        runCli([...args, "--ca-file", servers.authority.ca, "--retries", "0"], { env: { AGENTAUTH_HOME: home } }),
  );

describe.skipIf(!openssl)("an issuer with other endpoints for clients with a certificate", () => {
  it("is called there to register and for tokens, with the certificate", async ({
    servers,
    run,
    state,
    requested,
    withCertificate,
    logIn,
    home,
  }) => {
    expect(await run(["login", servers.mcpUrl, ...withCertificate, ...logIn])).toMatchObject({ code: 0 });
    const first = await run(["token", servers.mcpUrl, ...withCertificate]);
    expect(first).toMatchObject({ code: 0, stdout: "token-1-of-agent-7\n" });
    expect(requested()).toEqual(["mutual POST /of/registration by agent-7", "mutual POST /of/token by agent-7"]);
    expect(state.forms[0]?.get("client_id")).toBe("registered");
    const refreshed = await run(["token", servers.mcpUrl, ...withCertificate, "--force-refresh"]);
    expect(refreshed).toMatchObject({ code: 0, stdout: "token-2-of-agent-7\n" });
    expect(state.forms[1]?.get("grant_type")).toBe("refresh_token");
    expect(requested().slice(2)).toEqual(["mutual POST /of/token by agent-7"]);
    expect((await fileStore(home).list())[0]?.endpoints).toMatchObject({ token: `${servers.mutual}/of/token` });
  });

  it("is called there to introspect and to revoke", async ({
    servers,
    run,
    state,
    requested,
    withCertificate,
    logIn,
  }) => {
    await run(["login", servers.mcpUrl, ...withCertificate, ...logIn]);
    state.log = [];
    expect(await run(["introspect", servers.mcpUrl, ...withCertificate, "-o", "json"])).toMatchObject({ code: 0 });
    expect(requested()).toEqual(["mutual POST /of/introspection by agent-7"]);
    state.log = [];
    expect(await run(["logout", servers.mcpUrl, ...withCertificate])).toMatchObject({ code: 0 });
    expect(new Set(requested())).toEqual(new Set(["mutual POST /of/revocation by agent-7"]));
  });

  it("is called at the plain endpoints without a certificate", async ({ servers, run, requested, logIn }) => {
    await run(["login", servers.mcpUrl, ...logIn]);
    const { code, stdout } = await run(["token", servers.mcpUrl]);
    expect([code, stdout]).toEqual([0, "token-1-of-none\n"]);
    expect(requested()).toEqual(["plain POST /pool/registration by none", "plain POST /pool/token by none"]);
  });

  it("is called at the plain endpoints that have no alias", async ({
    servers,
    run,
    state,
    requested,
    withCertificate,
    logIn,
  }) => {
    state.aliases = { token_endpoint: `${servers.mutual}/of/token` };
    expect((await run(["login", servers.mcpUrl, ...withCertificate, ...logIn])).code).toBe(0);
    expect(requested()).toEqual(["plain POST /pool/registration by none", "mutual POST /of/token by agent-7"]);
  });

  it("issues a token to a machine by the certificate alone", async ({
    servers,
    run,
    state,
    requested,
    withCertificate,
  }) => {
    state.methods = ["tls_client_auth"];
    const machine = ["token", servers.mcpUrl, "--grant", "client-credentials", "--client-id", "machine"];
    const { code, stdout } = await run([...machine, ...withCertificate]);
    expect([code, stdout]).toEqual([0, "token-1-of-agent-7\n"]);
    expect(state.forms[0]?.get("client_id")).toBe("machine");
    expect(requested()).toEqual(["mutual POST /of/token by agent-7"]);
  });

  it("is not reached without the certificate of the login, and the hint names the flag", async ({
    servers,
    run,
    state,
    withCertificate,
    logIn,
  }) => {
    await run(["login", servers.mcpUrl, ...withCertificate, ...logIn]);
    state.log = [];
    const { code, stdout, stderr } = await run(["token", servers.mcpUrl, "--force-refresh"]);
    expect([code, stdout, state.log]).toEqual([5, "", []]);
    expect(stderr).toMatch(
      /localhost:\d+: TLS failed \(ERR_SSL_\w*ALERT.*\nhint: --client-cert <file> gives a client certificate/,
    );
    expect((await run(["token", servers.mcpUrl, ...withCertificate, "--force-refresh"])).code).toBe(0);
  });

  it("is refused if an alias is not https, and the error names the field", async ({
    servers,
    run,
    state,
    requested,
    withCertificate,
    logIn,
  }) => {
    state.aliases = { token_endpoint: "http://as.example/token" };
    const { code, stderr } = await run(["login", servers.mcpUrl, ...withCertificate, ...logIn]);
    expect(code).toBe(3);
    expect(stderr).toContain("mtls_endpoint_aliases.token_endpoint");
    expect(requested()).toEqual([]);
  });
});

describe.skipIf(!openssl)("the agent client with the network of this machine", () => {
  const networkIt = it.extend(
    "client",
    ({ servers: { authority, certificate } }) =>
      (options: Partial<AgentClientOptions>, withCertificate = true) => {
        const ca = [readFileSync(authority.ca, "utf8")];
        const clientCertificate = {
          cert: readFileSync(certificate.cert, "utf8"),
          key: readFileSync(certificate.key, "utf8"),
        };
        const network = nodeNetwork({ ca, ...(withCertificate && { clientCertificate }) });
        const grant = { type: "client_credentials" } as const;
        return new AgentClient({ store: memoryStore(), network, client: { clientId: "machine" }, grant, ...options });
      },
  );

  networkIt(
    "uses the endpoints for clients with a certificate with the option mutualTls",
    async ({ servers, requested, client: create }) => {
      const client = create({ mutualTls: true });
      expect((await client.token(servers.mcpUrl)).value).toBe("token-1-of-agent-7");
      expect((await client.token(servers.mcpUrl, { forceRefresh: true })).value).toBe("token-2-of-agent-7");
      expect(requested()).toEqual(Array(2).fill("mutual POST /of/token by agent-7"));
    },
  );

  networkIt("uses the others without it", async ({ servers, state, requested, client: create }) => {
    const client = { clientId: "machine", clientSecret: "sample", issuer: `${servers.plain}/pool` };
    state.methods = ["client_secret_basic"];
    expect((await create({ client }, false).token(servers.mcpUrl)).value).toBe("token-1-of-none");
    expect(requested()).toEqual(["plain POST /pool/token by none"]);
  });
});
