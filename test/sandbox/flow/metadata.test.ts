import { decodeJwt } from "jose";
import nock from "nock";
import type { JsonValue } from "oauth4webapi";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ManagementClient } from "../../../src/api/client.js";
import { DOCUMENT_PORTS, DOCUMENT_REDIRECTS } from "../../../src/oauth/client/metadata-document.js";
import { type Sandbox, type SandboxMachine, type SandboxOptions, startSandbox } from "../../../src/sandbox/index.js";
import { FETCH_BROWSER } from "../../flow/support.js";
import { runCli, temporaryFolder } from "../../helpers/cli.js";
import { startLike } from "../../vendors/shape-server.js";
import {
  begin,
  callTool,
  discover,
  landing,
  logIn,
  REDIRECT_URI,
  redeem,
  rpc,
  TOKEN_EXCHANGE,
} from "../oauth/support.js";
import { it as base } from "../support.js";

// To import it is to replace the fetch of this process, which the files behind it would take for that of Node.
nock.restore();

const METADATA = "/.well-known/oauth-authorization-server";

async function metadataOf(sandbox: Sandbox) {
  const issuer = sandbox.authUrl(sandbox.ids.pool);
  const response = await fetch(`${issuer}${METADATA}`);
  expect(response.headers.get("content-type")).toMatch(/^application\/json/);
  return { issuer, metadata: (await response.json()) as Record<string, unknown> };
}

const it = base
  .extend({ options: { devices: 5 } })
  .extend("issuer", ({ sandbox }) => sandbox.authUrl(sandbox.ids.pool));

const documented = (issuer: string) => ({
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  registration_endpoint: `${issuer}/register`,
  introspection_endpoint: `${issuer}/introspect`,
  end_session_endpoint: `${issuer}/end_session`,
  jwks_uri: `${issuer}/jwks`,
  code_challenge_methods_supported: ["S256"],
  grant_types_supported: ["authorization_code", "refresh_token", TOKEN_EXCHANGE],
  response_types_supported: ["code"],
  scopes_supported: [],
  subject_types_supported: ["public"],
});

describe("the metadata of an authorization server", () => {
  it("and its keys are the same for each client, and the faults of a request are its own", async ({
    sandbox,
    issuer,
  }) => {
    const read = async (path: string, headers = {}) => {
      const response = await fetch(issuer + path, { headers });
      const names = ["content-type", "cache-control", "vary", "access-control-allow-origin"];
      return [response.status, names.map((name) => response.headers.get(name)), await response.text()] as const;
    };
    for (const path of [METADATA, "/jwks"]) {
      const first = await read(path, { origin: sandbox.origin });
      expect(first[0]).toBe(200);
      expect(await read(path)).toEqual(first);
      sandbox.faults.add({ kind: "status", status: 503, times: 1 });
      expect((await read(path))[0]).toBe(503);
      expect(await read(path)).toEqual(first);
    }
  });

  it("is what the service documents, and nothing else", async ({ sandbox }) => {
    const { issuer, metadata } = await metadataOf(sandbox);
    expect(issuer).toBe(`${sandbox.origin}/${sandbox.ids.pool}`);
    expect(metadata).toEqual(documented(issuer));
  });

  it("says what options add", async ({ start }) => {
    const sandbox = await start({
      iss: true,
      deviceFlow: true,
      revocation: true,
      requireOfflineAccess: true,
    });
    const { issuer, metadata } = await metadataOf(sandbox);
    expect(metadata).toEqual({
      ...documented(issuer),
      grant_types_supported: [
        ...documented(issuer).grant_types_supported,
        "urn:ietf:params:oauth:grant-type:device_code",
      ],
      scopes_supported: ["offline_access"],
      authorization_response_iss_parameter_supported: true,
      device_authorization_endpoint: `${issuer}/device_authorization`,
      revocation_endpoint: `${issuer}/revoke`,
    });
  });

  it("is a document of its own for every pool, reached by any name of the sandbox", async ({ sandbox }) => {
    const [, other] = sandbox.data.pools(sandbox.ids.domain);
    const issuer = sandbox.authUrl(other?.id ?? "");
    const byName = issuer.replace("127.0.0.1", "localhost");
    const response = await fetch(`${byName}${METADATA}`);
    expect(await response.json()).toEqual(documented(issuer));
    expect(() => sandbox.authUrl("pool_0000000000")).toThrow(TypeError);
  });

  it.for<[NonNullable<SandboxOptions["metadata"]> | undefined, number, number]>([
    [undefined, 200, 200],
    ["both", 200, 200],
    ["appended", 200, 404],
    ["rfc8414", 404, 200],
  ])("is appended to the issuer and inserted before its path: %s", async ([option, appended, inserted], { start }) => {
    const sandbox = await start(option === undefined ? {} : { metadata: option });
    const issuer = sandbox.authUrl(sandbox.ids.pool);
    const answers = await Promise.all([
      fetch(`${issuer}${METADATA}`),
      fetch(`${sandbox.origin}${METADATA}/${sandbox.ids.pool}`),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([appended, inserted]);
    for (const answer of answers) if (answer.ok) expect(await answer.json()).toEqual(documented(issuer));
  });

  it("is at these two addresses only", async ({ sandbox, issuer }) => {
    const { pool } = sandbox.ids;
    for (const url of [
      `${issuer}/.well-known/openid-configuration`,
      `${sandbox.origin}${METADATA}`,
      `${sandbox.origin}${METADATA}/`,
      `${sandbox.origin}${METADATA}/pool_0000000000`,
      `${sandbox.origin}${METADATA}/${pool}/`,
      `${sandbox.origin}${METADATA}/${pool}/token`,
      `${sandbox.origin}${METADATA}/${pool}${METADATA}`,
      `${sandbox.origin}/.well-known/openid-configuration/${pool}`,
      `${sandbox.origin}/pool_0000000000${METADATA}`,
      `${issuer}/device`,
      `${issuer}/device_authorization`,
      `${issuer}/revoke`,
      `${issuer}/me`,
      issuer,
    ]) {
      expect([url, (await fetch(url)).status]).toEqual([url, 404]);
    }
    const wrong = await fetch(`${issuer}/token`);
    expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "POST"]);
  });

  it("leads to public keys only", async ({ sandbox }) => {
    const { metadata } = await metadataOf(sandbox);
    const { keys } = (await (await fetch(String(metadata["jwks_uri"]))).json()) as { keys: Record<string, string>[] };
    expect(keys).toHaveLength(1);
    expect(keys[0]).toMatchObject({ kty: "EC", crv: "P-256", alg: "ES256", use: "sig" });
    expect(keys[0]).not.toHaveProperty("d");
  });
});

describe("the metadata of an MCP server", () => {
  it("is what the service documents, with the well-known segment before the path", async ({ sandbox, issuer }) => {
    const response = await fetch(`${sandbox.origin}/.well-known/oauth-protected-resource/mcp`);
    expect(await response.json()).toEqual({ resource: sandbox.mcpUrl, authorization_servers: [issuer] });
    const [, other] = sandbox.data.pools(sandbox.ids.domain);
    const path = `/mcp/${other?.id}`;
    const ofPool = await fetch(`${sandbox.origin}/.well-known/oauth-protected-resource${path}`);
    expect(await ofPool.json()).toEqual({
      resource: sandbox.origin + path,
      authorization_servers: [sandbox.authUrl(other?.id ?? "")],
    });
    for (const wrong of ["", "/", "/mcp/", "/mcp/pool_0000000000", "/mcpx"]) {
      const missing = await fetch(`${sandbox.origin}/.well-known/oauth-protected-resource${wrong}`);
      expect([wrong, missing.status]).toEqual([wrong, 404]);
    }
  });

  it("names the scopes of the option", async ({ start }) => {
    const sandbox = await start({ scopesSupported: ["mcp", "reports:read"] });
    const response = await fetch(`${sandbox.origin}/.well-known/oauth-protected-resource/mcp`);
    expect(await response.json()).toMatchObject({ scopes_supported: ["mcp", "reports:read"] });
  });
});

describe("the challenge of an MCP server", () => {
  it("names the metadata, whatever is asked without a token", async ({ sandbox }) => {
    const url = `${sandbox.origin}/.well-known/oauth-protected-resource/mcp`;
    for (const response of [
      await rpc(sandbox.mcpUrl, undefined, "tools/list"),
      await fetch(sandbox.mcpUrl),
      await fetch(sandbox.mcpUrl, { method: "POST", body: "{" }),
      await fetch(sandbox.mcpUrl, { headers: { authorization: "Basic YTpi" } }),
    ]) {
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toBe(`Bearer resource_metadata="${url}"`);
    }
  });

  it("says that a token is none of its server's", async ({ sandbox }) => {
    const response = await callTool(sandbox.mcpUrl, "eyJhbGciOiJub25lIn0.e30.", "whoami");
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toMatch(/^Bearer error="invalid_token", .*resource_metadata="/);
  });
});

it.each<[string, SandboxOptions]>([
  ["autoApprove", { autoApprove: "mallory" }],
  ["accessTokenTtlSeconds", { accessTokenTtlSeconds: 0 }],
  ["refreshReuseGraceSeconds", { refreshReuseGraceSeconds: -1 }],
  ["metadata", { metadata: "nowhere" as "both" }],
  ["scopesSupported", { scopesSupported: ["two words"] }],
])("OAuth options refuses a wrong %s", async (name, options) => {
  await expect(startSandbox(options)).rejects.toMatchObject({
    code: "usage",
    message: expect.stringContaining(name),
  });
});

describe("registration", () => {
  it("answers what the service documents", async ({ issuer }) => {
    const register = (body: object) =>
      fetch(`${issuer}/register`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ client_name: "Agent", redirect_uris: [REDIRECT_URI], ...body }),
      });
    const response = await register({ grant_types: ["authorization_code", "refresh_token"], response_types: ["code"] });
    expect(response.status).toBe(201);
    expect(await response.json()).toEqual({
      client_id: expect.stringMatching(/^[\w-]{20,}$/),
      client_secret: expect.stringMatching(/^[\w-]{40,}$/),
      client_id_issued_at: expect.any(Number),
      client_secret_expires_at: 0,
      redirect_uris: [REDIRECT_URI],
      grant_types: ["authorization_code", "refresh_token"],
      client_name: "Agent",
      token_endpoint_auth_method: "client_secret_post",
    });
    const open = (await (await register({ token_endpoint_auth_method: "none" })).json()) as object;
    expect(open).not.toHaveProperty("client_secret");
    const wrong = await register({ redirect_uris: ["http://127.0.0.1/#fragment"] });
    expect([wrong.status, await wrong.json()]).toMatchObject([400, { error: "invalid_redirect_uri" }]);
  });

  const NATIVE = { response_types: ["code"], grant_types: ["authorization_code", "refresh_token"] };
  const FOREIGN: [string, Record<string, JsonValue>][] = [
    // As Python's mcp 2.3.0 and fastmcp 4.0.10 send it: "" where the MCP server names no scopes.
    ["Python", { ...NATIVE, client_name: "FastMCP Client", application_type: "native" }],
    [
      "Inspector 2.12.0",
      {
        ...NATIVE,
        token_endpoint_auth_method: "none",
        client_name: "MCP Inspector",
        client_uri: "https://github.com/modelcontextprotocol/inspector",
        application_type: "native",
      },
    ],
  ];
  it.for(
    FOREIGN.flatMap(([name, metadata]) => ["", "mcp", "mcp reports:read"].map((scope) => ({ name, scope, metadata }))),
  )("of $name has the scopes of the MCP server: $scope", async ({ scope, metadata }, { start }) => {
    const sandbox = await start({ autoApprove: true });
    const { tokens } = await logIn(sandbox, { ...(scope !== "" && { scope }) }, { ...metadata, scope });
    expect(tokens.scope).toBe(scope || "mcp");
  });

  it("does not limit a login to the scopes that it names", async ({ start }) => {
    const sandbox = await start({ autoApprove: true });
    const { tokens } = await logIn(sandbox, { scope: "mcp reports:read" }, { scope: "mcp" });
    expect(tokens.scope).toBe("mcp reports:read");
  });
});

describe("a request with two client authentication methods", () => {
  const BASIC = { authorization: `Basic ${btoa("client:secret")}` };
  it.for<[string, Record<string, string>, Record<string, string>]>([
    ["HTTP Basic and the secret in the form", BASIC, { client_id: "client", client_secret: "secret" }],
    ["HTTP Basic and client_id in the form", BASIC, { client_id: "client" }],
    ["HTTP Basic and an assertion", BASIC, { client_assertion: "a.b.c" }],
    ["a secret and an assertion", {}, { client_id: "client", client_secret: "secret", client_assertion: "a.b.c" }],
  ])("is refused at every endpoint: %s", async ([, headers, form], { start }) => {
    const sandbox = await start({ revocation: true, deviceFlow: true });
    const { issuer, metadata } = await metadataOf(sandbox);
    const body = new URLSearchParams({ grant_type: "client_credentials", token: "t", ...form });
    for (const name of ["token", "introspection", "revocation", "device_authorization"]) {
      const response = await fetch(String(metadata[`${name}_endpoint`]), { method: "POST", headers, body });
      expect([response.status, await response.json()], `${issuer} ${name}`).toMatchObject([
        400,
        { error: "invalid_request", error_description: expect.stringContaining("one authentication method") },
      ]);
    }
  });
});

describe("client metadata documents", () => {
  beforeEach(() => {
    if (!nock.isActive()) nock.activate();
  });
  afterEach(() => {
    const unused = nock.pendingMocks();
    nock.cleanAll();
    nock.restore();
    expect(unused).toEqual([]);
  });

  const CLIENT_ID = "https://client.example/agent.json";

  it("are accepted in place of a registration, where the option is set", async ({ start }) => {
    const sandbox = await start({ autoApprove: true, clientMetadataDocuments: true });
    const { metadata } = await metadataOf(sandbox);
    expect(metadata["client_id_metadata_document_supported"]).toBe(true);
    nock("https://client.example")
      .get("/agent.json")
      .reply(200, {
        client_id: CLIENT_ID,
        client_name: "Agent",
        redirect_uris: [REDIRECT_URI],
        scope: "mcp",
        token_endpoint_auth_method: "none",
      });
    const as = await discover(sandbox);
    const client = { client_id: CLIENT_ID };
    const begun = await begin(as, client);
    const { access_token } = await redeem(as, client, begun, await landing(begun.url));
    const who = await (await callTool(sandbox.mcpUrl, access_token, "whoami")).text();
    expect(who).toContain(CLIENT_ID);
  });

  it("are fetched by no sandbox without it", async ({ sandbox }) => {
    const { metadata } = await metadataOf(sandbox);
    expect(metadata).not.toHaveProperty("client_id_metadata_document_supported");
    const { url } = await begin(await discover(sandbox), { client_id: CLIENT_ID });
    const response = await fetch(url, { redirect: "manual" });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining("invalid_client")]);
  });
});

const DOCUMENT = "https://client.example/agentauth/client.json";

/** A user whose profile names a metadata document, at a sandbox. */
async function visitor(options: SandboxOptions) {
  return userOf(await startSandbox({ accounts: 1, domains: 1, pools: 1, devices: 0, ...options }));
}

async function userOf<Server extends Pick<Sandbox, "mcpUrl" | "close">>(sandbox: Server) {
  onTestFinished(() => sandbox.close());
  const env = { AGENTAUTH_HOME: temporaryFolder() };
  const run = (...args: string[]) => runCli(args, { env });
  expect(await run("config", "set", "client_metadata_url", DOCUMENT)).toMatchObject({ code: 0 });
  return { run, sandbox, url: sandbox.mcpUrl };
}

test("linear lets a metadata document log in, and its server takes the tokens of registered clients alone", async () => {
  const { run, url } = await userOf(await startLike("linear"));
  const login = () => run("login", url, "--browser", FETCH_BROWSER);
  expect(await login()).toMatchObject({ code: 0 });
  expect(await run("mcp", "tools", url)).toMatchObject({ code: 4 });
  expect(await login()).toMatchObject({ code: 0 });
  expect(await run("mcp", "tools", url, "-o", "id")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("whoami"),
  });
});

test("linear serves who turns the setting off for it", async () => {
  const { run, url } = await userOf(await startLike("linear"));
  const login = await run("login", url, "--browser", FETCH_BROWSER, "--client-metadata-url", "none");
  expect(login).toMatchObject({ code: 0 });
  expect(await run("mcp", "tools", url, "-o", "id")).toMatchObject({ code: 0 });
});

describe("an issuer that reads the document", () => {
  beforeEach(() => {
    if (!nock.isActive()) nock.activate();
  });
  afterEach(() => {
    nock.cleanAll();
    nock.restore();
  });

  const BASE = { client_id: DOCUMENT, client_name: "agentauth", token_endpoint_auth_method: "none" };
  const TYPES = { grant_types: ["authorization_code", "refresh_token"] };

  async function loginWith(document: object | undefined) {
    nock("https://client.example")
      .get("/agentauth/client.json")
      .reply(document === undefined ? 404 : 200, document);
    const { run, url } = await visitor({ clientMetadataDocuments: true, autoApprove: true });
    const { code, stderr } = await run("login", url, "--browser", FETCH_BROWSER);
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const { stdout } = await run("mcp", "call", url, "whoami");
    return { stderr, isDocument: stdout.includes(DOCUMENT) };
  }

  test("logs in with any port of this machine (RFC 8252 section 7.3)", async () => {
    const redirect_uris = ["http://127.0.0.1/callback"];
    const { isDocument } = await loginWith({ ...BASE, ...TYPES, redirect_uris, application_type: "native" });
    expect(isDocument).toBe(true);
  });

  test("takes assertions of the company's identity provider for the client of the document", async () => {
    const redirect_uris = ["http://127.0.0.1/callback"];
    const grant_types = [...TYPES.grant_types, "urn:ietf:params:oauth:grant-type:jwt-bearer"];
    const document = { ...BASE, grant_types, redirect_uris, application_type: "native" };
    nock("https://client.example").get("/agentauth/client.json").times(2).reply(200, document);
    const options = { clientMetadataDocuments: true, machineGrants: true, autoApprove: true, pools: 2 };
    const { run, sandbox, url } = await visitor(options);
    const { idp } = sandbox.machine as SandboxMachine;
    idp.nameClient(DOCUMENT);
    const named = ["--idp", idp.issuer, "--idp-client-id", idp.nativeClient.clientId];
    expect(await run("login", ...named, "--browser", FETCH_BROWSER)).toMatchObject({ code: 0 });
    const pools = await new ManagementClient({ baseUrl: sandbox.baseUrl, token: sandbox.apiToken }).pools
      .list({ domain_id: sandbox.ids.domain })
      .toArray();
    // Neither a client nor an issuer is named: the provider says which issuer gets an assertion.
    for (const { id } of pools) {
      const { code, stdout, stderr } = await run("token", `${url}/${id}`, "--no-login");
      expect([code, stderr]).toEqual([0, ""]);
      expect(decodeJwt(stdout)).toMatchObject({ iss: sandbox.authUrl(id), client_id: DOCUMENT, sub: "alice" });
    }
  });

  test("logs in with a fixed port, where it compares the whole address", async () => {
    // To oidc-provider, the client is a web app without application_type.
    const { isDocument } = await loginWith({ ...BASE, ...TYPES, redirect_uris: DOCUMENT_REDIRECTS });
    expect([isDocument, DOCUMENT_PORTS.length]).toEqual([true, 3]);
  });

  test.each([
    ["names foreign redirect addresses alone", { ...BASE, redirect_uris: ["https://evil.example/callback"] }],
    ["has no fixed port, and compares the whole address", { ...BASE, redirect_uris: ["http://127.0.0.1/callback"] }],
    ["is of another client", { ...BASE, client_id: `${DOCUMENT}?`, redirect_uris: DOCUMENT_REDIRECTS }],
    ["has a secret", { ...BASE, client_secret: "x", redirect_uris: DOCUMENT_REDIRECTS }],
    ["is not there", undefined],
  ])("registers a client if the document %s", async (_what, document) => {
    const { isDocument, stderr } = await loginWith(document);
    expect(isDocument).toBe(false);
    expect(stderr).toContain(`refuses the client metadata document "${DOCUMENT}"; a registered client is used instead`);
  });
});
