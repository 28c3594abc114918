import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { createResourceServer, type ResourceServerOptions } from "../../src/resource-server/index.js";
import { INTROSPECTION, RESOURCE } from "./support.js";

const ISSUER = "https://as.example/pool";
const make = (options: Partial<ResourceServerOptions>) =>
  createResourceServer({ resource: RESOURCE, authorizationServers: [ISSUER], ...options });

describe("options", () => {
  it.each<[string, Record<string, unknown>, RegExp]>([
    ["a resource that is no address", { resource: "/mcp" }, /^resource "\/mcp" is not an absolute URL/],
    ["no resource", { resource: undefined }, /^resource "" is not an absolute URL/],
    ["an empty one", { resource: "" }, /^resource "" is not an absolute URL/],
    ["an issuer that is not set", { authorizationServers: [undefined] }, /^authorizationServers "" is not an absolute/],
    ["plain http elsewhere", { resource: "http://mcp.example/mcp" }, /^resource .* must begin with https:/],
    ["a resource with a query", { resource: "https://mcp.example/mcp?a=b" }, /must not contain a query/],
    ["a resource with a fragment", { resource: "https://mcp.example/mcp#x" }, /fragment/],
    ["a resource with a password", { resource: "https://a:b@mcp.example/mcp" }, /user name or password/],
    ["a resource in other letters", { resource: "https://MCP.example/mcp" }, /written as "https:\/\/mcp.example\/mcp"/],
    ["a resource with its port spelled out", { resource: "https://mcp.example:443/mcp" }, /must be written as/],
    ["no issuers", { authorizationServers: [] }, /^authorizationServers must name/],
    ["an issuer instead of a list", { authorizationServers: ISSUER }, /^authorizationServers must name/],
    ["an issuer on plain http", { authorizationServers: ["http://as.example"] }, /^authorizationServers .*https/],
    [
      "an issuer where nothing is ever sent",
      { authorizationServers: ["https://169.254.169.254"] },
      /nothing is ever sent/,
    ],
    [
      "an algorithm with a shared secret",
      { algorithms: ["RS256", "HS256"] },
      /^algorithms "HS256" must be among ES256, ES384, ES512, EdDSA, Ed25519, PS256, PS384, PS512, RS256, RS384, RS512: /,
    ],
    ["no algorithm", { algorithms: [] }, /^algorithms "" must be among/],
    ["an empty audience", { audience: "" }, /^audience/],
    ["no audience", { audience: [] }, /^audience must be a text, or a list of texts that is not empty$/],
    ["an audience that is no text", { audience: ["a", 5] }, /^audience must be a text/],
    ["an audience of which one is empty", { audience: ["a", ""] }, /^audience must be a text/],
    ["a required scope that is none", { requiredScopes: ["a b"] }, /^requiredScopes: "a b" is no scope \(RFC 6749/],
    ["a supported scope that is none", { scopesSupported: ["a b"] }, /^scopesSupported: "a b" is no scope/],
    ["an unknown kind of tokens", { tokens: "opaque" }, /^tokens "opaque" must be one of/],
    ["introspection without how", { tokens: "both" }, /^tokens "both" needs the option introspection/],
    ["introspection without a secret", { introspection: { clientId: "rs" } }, /^introspection needs clientId/],
    [
      "introspection without an ID",
      { introspection: { clientSecret: "x" } },
      /^introspection needs clientId and clientS/,
    ],
    [
      "introspection at one of two",
      { authorizationServers: [ISSUER, "https://x.example"], introspection: INTROSPECTION },
      /^introspection\.issuer must say which of the authorizationServers is asked$/,
    ],
    [
      "introspection at another issuer",
      { introspection: { ...INTROSPECTION, issuer: "https://x.example" } },
      /^introspection\.issuer "https:\/\/x\.example" must be one of the authorizationServers$/,
    ],
    ["an unknown typ", { typ: "JWT" }, /^typ "JWT" must be one of/],
    [
      "clocks that differ by an hour",
      { clockSkewSeconds: 601 },
      /^clockSkewSeconds must be seconds from 0 to 600, not "601/,
    ],
    ["tokens that are kept for longer", { tokenCacheSeconds: 61 }, /^tokenCacheSeconds must be seconds from 0 to 60, /],
    ["keys that are kept for two days", { keyTtlSeconds: 86_401 }, /^keyTtlSeconds must be seconds from 0 to 86400, /],
    ["clocks that run backwards", { clockSkewSeconds: -1 }, /^clockSkewSeconds/],
    ["stale keys for two days", { staleKeysSeconds: 172_800 }, /^staleKeysSeconds must be seconds from 0 to 86400, /],
    ["keys on plain http", { jwksUris: { [ISSUER]: "http://as.example/jwks" } }, /^jwksUris/],
    [
      "keys of another issuer",
      { jwksUris: { "https://x.example": ISSUER } },
      /^jwksUris "https:\/\/x\.example" must be/,
    ],
    [
      "introspection on plain http",
      { introspection: { ...INTROSPECTION, endpoint: "http://as.example/introspect" } },
      /^introspection\.endpoint/,
    ],
    ["keys that are kept for ever", { keyTtlSeconds: Number.POSITIVE_INFINITY }, /^keyTtlSeconds/],
    [
      "answers that are kept for a day",
      { introspection: { ...INTROSPECTION, cacheTtlSeconds: 86_400 } },
      /^introspection.cacheTtlSeconds/,
    ],
    ["an unknown word about bound tokens", { dpop: "yes" }, /^dpop "yes" must be one of off, supported, required/],
    ["nonces in proofs that are not taken", { dpop: "off", dpopNonces: true }, /^dpopNonces needs proofs/],
    ["no time at all", { timeoutMs: 0 }, /^timeoutMs/],
  ])("cannot be %s", (_what, options, message) => {
    expect(() => make(options as Partial<ResourceServerOptions>)).toThrow(TypeError);
    expect(() => make(options as Partial<ResourceServerOptions>)).toThrow(message);
  });

  it.each<[string, Partial<ResourceServerOptions>]>([
    ["the least of each time", { clockSkewSeconds: 0, keyTtlSeconds: 0, tokenCacheSeconds: 0 }],
    ["the most of each time", { clockSkewSeconds: 600, keyTtlSeconds: 86_400, tokenCacheSeconds: 60 }],
    ["the most of answers", { introspection: { ...INTROSPECTION, cacheTtlSeconds: 3600 } }],
    ["JWTs alone", { tokens: "jwt" }],
    ["JWTs alone, with introspection", { tokens: "jwt", introspection: INTROSPECTION }],
    ["another authentication", { introspection: { authenticate: () => undefined } }],
    [
      "one of two that introspects",
      { authorizationServers: [ISSUER, "https://x.example"], introspection: { ...INTROSPECTION, issuer: ISSUER } },
    ],
    ["no proofs", { dpop: "off" }],
    ["nonces", { dpopNonces: true }],
    ["no nonces where there are no proofs", { dpop: "off", dpopNonces: false }],
  ])("may be %s", (_what, options) => {
    expect(make(options).metadata()).toMatchObject({ resource: RESOURCE });
  });

  it("may name servers on this machine, with or without a path", () => {
    const here = make({ resource: "http://127.0.0.1:3000", authorizationServers: ["http://localhost:4000/pool/"] });
    expect(here.metadata()).toEqual({
      resource: "http://127.0.0.1:3000",
      authorization_servers: ["http://localhost:4000/pool/"],
      dpop_signing_alg_values_supported: expect.any(Array),
    });
  });

  it("hold secrets that the server never shows", () => {
    const server = make({ introspection: { clientId: "rs", clientSecret: "canary-of-this-test" } });
    const shown = [inspect(server, { depth: 20, showHidden: true }), JSON.stringify(server), String(server)];
    expect(shown.join()).not.toContain("canary");
  });
});
