import { describe, expect, it } from "vitest";
import { isScopeToken, resourceMetadataAddress, serverMetadataAddresses } from "../../src/http/oauth-syntax.js";

const PRM = "https://a.example/.well-known/oauth-protected-resource";
const AS = "/.well-known/oauth-authorization-server";
const OIDC = "/.well-known/openid-configuration";

describe("the address of metadata", () => {
  it.each([
    ["https://a.example", PRM],
    ["https://a.example/", PRM],
    ["https://a.example/?tenant=1", `${PRM}?tenant=1`],
    ["https://a.example/mcp", `${PRM}/mcp`],
    ["https://a.example/mcp/", `${PRM}/mcp/`],
    ["https://a.example/mcp?tenant=1#part", `${PRM}/mcp?tenant=1`],
  ])("of the resource %s is %s", (resource, address) => expect(resourceMetadataAddress(resource)).toBe(address));

  it.each<[string, string[][]]>([
    ["https://a.example", [[`https://a.example${AS}`, `https://a.example${OIDC}`]]],
    ["https://a.example/", [[`https://a.example${AS}`, `https://a.example${OIDC}`]]],
    ...["https://a.example/b", "https://a.example/b/", "https://a.example/b//"].map((issuer): [string, string[][]] => [
      issuer,
      [
        [`https://a.example/b${AS}`, `https://a.example${AS}/b`],
        [`https://a.example${OIDC}/b`, `https://a.example/b${OIDC}`],
      ],
    ]),
  ])("of the issuer %s is one of %j", (issuer, addresses) =>
    expect(serverMetadataAddresses(issuer)).toEqual(addresses),
  );
});

it.each(["a", "mcp:read", "https://a.example/scope", "!#[]~"])("%j is a scope", (text) =>
  expect(isScopeToken(text)).toBe(true),
);

it.each(["", " ", "a b", 'a"', "\\", "é", "a\n", "\u007f"])("%j is no scope", (text) =>
  expect(isScopeToken(text)).toBe(false),
);
