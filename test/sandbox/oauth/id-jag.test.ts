import { decodeJwt } from "jose";
import { describe, expect } from "vitest";
import { createSigningKey, signJwt } from "../../../src/sandbox/oauth/keys.js";
import type { Machines } from "../../../src/sandbox/oauth/machine.js";
import { it as base } from "../support.js";

const GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TYP = "oauth-id-jag+jwt";

/** A change of an ID-JAG, its header and the request that presents it. */
interface Change {
  claims?: Record<string, unknown>;
  typ?: string;
  /** Signed by an unknown key. */
  forged?: boolean;
  form?: Record<string, string>;
}

const it = base
  .extend("options", { machineGrants: true, devices: 1 })
  // The declared type has the public members alone.
  .extend("machines", ({ sandbox }) => sandbox.machine as Machines)
  .extend("issuer", ({ sandbox }) => sandbox.authUrl(sandbox.ids.pool))
  .extend("headers", ({ machines }) => {
    const { clientId, clientSecret } = machines.secretClient;
    return { authorization: `Basic ${btoa(`${clientId}:${clientSecret}`)}` };
  })
  /** An ID-JAG of the identity provider for the first MCP server. */
  .extend("assertion", ({ machines, issuer, sandbox }) => ({ claims = {}, typ = TYP, forged = false }: Change = {}) => {
    const own = {
      iss: machines.idp.issuer,
      sub: "alice",
      aud: issuer,
      client_id: machines.secretClient.clientId,
      resource: sandbox.mcpUrl,
      scope: "a b",
      ...machines.times(),
    };
    const trusted = machines.key("idp");
    const other = createSigningKey();
    const key = forged ? { ...other, jwk: { ...other.jwk, kid: trusted.jwk.kid } } : trusted;
    return signJwt(key, typ, { ...own, ...claims } as never);
  })
  /** Presents an assertion at the token endpoint. */
  .extend("present", ({ issuer, headers }) => async (assertion: string, form: Record<string, string> = {}) => {
    const body = new URLSearchParams({ grant_type: GRANT_TYPE, assertion, ...form });
    const response = await fetch(`${issuer}/token`, { method: "POST", headers, body });
    return { status: response.status, body: (await response.json()) as Record<string, string> };
  });

// What draft scenarios of the MCP conformance suite ask of a resource authorization server (enterprise-managed
// authorization section 5, draft-ietf-oauth-identity-assertion-authz-grant-04 section 4.4, RFC 7521, RFC 7523).
describe("the authorization server of a resource", () => {
  it("gives a token for the resource of the ID-JAG, whom it speaks for, and its scopes", async ({
    assertion,
    headers,
    issuer,
    machines,
    present,
    sandbox,
  }) => {
    const other = `${sandbox.mcpUrl}/${sandbox.ids.pool}`;
    for (const resource of [sandbox.mcpUrl, other]) {
      const { status, body } = await present(assertion({ claims: { resource } }));
      expect([status, body]).toMatchObject([200, { token_type: "Bearer", scope: "a b", expires_in: 3600 }]);
      expect(body).not.toHaveProperty("refresh_token");
      const { clientId: client_id } = machines.secretClient;
      const facts = { iss: issuer, sub: "alice", aud: resource, client_id, scope: "a b" };
      expect(decodeJwt(body["access_token"] ?? "")).toMatchObject(facts);
      const form = new URLSearchParams({ token: body["access_token"] ?? "" });
      const introspected = await fetch(`${issuer}/introspect`, { method: "POST", headers, body: form });
      expect(await introspected.json()).toMatchObject({ active: true, ...facts });
    }
  });

  it("announces the grant and the profile", async ({ issuer }) => {
    const metadata = await fetch(`${issuer}/.well-known/oauth-authorization-server`);
    expect(await metadata.json()).toMatchObject({
      grant_types_supported: expect.arrayContaining([GRANT_TYPE]),
      authorization_grant_profiles_supported: ["urn:ietf:params:oauth:grant-profile:id-jag"],
    });
  });

  it.for<[string, (issuer: string) => Change, Record<string, string>]>([
    ["a narrower scope", () => ({ form: { scope: "a" } }), { scope: "a" }],
    ["one audience in an array", (issuer) => ({ claims: { aud: [issuer] } }), { scope: "a b" }],
    ["no resource", () => ({ claims: { resource: undefined } }), { scope: "a b" }],
    ["no scope", () => ({ claims: { scope: undefined }, form: { scope: "c" } }), { scope: "c" }],
  ])("takes an ID-JAG with %s", async ([_what, change, expected], { assertion, issuer, present }) => {
    const { form, ...changed } = change(issuer);
    const { status, body } = await present(assertion(changed), form);
    expect([status, body]).toMatchObject([200, expected]);
  });

  it.for<[string, (issuer: string) => Change, string]>([
    ["of a provider that it does not trust", () => ({ claims: { iss: "https://evil.example" } }), "invalid_grant"],
    ["with another signature", () => ({ forged: true }), "invalid_grant"],
    ["without iss", () => ({ claims: { iss: undefined } }), "invalid_grant"],
    ["without sub", () => ({ claims: { sub: undefined } }), "invalid_grant"],
    ["for another audience", () => ({ claims: { aud: "https://other.example" } }), "invalid_grant"],
    ["for its token endpoint", (issuer) => ({ claims: { aud: `${issuer}/token` } }), "invalid_grant"],
    ["for two audiences", (issuer) => ({ claims: { aud: [issuer, "https://b.example"] } }), "invalid_grant"],
    ["for itself twice", (issuer) => ({ claims: { aud: [issuer, issuer] } }), "invalid_grant"],
    ["for no audience", () => ({ claims: { aud: [] } }), "invalid_grant"],
    ["without aud", () => ({ claims: { aud: undefined } }), "invalid_grant"],
    ["that has expired", () => ({ claims: { exp: 1 } }), "invalid_grant"],
    ["whose exp is a text", () => ({ claims: { exp: "4000000000" } }), "invalid_grant"],
    ["without exp", () => ({ claims: { exp: undefined } }), "invalid_grant"],
    ["that is not valid yet", () => ({ claims: { nbf: 4e9 } }), "invalid_grant"],
    ["without iat", () => ({ claims: { iat: undefined } }), "invalid_grant"],
    ["without jti", () => ({ claims: { jti: undefined } }), "invalid_grant"],
    ["of another client", () => ({ claims: { client_id: "other" } }), "invalid_grant"],
    ["without client_id", () => ({ claims: { client_id: undefined } }), "invalid_grant"],
    ["whose typ is JWT", () => ({ typ: "JWT" }), "invalid_grant"],
    ["for a server that is not here", () => ({ claims: { resource: "https://other.example" } }), "invalid_target"],
    [
      "with two resources",
      () => ({ claims: { resource: ["https://a.example", "https://b.example"] } }),
      "invalid_grant",
    ],
    ["with more scopes requested", () => ({ form: { scope: "a c" } }), "invalid_scope"],
    ["with another resource requested", () => ({ form: { resource: "https://other.example" } }), "invalid_target"],
  ])("refuses an ID-JAG %s", async ([_what, change, error], { assertion, issuer, present }) => {
    const { form, ...changed } = change(issuer);
    const refused = await present(assertion(changed), form);
    expect([refused.status, refused.body["error"]]).toEqual([400, error]);
    expect(refused.body).not.toHaveProperty("access_token");
  });

  it("refuses a client that does not authenticate as it is registered", async ({ assertion, issuer, machines }) => {
    const body = new URLSearchParams({ grant_type: GRANT_TYPE, assertion: assertion() });
    body.set("client_id", machines.secretClient.clientId);
    const refused = await fetch(`${issuer}/token`, { method: "POST", body });
    expect([refused.status, await refused.json()]).toMatchObject([401, { error: "invalid_client" }]);
  });

  it("refuses a request without an assertion", async ({ present }) => {
    expect((await present("")).body["error"]).toBe("invalid_request");
  });

  it("takes an assertion once, also after a refusal, and that of a workload too", async ({
    assertion,
    machines,
    present,
  }) => {
    for (const one of [assertion(), machines.assertion()]) {
      expect((await present(one, { resource: "https://other.example" })).body["error"]).toBe("invalid_target");
      const both = await Promise.all([present(one), present(one)]);
      expect(both.map(({ status }) => status).sort()).toEqual([200, 400]);
      expect((await present(one)).body["error"]).toBe("invalid_grant");
    }
  });
});
