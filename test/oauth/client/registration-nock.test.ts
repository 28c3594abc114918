import nock from "nock";
import { describe, expect, it } from "vitest";
import { obtainClient, type Registration } from "../../../src/oauth/client/registration.js";
import { OAuthHttp } from "../../../src/oauth/http/http.js";
import type { ServerMetadata } from "../../../src/oauth/model/metadata.js";
import { memoryStore } from "../../../src/store/memory.js";
import { useNock } from "../../helpers/nock.js";
import { heldError } from "../../helpers/told.js";

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
    expect(await heldError(obtainClient(registration({ store })))).toMatchObject({ code: "bad_registration" });
    register().reply(201, { client_id: "client-2" });
    expect((await obtainClient(registration({ store }))).clientId).toBe("client-2");
  });

  it("registers again without scopes where the issuer refuses them", async () => {
    register((body) => body["scope"] === "tools").reply(400, { error: "invalid_client_metadata" });
    register((body) => body["scope"] === undefined).reply(201, { client_id: "client-1" });
    expect((await obtainClient(registration())).clientId).toBe("client-1");
  });

  it("does not repeat a registration that a busy issuer failed", async () => {
    register().reply(503);
    expect(await heldError(obtainClient(registration()))).toMatchObject({ class: "unavailable", status: 503 });
  });
});
