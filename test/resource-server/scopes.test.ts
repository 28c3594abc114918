import { describe, expect } from "vitest";
import { rejection } from "../helpers/service.js";
import { it, METADATA_URL, outcome } from "./support.js";

const refusal = (scope: string) =>
  `Bearer error="insufficient_scope", scope="${scope}", resource_metadata="${METADATA_URL}"`;

describe("scopes (V11)", () => {
  it.for<[string, Record<string, unknown>, string[]]>([
    ["a text", { scope: "mcp files:read" }, ["mcp", "files:read"]],
    ["doubles and many blanks", { scope: " mcp  mcp mcp " }, ["mcp"]],
    ["tabs and line breaks, which separate nothing", { scope: "mcp\tfiles:read\nadmin" }, []],
    ["no-break blanks, which separate nothing", { scope: "mcp\u00a0admin mcp" }, ["mcp"]],
    ["quotes, which no scope has", { scope: '"mcp" mcp\\' }, []],
    ["a list", { scope: ["mcp", "files:read"] }, ["mcp", "files:read"]],
    ["a list with blanks in a member", { scope: ["mcp admin", "mcp", 5, null] }, ["mcp"]],
    ["scp as a list", { scope: undefined, scp: ["mcp", "admin"] }, ["mcp", "admin"]],
    ["scp as a text", { scope: undefined, scp: "mcp admin" }, ["mcp", "admin"]],
    ["both: scope counts", { scope: "mcp", scp: ["admin"] }, ["mcp"]],
    ["an empty text", { scope: "" }, []],
    ["none", { scope: undefined }, []],
    ["an object", { scope: { mcp: true } }, []],
  ])("are read from %s", async ([_what, claims, scopes], { signer }) => {
    expect((await signer.server().verify(await signer.sign(claims))).scopes).toEqual(scopes);
  });

  it("are all named where one is missing", async ({ signer }) => {
    const server = signer.server({ requiredScopes: ["mcp"] });
    const token = await signer.sign({ scope: "mcp files:read" });
    const options = { scopes: ["files:read", "files:write"] };
    const response = await server.ask(token, options);
    expect(outcome(response)).toEqual([403, refusal("mcp files:read files:write")]);
    expect(await response.json()).toEqual({ error: "insufficient_scope" });
    expect(server.log).toEqual([{ type: "refused", reason: "scope", detail: 'the token lacks "files:write"' }]);
    expect((await server.ask(token, { scopes: ["files:read"] })).status).toBe(200);
  });

  it("are compared whole: no prefix, no other case, no wildcard", async ({ signer }) => {
    const server = signer.server({ requiredScopes: ["files:read"] });
    for (const scope of ["files", "files:", "files:*", "*", "FILES:READ", "files:read:all", "xfiles:read", "mcp"]) {
      expect((await server.ask(await signer.sign({ scope }))).status).toBe(403);
    }
  });

  it("can depend on the request, and are checked after its token", async ({ signer }) => {
    const server = signer.server();
    const seen: string[] = [];
    const scopes = async (request: Request) => {
      seen.push(request.method);
      return ["admin"];
    };
    expect((await server.ask(undefined, { scopes })).status).toBe(401);
    expect((await server.ask(await signer.sign({ aud: "other" }), { scopes })).status).toBe(401);
    expect(seen).toEqual([]);
    expect(outcome(await server.ask(await signer.sign(), { scopes }))).toEqual([403, refusal("admin")]);
    expect((await server.ask(await signer.sign({ scope: "admin" }), { scopes })).status).toBe(200);
    expect(seen).toEqual(["POST", "POST"]);
  });

  it("are an error of their own for a program that verifies by itself", async ({ signer }) => {
    const server = signer.server({ requiredScopes: ["mcp"] });
    expect(await rejection(server.verify(await signer.sign(), { scopes: ["admin", "owner"] }))).toMatchObject({
      code: "insufficient_scope",
      class: "auth",
      status: 403,
      message: 'the access token lacks scopes: "mcp admin owner" are needed',
    });
    expect(server.log).toEqual([{ type: "refused", reason: "scope", detail: 'the token lacks "admin owner"' }]);
  });

  it("must be scopes when a program gives them", async ({ signer }) => {
    expect(() => signer.server({ requiredScopes: ["two words"] })).toThrow(TypeError);
    expect(() => signer.server({ scopesSupported: ['a"b'] })).toThrow(TypeError);
    await expect(signer.server().verify(await signer.sign(), { scopes: ["a b"] })).rejects.toThrow(
      new TypeError('scopes: "a b" is no scope (RFC 6749 section 3.3)'),
    );
    await expect(signer.server().ask(undefined, { scopes: ["a b"] })).rejects.toThrow(TypeError);
  });
});
