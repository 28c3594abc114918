import nock from "nock";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/http/deadline.js";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import { obtainClient, type Registration, redirectForm } from "../../../src/oauth/client/registration.js";
import { OAuthHttp } from "../../../src/oauth/http/http.js";
import type { ServerMetadata } from "../../../src/oauth/model/metadata.js";
import { memoryStore } from "../../../src/store/memory.js";
import { pendingError } from "../../helpers/captured.js";
import { type Reply, reset, type Scene, silence, startScene } from "../../helpers/issuer.js";
import { useNock } from "../../helpers/nock.js";
import { remedy } from "../../helpers/remedy.js";
import { rejection } from "../../helpers/service.js";

const FORM = "http://127.0.0.1/callback";

async function login({ agent, mcp }: Scene, options: Partial<AgentClientOptions> = {}) {
  return agent(options).login(mcp.url);
}

const registered = ({ issuer }: Scene, nth = 0) =>
  JSON.parse(issuer.to("/pool/register")[nth]?.body ?? "null") as Record<string, unknown>;

it("asks a server that wants to be left alone no second time before that", async () => {
  const scene = await startScene();
  scene.issuer.routes["/pool/register"] = { status: 429, headers: { "retry-after": "120" }, text: "" };
  // The store has the times of the system.
  const options = { clock: systemClock };
  const answers = [await pendingError(login(scene, options)), await pendingError(login(scene, options))];
  for (const error of answers) {
    expect(error).toMatchObject({ class: "unavailable", status: 429, retryAfter: 120 });
    expect(error).toMatchObject({
      message: expect.stringContaining("asks to wait 120 s before the next registration"),
    });
  }
  expect(scene.issuer.to("/pool/register")).toHaveLength(1);
});

describe("which client is used", () => {
  it("[12] prefers the one known beforehand, then the metadata document, then a registration, then says what to do (2025-11-25)", async () => {
    const scene = await startScene();
    const { issuer, login: person } = scene;
    const clientMetadataUrl = "https://client.example/agent.json";
    issuer.metadata["client_id_metadata_document_supported"] = true;
    await login(scene, { clientMetadataUrl, client: { clientId: "known" } });
    await login(scene, { clientMetadataUrl });
    expect(issuer.to("/pool/register")).toEqual([]);
    await login(scene);
    expect(person.urls.map((url) => url.searchParams.get("client_id"))).toEqual([
      "known",
      clientMetadataUrl,
      "client-as-1",
    ]);
    delete issuer.metadata["registration_endpoint"];
    const known = await scene.store.readClient(issuer.issuer, FORM);
    if (known) await scene.store.saveClient({ ...known, isRefused: true }, FORM);
    expect(await pendingError(login(scene))).toMatchObject({
      code: "no_registration",
      class: "auth",
      message: expect.stringContaining(issuer.issuer),
      remedy: remedy({
        action: "configure",
        option: "client",
        clientIssuer: issuer.issuer,
        also: "clientMetadataUrl",
      }),
    });
  });

  it("[13] uses the address of its metadata document as the client id, without a secret (2025-11-25)", async () => {
    const scene = await startScene();
    const clientMetadataUrl = "https://client.example/agent.json";
    scene.issuer.metadata["client_id_metadata_document_supported"] = true;
    await login(scene, { clientMetadataUrl });
    const form = scene.issuer.form("/pool/token");
    expect(form.get("client_id")).toBe(clientMetadataUrl);
    expect(form.get("client_secret")).toBeNull();
    expect(scene.issuer.to("/pool/token")[0]?.headers.authorization).toBeUndefined();
  });

  it("[13] refuses an address of a metadata document that is not https (2025-11-25)", async () => {
    const scene = await startScene();
    scene.issuer.metadata["client_id_metadata_document_supported"] = true;
    const work = login(scene, { clientMetadataUrl: "http://client.example/agent.json" });
    expect(await pendingError(work)).toMatchObject({ code: "usage", class: "usage" });
    expect(scene.login.urls).toEqual([]);
  });

  it("[15] uses a client id and secret that it was given, and neither registers nor drops them (2025-11-25)", async () => {
    const scene = await startScene();
    const { issuer } = scene;
    issuer.routes["/pool/authorize"] = { status: 400, text: "unknown client" };
    expect(
      await pendingError(login(scene, { client: { clientId: "known", clientSecret: "hush-hush" } })),
    ).toMatchObject({
      class: "refused",
    });
    expect(scene.login.requested().get("client_id")).toBe("known");
    expect(issuer.to("/pool/register")).toEqual([]);
    expect(issuer.to("/pool/authorize")).toHaveLength(1);
  });

  it("[25] accepts no redirect address that is neither https nor on this machine (2025-06-18)", async () => {
    const scene = await startScene();
    for (const address of ["http://client.example/callback", "com.example.app:/callback", "callback"]) {
      scene.login.redirectUri = address;
      await expect(login(scene), address).rejects.toThrow(TypeError);
    }
    expect(scene.issuer.to("/pool/register")).toEqual([]);
    scene.login.redirectUri = "https://client.example/callback";
    await login(scene);
    expect(registered(scene)["redirect_uris"]).toEqual(["https://client.example/callback"]);
  });
});

describe("registering", () => {
  it("[11, 16, 17, 35] posts its metadata as JSON, as a native client for refresh tokens, with the redirect address of this login (2026-07-28)", async () => {
    const scene = await startScene();
    scene.mcp.metadata["scopes_supported"] = ["a", "b"];
    await login(scene, { clientName: "My Agent" });
    const request = scene.issuer.to("/pool/register")[0];
    expect(request?.headers["content-type"]).toMatch(/^application\/json/);
    expect(request?.headers.authorization).toBeUndefined();
    expect(registered(scene)).toEqual({
      client_name: "My Agent",
      redirect_uris: [scene.login.redirectUri],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "client_secret_basic",
      application_type: "native",
      scope: "a b",
    });
    expect(scene.login.requested().get("redirect_uri")).toBe(scene.login.redirectUri);
  });

  it("registers at the address for clients with a certificate where requests show one", async () => {
    const { agent, mcp, issuer } = await startScene();
    issuer.metadata["mtls_endpoint_aliases"] = { registration_endpoint: `${issuer.issuer}/mtls/register` };
    issuer.routes["/pool/mtls/register"] = issuer.routes["/pool/register"] ?? {};
    await agent({ mutualTls: true }).login(mcp.url);
    expect([issuer.to("/pool/mtls/register").length, issuer.to("/pool/register").length]).toEqual([1, 0]);
  });

  it("registers for token exchange where the server says that it does that, and without where it then refuses", async () => {
    const scene = await startScene();
    const exchange = "urn:ietf:params:oauth:grant-type:token-exchange";
    scene.issuer.metadata["grant_types_supported"] = ["authorization_code", "refresh_token", exchange];
    scene.mcp.metadata["scopes_supported"] = ["a"];
    const sent: { grant_types: string[]; scope?: string }[] = [];
    scene.issuer.routes["/pool/register"] = ({ body }) => {
      sent.push(JSON.parse(body) as (typeof sent)[number]);
      return sent.length < 4
        ? { status: 400, json: { error: "invalid_client_metadata" } }
        : { status: 201, json: { client_id: "made", client_secret: "hush-hush" } };
    };
    await login(scene);
    const usual = ["authorization_code", "refresh_token"];
    expect(sent.map(({ grant_types, scope }) => [grant_types, scope])).toEqual([
      [[...usual, exchange], "a"],
      [[...usual, exchange], undefined],
      [usual, "a"],
      [usual, undefined],
    ]);
  });

  it("uses one registration for every port of this machine", async () => {
    const scene = await startScene();
    await login(scene);
    scene.login.redirectUri = "http://127.0.0.1:50000/callback";
    await login(scene);
    expect(scene.issuer.to("/pool/register")).toHaveLength(1);
    expect(scene.login.opened.map(({ preferredRedirectUri }) => preferredRedirectUri)).toEqual([
      undefined,
      "http://127.0.0.1:49152/callback",
    ]);
  });

  it.each([
    ["http://127.0.0.1:1234/callback", "http://127.0.0.1/callback"],
    ["http://localhost:1234/callback", "http://localhost/callback"],
    ["https://client.example:8443/cb", "https://client.example:8443/cb"],
  ])("holds %s for the form %s", (address, form) => {
    expect(redirectForm(address)).toBe(form);
  });

  it("registers once for logins that begin at once", async () => {
    const scene = await startScene();
    const other = await startScene();
    other.mcp.metadata["authorization_servers"] = [scene.issuer.issuer];
    const agent = scene.agent();
    await Promise.all([agent.login(scene.mcp.url), agent.login(other.mcp.url)]);
    expect(scene.issuer.to("/pool/register")).toHaveLength(1);
  });

  it("registers again when its secret expires within a minute, and not before", async () => {
    const scene = await startScene();
    const inAnHour = scene.clock.epoch() / 1000 + 3600;
    scene.issuer.registrationAnswer = { client_secret_expires_at: inAnHour };
    await login(scene);
    await scene.clock.sleep(3_539_000, new AbortController().signal);
    await login(scene);
    expect(scene.issuer.to("/pool/register")).toHaveLength(1);
    await scene.clock.sleep(2000, new AbortController().signal);
    await login(scene);
    expect(scene.issuer.to("/pool/register")).toHaveLength(2);
    expect(scene.login.requested(2).get("client_id")).toBe("client-as-2");
  });

  it.each<[string, Reply]>([
    ["rejects the request", { status: 400, text: "unknown client" }],
    ["fails at the client", { status: 500, text: "" }],
    ["redirects to a page for errors", { status: 303, headers: { location: "/error?error=invalid_client" } }],
    [
      "redirects to one at another host",
      { status: 302, headers: { location: "https://a.example/?error=unauthorized_client" } },
    ],
    [
      "redirects to one about the address",
      { status: 307, headers: { location: "?error=invalid_redirect_uri&state=x" } },
    ],
  ])(
    "registers again, before the browser opens, where an issuer that has forgotten the client %s",
    async (_what, reply) => {
      const scene = await startScene();
      const { issuer, login: person, log } = scene;
      await login(scene);
      const answer = issuer.routes["/pool/authorize"];
      issuer.routes["/pool/authorize"] = (request, nth) => {
        if (request.url.includes("client_id=client-as-1")) return reply;
        return typeof answer === "function" ? answer(request, nth) : {};
      };
      log.length = 0;
      const traced: unknown[] = [];
      await login(scene, { onTrace: (entry) => void traced.push(entry) });
      expect(traced).toContainEqual({
        step: "authorization",
        method: "GET",
        url: `${issuer.origin}/pool/authorize`,
        used: false,
        why: "the issuer no longer knows this client; another one is registered",
      });
      expect(person.urls.map((url) => url.searchParams.get("client_id"))).toEqual(["client-as-1", "client-as-2"]);
      expect(log.indexOf("as POST /pool/register")).toBeLessThan(log.indexOf("person authorize"));
      expect(await scene.store.readClient(issuer.issuer, FORM)).toMatchObject({ clientId: "client-as-2" });
    },
  );

  it.each<[string, Reply]>([
    ["is longer than a megabyte", { text: "x".repeat(1_100_000) }],
    ["is no JSON and says that it is", { headers: { "content-type": "application/json" }, text: "<html>" }],
    ["breaks off", reset],
    ["does not come", silence],
    ["fails with 503", { status: 503, text: "" }],
    ["redirects to a login that has an error", { status: 302, headers: { location: "/login?error=session_expired" } }],
    ["redirects to an address that cannot be read", { status: 302, headers: { location: "http://[" } }],
  ])(
    "keeps a registration, and opens the browser, where the login page %s for anything but a browser",
    async (_what, answer) => {
      const scene = await startScene();
      const { issuer, login: person, agent, mcp } = scene;
      await login(scene);
      const usual = issuer.routes["/pool/authorize"];
      issuer.routes["/pool/authorize"] = (request, nth) =>
        nth === 2 ? answer : typeof usual === "function" ? usual(request, nth) : {};
      await agent({ timeoutMs: 5_000 }).login(mcp.url);
      expect(person.urls).toHaveLength(2);
      expect(issuer.to("/pool/authorize")).toHaveLength(3);
      expect(issuer.to("/pool/register")).toHaveLength(1);
    },
  );

  it("opens no browser after the caller has left while the login page was requested", async () => {
    const scene = await startScene();
    await login(scene);
    const controller = new AbortController();
    scene.issuer.routes["/pool/authorize"] = { raw: () => controller.abort() };
    const work = scene.agent().login(scene.mcp.url, { signal: controller.signal });
    expect(await pendingError(work)).toMatchObject({ code: "aborted" });
    expect(scene.login.urls).toHaveLength(1);
  });
});

describe("clients of several issuers", () => {
  it("[5] keeps one registration for each issuer (2026-07-28)", async () => {
    const scene = await startScene();
    const other = await scene.another("other");
    await login(scene);
    scene.mcp.metadata["authorization_servers"] = [other.issuer];
    await login(scene);
    scene.mcp.metadata["authorization_servers"] = [scene.issuer.issuer];
    await login(scene);
    expect(scene.login.urls.map((url) => url.searchParams.get("client_id"))).toEqual([
      "client-as-1",
      "client-other-1",
      "client-as-1",
    ]);
    expect(scene.issuer.to("/pool/register")).toHaveLength(1);
  });

  it("[19] shows a new issuer nothing of the old one's client or tokens (2026-07-28)", async () => {
    const scene = await startScene();
    const other = await scene.another("other");
    await login(scene);
    scene.mcp.metadata["authorization_servers"] = [other.issuer];
    scene.mcp.accepts = (token) => token.startsWith("access-other");
    expect((await scene.agent().fetch(scene.mcp.url)).status).toBe(200);
    const seen = JSON.stringify(other.requests);
    for (const secret of ["client-as-1", "secret-as-1", "access-as", "refresh-as", "code-as"])
      expect(seen).not.toContain(secret);
    expect((await scene.store.list()).map(({ issuer }) => issuer)).toEqual([other.issuer]);
  });
});

const ISSUER = "https://as.example";

const REDIRECT = "http://127.0.0.1:49152/callback";

const SERVER: ServerMetadata = {
  issuer: ISSUER,
  url: `${ISSUER}/.well-known/oauth-authorization-server`,
  authorizationEndpoint: `${ISSUER}/authorize`,
  tokenEndpoint: `${ISSUER}/token`,
  registrationEndpoint: `${ISSUER}/register`,
  introspectionEndpoint: undefined,
  revocationEndpoint: undefined,
  endSessionEndpoint: undefined,
  deviceAuthorizationEndpoint: undefined,
  jwksUri: undefined,
  scopesSupported: undefined,
  grantTypesSupported: undefined,
  tokenEndpointAuthMethods: ["none"],
  promisesIss: false,
  takesClientIdDocuments: false,
};

const registration = (over: Partial<Registration> = {}): Registration => ({
  http: new OAuthHttp({}),
  server: SERVER,
  store: memoryStore(),
  profile: "default",
  redirectUri: REDIRECT,
  clientName: "agent",
  preRegistered: undefined,
  clientMetadataUrl: undefined,
  scope: ["tools"],
  now: 0,
  trace: () => {},
  signal: undefined,
  ...over,
});

const register = (body?: nock.RequestBodyMatcher) => nock(ISSUER).post("/register", body);

describe("registering a client, on the global fetch", () => {
  useNock();

  it("stores the client and does not register it again", async () => {
    const store = memoryStore();
    register({
      client_name: "agent",
      redirect_uris: [REDIRECT],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
      application_type: "native",
      scope: "tools",
    }).reply(201, { client_id: "client-1" });
    const client = await obtainClient(registration({ store }));
    expect(client).toMatchObject({ clientId: "client-1", authMethod: "none", source: "dynamic" });
    expect(await obtainClient(registration({ store }))).toEqual(client);
  });

  it("refuses an answer without a usable client, and stores nothing of it", async () => {
    const store = memoryStore();
    register().reply(201, { client_id: "client-1", redirect_uris: ["https://evil.example/"] });
    expect(await pendingError(obtainClient(registration({ store })))).toMatchObject({ code: "bad_registration" });
    register().reply(201, { client_id: "client-2" });
    expect((await obtainClient(registration({ store }))).clientId).toBe("client-2");
  });

  const LONGEST = "~ ".repeat(1024);
  const SECRET = { client_secret: "s", client_secret_expires_at: 0 };
  const nothing = (unset: null | "") => ({
    client_secret: unset,
    token_endpoint_auth_method: unset,
    ...(unset === null && { client_secret_expires_at: null, redirect_uris: null, grant_types: null }),
  });

  it.each<[string, object, object]>([
    ["a client id of 2048 characters", { client_id: LONGEST }, { clientId: LONGEST }],
    ["the address that was sent", { redirect_uris: [REDIRECT] }, { redirectUri: REDIRECT, issuer: ISSUER }],
    ["no secret", {}, { clientSecret: undefined, authMethod: "none", clientName: "agent", source: "dynamic" }],
    [
      "null for what it does not set",
      nothing(null),
      { clientSecret: undefined, authMethod: "none", source: "dynamic" },
    ],
    ["empty texts for that", nothing(""), { clientSecret: undefined, authMethod: "none" }],
    ["a secret that does not end", SECRET, { secretExpiresAt: undefined, authMethod: "none" }],
    ["an end in words, and no secret", { client_secret_expires_at: "5" }, { secretExpiresAt: undefined }],
    ["an end in words", { ...SECRET, client_secret_expires_at: "soon" }, { secretExpiresAt: undefined }],
    ["an end as digits", { ...SECRET, client_secret_expires_at: "5" }, { secretExpiresAt: 5000 }],
    ["no redirect address", { redirect_uris: [] }, {}],
    ["one that ends", { ...SECRET, client_secret_expires_at: 5 }, { secretExpiresAt: 5000 }],
    [
      "a way to prove it",
      { ...SECRET, token_endpoint_auth_method: "client_secret_post" },
      { authMethod: "client_secret_post" },
    ],
    ["a way, and nothing to prove", { token_endpoint_auth_method: "client_secret_post" }, { authMethod: "none" }],
    ["a secret of 8192 characters", { ...SECRET, client_secret: "s".repeat(8192) }, {}],
  ])("takes an answer with %s", async (_what, answer, expected) => {
    const traced: unknown[] = [];
    register().reply(201, { client_id: "client-1", ...answer });
    const client = await obtainClient(registration({ trace: (entry) => void traced.push(entry) }));
    expect(client).toMatchObject(expected);
    const url = `${ISSUER}/register`;
    const why = `registered as ${client.clientId.slice(0, 80)}`;
    expect(traced).toEqual([{ step: "registration", method: "POST", url, status: 201, used: true, why }]);
  });

  const VISIBLE = "must be a non-empty string of visible ASCII characters (RFC 7591 section 3.2.1)";
  const REQUESTED = `must be the requested one, ${REDIRECT}: the server's owner must have it registered as it was sent`;

  it.each<[string, object, string]>([
    ["a client id of 2049 characters", { client_id: `${LONGEST}x` }, VISIBLE],
    ["a client id that begins with a tab", { client_id: "\tb" }, VISIBLE],
    ["a client id that ends with an umlaut", { client_id: "b\u00e4" }, VISIBLE],
    ["a secret of 8193 characters", { ...SECRET, client_secret: "s".repeat(8193) }, "at most 8192 characters long"],
    ["its redirect address twice", { redirect_uris: [REDIRECT, REDIRECT] }, REQUESTED],
    ["a redirect address that is no list", { redirect_uris: REDIRECT }, REQUESTED],
    ["one character as its redirect addresses", { redirect_uris: "h" }, REQUESTED],
  ])("refuses an answer with %s, and says so in the trace", async (_what, answer, rule) => {
    const traced: { why: string; used: boolean }[] = [];
    register().reply(201, { client_id: "client-1", ...answer });
    const error = await rejection(obtainClient(registration({ trace: (entry) => void traced.push(entry) })));
    expect(error).toMatchObject({ code: "bad_registration", class: "refused", message: expect.stringContaining(rule) });
    expect(traced).toMatchObject([{ used: false, status: 201, why: (error as Error).message }]);
  });

  it("registers again without scopes where the issuer refuses them", async () => {
    register((body) => body["scope"] === "tools").reply(400, { error: "invalid_client_metadata" });
    register((body) => body["scope"] === undefined).reply(201, { client_id: "client-1" });
    expect((await obtainClient(registration())).clientId).toBe("client-1");
  });

  it("does not repeat a registration that a busy issuer failed", async () => {
    register().reply(503);
    expect(await pendingError(obtainClient(registration()))).toMatchObject({ class: "unavailable", status: 503 });
  });
});
