import { describe, expect, it } from "vitest";
import type { TraceEntry } from "../../../src/oauth/http/http.js";
import {
  checkTokenType,
  isAcceptableTokenType,
  readClaims,
  usableIdToken,
} from "../../../src/oauth/token/token-checks.js";
import { unsignedJwt } from "../../helpers/client-keys.js";

const URL = "https://as.example/token";
const part = (value: unknown) =>
  btoa(JSON.stringify(value)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

it.each([
  ["user", true],
  ["a", true],
  ["A.b-c_1", true],
  ["x".repeat(40), true],
  ["x".repeat(41), false],
  ["1a", false],
  ["", false],
  ["a b", false],
  ["-a", false],
  ["a\n", false],
  ["Bearer", false],
  ["dpop", false],
  ["N_A", false],
])("the type %j may be accepted as one of bearer tokens: %s", (type, expected) => {
  expect(isAcceptableTokenType(type)).toBe(expected);
});

describe("the type of a token", () => {
  const check = (value: string, isBound = false, acceptedTokenType?: string) =>
    checkTokenType(value, { tokenEndpoint: URL, isBound, acceptedTokenType });

  it.each([
    ["Bearer", false, undefined],
    ["BEARER", false, undefined],
    ["DPoP", true, undefined],
    ["User", false, "user"],
    ["user", false, "USER"],
  ])("%s is taken (bound: %s, accepted: %s)", (value, isBound, accepted) => {
    expect(() => check(value, isBound, accepted)).not.toThrow();
  });

  it.each([
    ["mac", false, undefined, 'must be "Bearer" (RFC 6749 section 5.1)', "mac"],
    ["mac", false, "user", 'must be "Bearer" (RFC 6749 section 5.1)', "mac"],
    ["dpop", false, "dpop", 'must be "Bearer" (RFC 6749 section 5.1)', undefined],
    ["Bearer", true, undefined, 'must be "DPoP" (RFC 9449 section 5)', undefined],
    ["user", true, "user", 'must be "DPoP" (RFC 9449 section 5)', undefined],
  ])("%s is refused (bound: %s, accepted: %s)", (value, isBound, accepted, rule, override) => {
    expect(() => check(value, isBound, accepted)).toThrow(
      expect.objectContaining({
        code: "bad_token_answer",
        class: "refused",
        message: `token_type "${value}" (from "${URL}") ${rule}`,
        ...(override !== undefined && { remedy: { action: "allow", option: "acceptTokenType", value: override } }),
      }),
    );
  });
});

describe("a token", () => {
  it("is read where it is a JWT, with any letter in it", async () => {
    const claims = { sub: "ä>?ÿ", list: [1] };
    expect(readClaims(await unsignedJwt(claims))).toEqual({ header: { alg: "HS256" }, claims });
    expect(readClaims(`${part({ a: "?>~" })}.${part({})}.`)).toEqual({ header: { a: "?>~" }, claims: {} });
  });

  it.each([
    "",
    "opaque",
    `${part({})}.${part({})}`,
    `${part({})}.${part({})}.x.y`,
    `${part([])}.${part({})}.x`,
    `${part({})}.${part("x")}.x`,
    `${part({})}.!.x`,
    `.${part({})}.x`,
    `${part({})}.${btoa('{"a":1,"a":2}')}.x`,
    `${part({})}.${btoa('{"a":"\xff"}')}.x`,
  ])("is not read where it is none: %s", (token) => {
    expect(readClaims(token)).toBeUndefined();
  });
});

describe("an id token", () => {
  const GOOD = { iss: "https://as.example", aud: "c" };
  const expected = { issuer: "https://as.example", clientId: "c", tokenEndpoint: URL };
  const jwt = (claims: object, header: object = { alg: "ES256" }) => `${part(header)}.${part(claims)}.signature`;

  it.each([
    [jwt(GOOD), undefined],
    [jwt({ ...GOOD, aud: ["a", "c"], azp: "c" }), undefined],
    [jwt({ ...GOOD, nonce: "n" }), "n"],
    [jwt({ ...GOOD, nonce: "n" }), undefined],
  ])("is used: %s", (token, nonce) => {
    const entries: TraceEntry[] = [];
    const trace = (entry: TraceEntry) => entries.push(entry);
    expect(usableIdToken(token, { ...expected, nonce, trace })).toBe(token);
    expect(entries).toEqual([]);
  });

  const ISS = 'its iss is not "https://as.example"';
  const AUD = 'it is not for the client "c"';

  it.each([
    [7, "it is not a signed JWT"],
    ["opaque", "it is not a signed JWT"],
    [`${jwt(GOOD)}${"x".repeat(65_536)}`, "it is not a signed JWT"],
    [jwt(GOOD, {}), "it is not signed"],
    [jwt(GOOD, { alg: "None" }), "it is not signed"],
    [jwt({ ...GOOD, iss: "https://other.example" }), ISS],
    [jwt({ ...GOOD, aud: "other" }), AUD],
    [jwt({ ...GOOD, aud: undefined }), AUD],
    [jwt({ ...GOOD, azp: "other" }), AUD],
    [jwt({ ...GOOD, nonce: "other" }), "its nonce is not that of the request"],
    [jwt(GOOD), "its nonce is not that of the request"],
  ])("is ignored with the reason, or refused where it is required: %#", (token, why) => {
    const entries: TraceEntry[] = [];
    const trace = (entry: TraceEntry) => entries.push(entry);
    const details = { ...expected, nonce: "n", trace };
    expect(usableIdToken(token, details)).toBeUndefined();
    expect(entries).toEqual([
      { step: "token", method: "POST", url: URL, used: true, why: `the id_token of the response is ignored: ${why}` },
    ]);
    expect(() => usableIdToken(token, { ...details, requiresIdToken: true })).toThrow(
      expect.objectContaining({
        code: "bad_token_answer",
        message: `id_token "(not shown)" (from "${URL}") is required for a login at an identity provider, but ${why}`,
      }),
    );
  });

  it("of 64 KiB is read", () => {
    const head = `${part({ alg: "ES256" })}.${part(GOOD)}.`;
    const longest = head.padEnd(65_536, "x");
    expect(usableIdToken(longest, expected)).toBe(longest);
  });

  it("that is not there is no loss, unless it is required", () => {
    const entries: TraceEntry[] = [];
    expect(usableIdToken(undefined, { ...expected, trace: (entry) => entries.push(entry) })).toBeUndefined();
    expect(entries).toEqual([]);
    expect(() => usableIdToken(undefined, { ...expected, requiresIdToken: true })).toThrow(
      expect.objectContaining({
        message: `id_token (from "${URL}") is missing, and is required for a login at an identity provider`,
      }),
    );
  });
});
