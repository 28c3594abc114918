import nock from "nock";
import { describe, expect, it } from "vitest";
import { obtainClient, type Registration } from "../../../src/oauth/client/registration.js";
import { OAuthHttp } from "../../../src/oauth/http/http.js";
import type { ServerMetadata } from "../../../src/oauth/model/metadata.js";
import { memoryStore } from "../../../src/store/memory.js";
import { pendingError } from "../../helpers/captured.js";
import { useNock } from "../../helpers/nock.js";

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

useNock();

describe("registering a client, on the global fetch", () => {
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

  it.each<[string, object]>([
    ["a client id of 2049 characters", { client_id: `${LONGEST}x` }],
    ["a client id that begins with a tab", { client_id: "\tb" }],
    ["a client id that ends with an umlaut", { client_id: "b\u00e4" }],
    ["a secret of 8193 characters", { ...SECRET, client_secret: "s".repeat(8193) }],
    ["its redirect address twice", { redirect_uris: [REDIRECT, REDIRECT] }],
    ["a redirect address that is no list", { redirect_uris: REDIRECT }],
    ["one character as its redirect addresses", { redirect_uris: "h" }],
  ])("refuses an answer with %s, and says so in the trace", async (_what, answer) => {
    const traced: { why: string; used: boolean }[] = [];
    register().reply(201, { client_id: "client-1", ...answer });
    const error = await pendingError(obtainClient(registration({ trace: (entry) => void traced.push(entry) })));
    expect(error).toMatchObject({ code: "bad_registration", class: "refused" });
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
