import { describe, expect, it } from "vitest";
import type { Discovered } from "../../../src/oauth/model/metadata.js";
import {
  grantedScope,
  parseScope,
  scopeFor,
  scopesBeyond,
  splitScope,
  unionScopes,
} from "../../../src/oauth/model/scope.js";
import { quote } from "../../../src/redact.js";
import { startScene } from "../../helpers/issuer.js";
import { fc } from "../../helpers/properties.js";

const parse = (value: unknown) => parseScope(value, "scope", "https://mcp.example");

type Sources = Partial<Record<"explicit" | "challenged" | "resource" | "server" | "previous", readonly string[]>>;

const choose = ({ explicit, challenged, resource, server, previous }: Sources) =>
  scopeFor(
    {
      server: "https://mcp.example",
      challenge: challenged && { scope: challenged.join(" ") },
      resource: resource && { scopesSupported: resource },
      issuer: { scopesSupported: server },
    } as Discovered,
    { scope: explicit?.join(" "), previousScope: previous?.join(" ") },
  ).scope;

describe("parseScope", () => {
  it.each<[unknown, string[]]>([
    ["", []],
    ["a", ["a"]],
    ["  a   b ", ["a", "b"]],
    ["a b a", ["a", "b"]],
    [
      ["files:read", "https://api.example/x"],
      ["files:read", "https://api.example/x"],
    ],
    [[], []],
  ])("reads %j", (value, scopes) => {
    expect(parse(value)).toEqual(scopes);
  });

  it("reads 256 scopes, and 8192 bytes with the blanks between them", () => {
    const many = Array.from({ length: 256 }, (_, index) => `s${index}`);
    expect(parse(many)).toEqual(many);
    const long = Array.from({ length: 32 }, (_, index) => `${index}`.padStart(255, "x"));
    expect(long.join(" ")).toHaveLength(8191);
    expect(parse(long)).toEqual(long);
  });

  const TOKENS = "must consist of scope tokens (RFC 6749 section 3.3)";

  it.each<[string, unknown, string?]>([
    ["a number", 7, "must be a list of scopes"],
    ["nothing", null, "must be a list of scopes"],
    ["a number in a list", ["a", 7]],
    ["a quote", 'a"b'],
    ["a backslash", "a\\b"],
    ["a tab", "a\tb"],
    ["a line break", "a\nb"],
    ["an escape", "a\u001b[0m"],
    ["a letter beyond ASCII", "ä"],
    ["a blank inside a list's entry", ["a b"]],
    ["an empty entry", [""]],
    ["a scope of 257 characters", "x".repeat(257)],
    ["257 scopes", Array.from({ length: 257 }, (_, index) => `s${index}`), "must not have more than 256 scopes"],
    [
      "scopes of 8193 bytes with their blanks",
      ["x", ...Array.from({ length: 32 }, () => "x".repeat(255))],
      "must not have more than 8192 bytes, and has 8193",
    ],
    ["10,000 scopes", "a ".repeat(10_000), "must not have more than 256 scopes"],
  ])("refuses %s", (_what, value, rule = TOKENS) => {
    const message = `scope ${quote(value)} (from "https://mcp.example") ${rule}`;
    expect(() => parse(value)).toThrow(expect.objectContaining({ code: "bad_scope", class: "refused", message }));
  });

  it("reads a scope of 256 characters, and 8192 bytes", () => {
    const longest = "x".repeat(256);
    expect(parse(longest)).toEqual([longest]);
    const full = Array.from({ length: 32 }, (_, index) => `${index}`.padStart(index === 0 ? 256 : 255, "x"));
    expect(full.join(" ")).toHaveLength(8192);
    expect(parse(full)).toEqual(full);
  });
});

it.each<[string | undefined, string | undefined, string | undefined]>([
  ["a b", "a", "a b"],
  ["a,b", "a", "a b"],
  ["a, b,,c ", "a", "a b c"],
  ["a,b", undefined, "a b"],
  ["a,b", "a,b c", "a,b"],
  ["", "a", ""],
  [undefined, "a", "a"],
  [undefined, undefined, undefined],
])("a response with %j to a request for %j grants %j", (granted, requested, expected) => {
  expect(grantedScope(granted, requested)).toBe(expected);
});

describe("what was granted beyond what was requested", () => {
  it.each<[string | undefined, string | undefined, string[]]>([
    ["a b", "a b", []],
    ["a b", "b", []],
    ["a", "a b c", ["b", "c"]],
    ["a", " b  a", ["b"]],
    ["a", "", []],
    ["a", undefined, []],
    [undefined, "a b", []],
  ])("is found for %j and %j", (requested, granted, more) => {
    expect(scopesBeyond(requested, granted)).toEqual(more);
  });

  it.each(["browser", "device"] as const)("is said once after a login (%s), and kept as granted", async (flow) => {
    const { agent, issuer, mcp, store } = await startScene();
    const said: string[] = [];
    const client = agent({ flow, onProgress: ({ subject, text }) => said.push(`${subject}: ${text}`) });
    issuer.tokenAnswer = { scope: "read" };
    await client.login(mcp.url, { scope: "read" });
    expect(said).toEqual([]);
    issuer.tokenAnswer = { scope: "admin read root" };
    await client.login(mcp.url, { scope: "read" });
    expect(said).toEqual([
      `login: warning: the token has more scopes than requested: "${issuer.issuer}" granted "admin root" beside "read" (RFC 6749 section 3.3)`,
    ]);
    expect((await agent({ flow }).login(mcp.url, { scope: "read" })).scope).toBe("admin read root");
    expect(await store.list()).toMatchObject([{ tokens: { scope: "admin read root" } }]);
  });
});

describe("the scopes of a login", () => {
  it.each<[string, Sources, string[]]>([
    ["the caller's before all", { explicit: ["x"], challenged: ["c"], resource: ["r"] }, ["x"]],
    ["the challenge's before the resource's", { challenged: ["c"], resource: ["r", "s"] }, ["c"]],
    ["all of the resource's", { resource: ["r", "s"] }, ["r", "s"]],
    ["the resource's where the challenge is empty", { challenged: [], resource: ["r"] }, ["r"]],
    ["none where no source names any", {}, []],
    ["none where only the authorization server lists some", { server: ["a", "b"] }, []],
  ])("[23] asks for %s (2025-11-25)", (_what, sources, scopes) => {
    expect(choose(sources)).toEqual(scopes);
  });

  it("[24] takes the challenge's scopes as they are, whether the resource lists them or not (2025-11-25)", () => {
    expect(choose({ challenged: ["new", "b"], resource: ["a", "b"] })).toEqual(["new", "b"]);
  });

  it("[37] adds the scopes that were requested before, each scope once (2026-07-28)", () => {
    expect(choose({ previous: ["a", "b"], challenged: ["b", "c"] })).toEqual(["a", "b", "c"]);
    expect(choose({ previous: ["a"], explicit: ["c", "a"] })).toEqual(["a", "c"]);
  });

  it("[35] asks for offline_access exactly where the authorization server lists it (2026-07-28)", () => {
    const scopes = fc.array(fc.constantFrom("a", "b", "offline_access"));
    const source = fc.option(scopes, { nil: undefined });
    fc.assert(
      fc.property(source, source, source, source, (challenged, resource, server, previous) => {
        const chosen = choose({ challenged, resource, server, previous } as Sources);
        expect(chosen.includes("offline_access")).toBe(server?.includes("offline_access") === true);
        expect(new Set(chosen).size).toBe(chosen.length);
      }),
    );
  });

  it("neither adds offline_access to the caller's own scopes nor takes it out", () => {
    expect(choose({ explicit: ["a"], server: ["offline_access"] })).toEqual(["a"]);
    expect(choose({ explicit: ["a", "offline_access"], server: ["a"] })).toEqual(["a", "offline_access"]);
  });
});

it("scopes are split at blanks, and joined once each", () => {
  expect([undefined, "", " a  b "].map(splitScope)).toEqual([[], [], ["a", "b"]]);
  expect(unionScopes("a b", undefined, "b c")).toBe("a b c");
  expect(unionScopes(undefined, " ")).toBeUndefined();
});
