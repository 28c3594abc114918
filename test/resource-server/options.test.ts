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
      /^algorithms "HS256" must be among ES256/,
    ],
    ["no algorithm", { algorithms: [] }, /^algorithms "" must be among/],
    ["an empty audience", { audience: "" }, /^audience/],
    ["no audience", { audience: [] }, /^audience/],
    ["an unknown kind of tokens", { tokens: "opaque" }, /^tokens "opaque" must be one of/],
    ["introspection without how", { tokens: "both" }, /^tokens "both" needs the option introspection/],
    ["introspection without a secret", { introspection: { clientId: "rs" } }, /^introspection needs clientId/],
    [
      "introspection at somebody else",
      { introspection: { ...INTROSPECTION, issuer: "https://x.example" } },
      /must be one of/,
    ],
    ["an unknown typ", { typ: "JWT" }, /^typ "JWT" must be one of/],
    ["clocks that differ by an hour", { clockSkewSeconds: 3600 }, /^clockSkewSeconds must be seconds/],
    ["clocks that run backwards", { clockSkewSeconds: -1 }, /^clockSkewSeconds/],
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
