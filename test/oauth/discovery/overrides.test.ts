import { describe, expect, it } from "vitest";
import { type IssuerExpectation, isRemembered, issuerCandidates } from "../../../src/oauth/discovery/issuer-choice.js";
import {
  acceptedTypeFor,
  foreignFirstEndpoint,
  hasOverride,
  loginNeeds,
  type OverrideContext,
  overridesFor,
  readOnce,
  requestParamsFor,
  resourceFor,
  traceOnce,
  trustedNames,
} from "../../../src/oauth/discovery/overrides.js";
import type { TraceEntry } from "../../../src/oauth/http/http.js";
import type { Discovered } from "../../../src/oauth/model/metadata.js";
import { serverMetadata } from "../../helpers/issuer.js";

const MCP = "https://mcp.example/mcp";
const AS = "https://as.example/pool";
const remembered: NonNullable<OverrideContext["remembered"]> = {
  issuer: AS,
  namedIssuer: undefined,
  overrides: ["allowMissingPkceMetadata", "resource"],
  acceptedTokenType: "user",
  resource: "https://chosen.example",
  authorizationParams: { a: "1", b: "2" },
  needsConsent: true,
};
const contextOf = (over: Partial<OverrideContext> = {}): OverrideContext => ({ overrides: {}, remembered, ...over });
const found = (over: object = {}) =>
  ({ server: MCP, resource: { resource: "https://mcp.example" }, issuer: { issuer: AS }, ...over }) as Discovered;

describe("what an earlier login allowed", () => {
  const other = { issuer: "https://other.example" };

  it("stays in force for its issuer, with what this call allows", () => {
    expect(overridesFor({ issuer: AS }, contextOf())).toEqual(["allowMissingPkceMetadata", "resource"]);
    expect(overridesFor(other, contextOf())).toEqual([]);
    const names = [
      "allowMissingPkceMetadata",
      "allowCrossOriginMetadata",
      "allowCrossOriginEndpoints",
      "allowPrivateNetwork",
      "legacyDiscovery",
    ] as const;
    const overrides = Object.fromEntries(names.map((name) => [name, true]));
    expect(overridesFor(other, contextOf({ overrides }))).toEqual(names);
    expect(overridesFor(other, contextOf({ resource: "https://r.example" }))).toEqual(["resource"]);
    expect(overridesFor(other, contextOf({ overrides: { legacyDiscovery: false } }))).toEqual([]);
  });

  it("is the resource: that of the call, of the earlier login, of the metadata, or the server", () => {
    expect(resourceFor(found(), contextOf({ resource: "https://r.example" }))).toBe("https://r.example");
    expect(resourceFor(found(), contextOf())).toBe("https://chosen.example");
    expect(resourceFor(found({ issuer: other }), contextOf())).toBe("https://mcp.example");
    const own = { ...remembered, overrides: [] };
    expect(resourceFor(found(), contextOf({ remembered: own }))).toBe("https://mcp.example");
    expect(resourceFor(found({ resource: undefined, issuer: other }), contextOf())).toBe(MCP);
  });

  it("is the type of the token, and the parameters of the request", () => {
    expect(acceptedTypeFor({ issuer: AS }, contextOf())).toBe("user");
    expect(acceptedTypeFor({ issuer: AS }, contextOf({ overrides: { acceptTokenType: "mine" } }))).toBe("mine");
    expect(acceptedTypeFor(other, contextOf())).toBeUndefined();
    expect(requestParamsFor({ issuer: AS }, contextOf({ authorizationParams: { b: "3", c: "4" } }))).toEqual({
      needsConsent: true,
      authorizationParams: { a: "1", b: "3", c: "4" },
    });
    expect(requestParamsFor(other, contextOf())).toEqual({ needsConsent: undefined, authorizationParams: undefined });
  });

  it("is what it was, at whatever issuer", () => {
    expect(hasOverride("allowMissingPkceMetadata", contextOf())).toBe(true);
    expect(hasOverride("legacyDiscovery", contextOf())).toBe(false);
    expect(hasOverride("legacyDiscovery", contextOf({ overrides: { legacyDiscovery: true } }))).toBe(true);
    expect(hasOverride("legacyDiscovery", contextOf({ remembered: undefined }))).toBe(false);
  });
});

describe("the issuers that metadata may name", () => {
  const metadata = (over: object = {}) => ({
    resource: MCP,
    authorizationServers: ["https://new.example", AS],
    scopesSupported: undefined,
    dpopRequired: false,
    url: "https://mcp.example/.well-known/oauth-protected-resource/mcp",
    ...over,
  });
  const foreign = metadata({ url: "https://docs.example/prm" });
  const parent = metadata({ resource: "https://mcp.example", url: "https://mcp.example/prm" });

  it("are all where the metadata are the server's own", () => {
    expect(trustedNames(contextOf(), MCP, metadata())).toEqual(["https://new.example", AS]);
  });

  it.each([
    ["on another origin", foreign],
    ["of a parent that an earlier login accepted", parent],
  ])("are those of the earlier login in metadata %s", (_what, document) => {
    expect(trustedNames(contextOf(), MCP, document)).toEqual([AS]);
    const named = { ...remembered, namedIssuer: "https://new.example" };
    expect(trustedNames(contextOf({ remembered: named }), MCP, document)).toEqual(["https://new.example"]);
  });

  it("are all where this call allows it", () => {
    const overrides = { allowCrossOriginMetadata: true };
    expect(trustedNames(contextOf({ overrides }), MCP, foreign)).toHaveLength(2);
    expect(trustedNames(contextOf({ resource: "https://mcp.example" }), MCP, parent)).toHaveLength(2);
  });

  it.each<[string, object, string, object]>([
    [
      "on another origin",
      { ...foreign, authorizationServers: ["https://new.example"] },
      "allowed metadata on another origin (RFC 9728 section 7.3)",
      { action: "allow", option: "allowCrossOriginMetadata" },
    ],
    [
      "of a parent",
      { ...parent, authorizationServers: ["https://new.example"] },
      'accepted the resource "https://mcp.example" (RFC 9728 section 3.3)',
      { action: "allow", option: "resource", value: "https://mcp.example" },
    ],
  ])("are refused in metadata %s where they name only others", (_what, document, what, remedy) => {
    expect(() => trustedNames(contextOf(), MCP, document as never)).toThrow(
      expect.objectContaining({
        code: "bad_address",
        message: expect.stringContaining(`must name "${AS}", the issuer for which an earlier login ${what}`),
        remedy,
      }),
    );
  });
});

describe("the endpoint that a login begins at", () => {
  const elsewhere = "https://token.example/token";

  it("is of interest where the token endpoint has another origin", () => {
    expect(foreignFirstEndpoint(serverMetadata(), undefined)).toBeUndefined();
    expect(foreignFirstEndpoint(serverMetadata({ tokenEndpoint: elsewhere }), "browser")).toEqual({
      field: "authorization_endpoint",
      address: `${AS}/authorize`,
      unless: ", unless authorization_response_iss_parameter_supported is true",
    });
    const promises = serverMetadata({ tokenEndpoint: elsewhere, promisesIss: true });
    expect(foreignFirstEndpoint(promises, "browser")).toBeUndefined();
    expect(foreignFirstEndpoint(promises, "device")).toBeUndefined();
    const deviceAuthorizationEndpoint = `${AS}/device`;
    expect(foreignFirstEndpoint({ ...promises, deviceAuthorizationEndpoint }, "device")).toEqual({
      field: "device_authorization_endpoint",
      address: deviceAuthorizationEndpoint,
      unless: "",
    });
    expect(foreignFirstEndpoint(serverMetadata({ deviceAuthorizationEndpoint }), "device")).toBeUndefined();
  });

  it("needs an option where no user confirms it, and no earlier login allowed it", () => {
    const issuer = serverMetadata({ tokenEndpoint: elsewhere });
    const optionOf = (...call: Parameters<typeof loginNeeds>) => loginNeeds(...call).option;
    expect(optionOf(issuer, contextOf())).toBe("allowCrossOriginEndpoints");
    expect(optionOf(issuer, { ...contextOf(), confirmsEndpoints: true })).toBeUndefined();
    const overrides = { allowCrossOriginEndpoints: true };
    expect(optionOf(issuer, contextOf({ overrides }))).toBeUndefined();
    const allowed = { ...remembered, overrides: ["allowCrossOriginEndpoints"] };
    expect(optionOf(issuer, contextOf({ remembered: allowed }))).toBeUndefined();
    expect(optionOf(serverMetadata(), contextOf())).toBeUndefined();
    const { authorizationEndpoint: _, ...machine } = issuer;
    expect(optionOf(machine, contextOf())).toBeUndefined();
  });
});

describe("the issuers that may be used", () => {
  const NAMED = ["https://a.example", "https://b.example"];
  const policy = { bounds: () => true };
  const candidates = (context: Partial<IssuerExpectation>, named: readonly string[] = NAMED) =>
    issuerCandidates({ remembered: undefined, ...context }, named, { from: "https://mcp.example/prm", policy });
  const X = "https://x.example";
  const exception = { issuer: X, namedIssuer: "https://b.example" };

  it("are all that the server names, or the one that is expected", () => {
    expect(candidates({})).toEqual(NAMED.map((issuer) => ({ issuer })));
    expect(candidates({ expectedIssuer: "https://b.example/" })).toEqual([{ issuer: "https://b.example" }]);
  });

  it("are the chosen one with its own metadata, then what the server names where that asserts it", () => {
    expect(candidates({ expectedIssuer: X, chosenIssuer: X })).toEqual([
      { issuer: X, namedIssuer: "https://a.example" },
      { issuer: X, namedIssuer: "https://a.example", assertsIssuer: true },
      { issuer: X, namedIssuer: "https://b.example", assertsIssuer: true },
    ]);
  });

  it("are those of the exception that an earlier login made, and only that", () => {
    const expected = [
      { issuer: X, namedIssuer: "https://b.example" },
      { issuer: X, namedIssuer: "https://b.example", assertsIssuer: true },
    ];
    expect(candidates({ remembered: exception })).toEqual(expected);
    expect(candidates({ remembered: exception, expectedIssuer: X })).toEqual(expected);
    expect(candidates({ remembered: exception }, [X])).toEqual([{ issuer: X }]);
  });

  it("are none where the server names others than the exception was made for", () => {
    for (const [named, shown] of [
      [["https://c.example"], '"https://c.example"'],
      [["https://c.example", "https://d.example"], `"${JSON.stringify(["https://c.example", "https://d.example"])}"`],
    ] as const)
      expect(() => candidates({ remembered: exception }, named)).toThrow(
        expect.objectContaining({
          code: "issuer_changed",
          class: "auth",
          message: `the login uses "${X}" where the server named "https://b.example", but "https://mcp.example/prm" now names ${shown}`,
          hint: "if you trust the new issuer, log out first, or name it with the option issuer",
          remedy: { action: "configure", option: "issuer", value: "https://c.example" },
        }),
      );
  });

  it("are none where the server does not name the one of the client, and the remedy names it unless it gets a secret", () => {
    const mismatch = (value: string | undefined) =>
      expect.objectContaining({
        code: "issuer_mismatch",
        message: `authorization_servers "${JSON.stringify(NAMED)}" (from "https://mcp.example/prm") must name "${X}", the issuer that is configured`,
        remedy: { action: "configure", option: "issuer", value },
      });
    expect(() => candidates({ expectedIssuer: X })).toThrow(mismatch(X));
    expect(() => candidates({ expectedIssuer: X, sendsCredential: true })).toThrow(mismatch(undefined));
    expect(() => candidates({ expectedIssuer: X }, ["https://a.example"])).toThrow(
      'authorization_servers "https://a.example" (from',
    );
  });

  it.each(["https://x.example?a", "https://x.example/{tenant}"])("are none where the chosen one is %s", (issuer) => {
    expect(() => candidates({ expectedIssuer: issuer, chosenIssuer: issuer })).toThrow(
      expect.objectContaining({
        code: "bad_address",
        message: `issuer "${issuer}" (from "the option issuer") must have neither a query (RFC 8414 section 2) nor a part in braces to be replaced`,
      }),
    );
  });

  it.each([
    [undefined, { issuer: X }, false],
    [{ issuer: X, namedIssuer: undefined }, { issuer: X }, true],
    [{ issuer: X, namedIssuer: undefined }, { issuer: AS }, false],
    [exception, { issuer: X }, false],
    [exception, { issuer: X, namedIssuer: "https://b.example" }, true],
    [exception, { issuer: X, namedIssuer: "https://a.example" }, false],
    [exception, { issuer: AS, namedIssuer: "https://b.example" }, false],
    [{ issuer: X, namedIssuer: undefined }, { issuer: X, namedIssuer: "https://b.example" }, false],
  ])("%j is an earlier login at %j: %s", (before, candidate, expected) => {
    expect(isRemembered({ remembered: before }, candidate)).toBe(expected);
  });
});

describe("a second look at a server", () => {
  it("reads each document once", async () => {
    let reads = 0;
    const { document } = readOnce({ document: async (url) => ({ url, nth: ++reads }) as never });
    const [one, again, other] = [document("a", undefined), document("a", undefined), document("b", undefined)];
    expect(one).toBe(again);
    expect([await one, await other]).toEqual([
      { url: "a", nth: 1 },
      { url: "b", nth: 2 },
    ]);
  });

  it("traces what is new alone, and that it was not used", () => {
    const entries: TraceEntry[] = [];
    const { trace, traceUnused } = traceOnce((entry) => entries.push(entry));
    const entry = (url: string, used: boolean) =>
      ({ step: "server metadata", method: "GET", url, used, why: "x" }) as const;
    trace(entry("a", true));
    traceUnused(entry("a", true));
    traceUnused(entry("b", true));
    traceUnused(entry("c", false));
    traceUnused(entry("b", true));
    const why = "read to find out what else is refused, and not used";
    expect(entries).toEqual([entry("a", true), { ...entry("b", false), why }, entry("c", false)]);
  });
});
