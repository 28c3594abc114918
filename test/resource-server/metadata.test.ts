import { describe, expect, it } from "vitest";
import { createResourceServer } from "../../src/resource-server/index.js";

const PROOF_ALGORITHMS = ["ES256", "Ed25519", "EdDSA", "PS256", "RS256"];
const ISSUER = "https://as.example/pool";
const serverAt = (resource: string, options = {}) =>
  createResourceServer({ resource, authorizationServers: [ISSUER], ...options });

describe("the metadata of a resource server", () => {
  it.each([
    ["https://mcp.example/mcp", "/.well-known/oauth-protected-resource/mcp"],
    ["https://mcp.example", "/.well-known/oauth-protected-resource"],
    ["https://mcp.example/", "/.well-known/oauth-protected-resource"],
    ["https://mcp.example/a/b/", "/.well-known/oauth-protected-resource/a/b/"],
    ["http://127.0.0.1:3000/mcp", "/.well-known/oauth-protected-resource/mcp"],
  ])("of %s lies at %s", async (resource, path) => {
    const server = serverAt(resource);
    expect(server.metadataPath).toBe(path);
    const challenge = await server.protect(() => new Response())(new Request(resource));
    const address = `Bearer resource_metadata="${new URL(resource).origin}${path}"`;
    expect(challenge.headers.get("www-authenticate")).toMatch(new RegExp(`^${address}, DPoP `));
  });

  it("says who issues tokens, which scopes there are, and what else the options say", async () => {
    const server = serverAt("https://mcp.example/mcp", {
      requiredScopes: ["mcp"],
      metadata: { resource_name: "Example", resource: "https://evil.example", scopes_supported: ["evil"] },
    });
    const document = {
      resource: "https://mcp.example/mcp",
      authorization_servers: [ISSUER],
      dpop_signing_alg_values_supported: PROOF_ALGORITHMS,
      scopes_supported: ["mcp"],
      resource_name: "Example",
    };
    expect(server.metadata()).toEqual(document);
    const response = server.handleMetadata(new Request(`https://mcp.example${server.metadataPath}?x=y`));
    expect(await response?.json()).toEqual(document);
    expect(serverAt("https://mcp.example", { scopesSupported: [] }).metadata()["scopes_supported"]).toEqual([]);
    expect(serverAt("https://mcp.example").metadata()).not.toHaveProperty("scopes_supported");
  });

  it("is returned to everyone, from any web page, without a token and without changing anything", async () => {
    const server = serverAt("https://mcp.example/mcp");
    const handler = server.protect(() => new Response("in"));
    const ask = (method: string) => handler(new Request(`https://mcp.example${server.metadataPath}`, { method }));
    const got = await ask("GET");
    expect([got.status, got.headers.get("content-type"), got.headers.get("access-control-allow-origin")]).toEqual([
      200,
      "application/json",
      "*",
    ]);
    const head = await ask("HEAD");
    expect([head.status, await head.text()]).toEqual([200, ""]);
    expect(Object.fromEntries(head.headers)).toEqual({
      "access-control-allow-origin": "*",
      "cache-control": "public, max-age=300",
      "content-type": "application/json",
    });
    const preflight = await ask("OPTIONS");
    expect([preflight.status, Object.fromEntries(preflight.headers)]).toEqual([
      204,
      {
        "access-control-allow-headers": "*",
        "access-control-allow-methods": "GET, HEAD",
        "access-control-allow-origin": "*",
        "access-control-max-age": "86400",
      },
    ]);
    const post = await ask("POST");
    expect([post.status, await post.json(), Object.fromEntries(post.headers)]).toEqual([
      405,
      { error: "invalid_request" },
      {
        "access-control-allow-origin": "*",
        allow: "GET, HEAD, OPTIONS",
        "cache-control": "no-store",
        "content-type": "application/json",
      },
    ]);
  });

  it("is at no other path", () => {
    const server = serverAt("https://mcp.example/mcp");
    for (const path of ["/mcp", "/.well-known/oauth-protected-resource", `${server.metadataPath}/`, "/x"]) {
      expect(server.handleMetadata(new Request(`https://mcp.example${path}`))).toBeUndefined();
    }
  });

  it("cannot be changed through what is handed out", () => {
    const server = serverAt("https://mcp.example/mcp");
    Object.assign(server.metadata(), { resource: "https://evil.example" });
    (server.metadata().authorization_servers as string[]).push("https://evil.example");
    expect(server.metadata()).toEqual({
      resource: "https://mcp.example/mcp",
      authorization_servers: [ISSUER],
      dpop_signing_alg_values_supported: PROOF_ALGORITHMS,
    });
  });
});
