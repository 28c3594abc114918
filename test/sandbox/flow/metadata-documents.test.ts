import { decodeJwt } from "jose";
import nock from "nock";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { ManagementClient } from "../../../src/api/client.js";
import { DOCUMENT_PORTS, DOCUMENT_REDIRECTS } from "../../../src/oauth/client/metadata-document.js";
import { type SandboxMachine, type SandboxOptions, startSandbox } from "../../../src/sandbox/index.js";
import { FETCH_BROWSER } from "../../flow/support.js";
import { runCli, temporaryFolder } from "../../helpers/cli.js";
import { startLike } from "../../vendors/shape-server.js";

const DOCUMENT = "https://client.example/agentauth/client.json";

/** A user whose profile names a metadata document, at a sandbox. */
async function visitor(options: SandboxOptions, like?: string) {
  const given = { accounts: 1, domains: 1, pools: 1, devices: 0, ...options };
  const sandbox = await (like === undefined ? startSandbox(given) : startLike(like, given));
  onTestFinished(() => sandbox.close());
  const env = { AGENTAUTH_HOME: temporaryFolder() };
  const run = (...args: string[]) => runCli(args, { env });
  expect(await run("config", "set", "client_metadata_url", DOCUMENT)).toMatchObject({ code: 0 });
  return { run, sandbox, url: sandbox.mcpUrl };
}

it("linear lets a metadata document log in, and its server takes the tokens of registered clients alone", async () => {
  const { run, url } = await visitor({}, "linear");
  const login = () => run("login", url, "--browser", FETCH_BROWSER);
  expect(await login()).toMatchObject({ code: 0 });
  expect(await run("mcp", "tools", url)).toMatchObject({ code: 4 });
  expect(await login()).toMatchObject({ code: 0 });
  expect(await run("mcp", "tools", url, "-o", "id")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("whoami"),
  });
});

it("linear serves who turns the setting off for it", async () => {
  const { run, url } = await visitor({}, "linear");
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

  it("logs in with any port of this machine (RFC 8252 section 7.3)", async () => {
    const redirect_uris = ["http://127.0.0.1/callback"];
    const { isDocument } = await loginWith({ ...BASE, ...TYPES, redirect_uris, application_type: "native" });
    expect(isDocument).toBe(true);
  });

  it("takes assertions of the company's identity provider for the client of the document", async () => {
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

  it("logs in with a fixed port, where it compares the whole address", async () => {
    // To oidc-provider, the client is a web app without application_type.
    const { isDocument } = await loginWith({ ...BASE, ...TYPES, redirect_uris: DOCUMENT_REDIRECTS });
    expect([isDocument, DOCUMENT_PORTS.length]).toEqual([true, 3]);
  });

  it.each([
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
