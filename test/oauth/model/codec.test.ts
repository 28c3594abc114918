import { expect, it } from "vitest";
import { parseStrictJson } from "../../../src/http/strict-json.js";
import {
  CodecError,
  decode,
  decodeBinding,
  decodeClient,
  decodeGrant,
  encodeBinding,
  encodeClient,
  encodeGrant,
  readRequiredStrings,
  readUrl,
  requireMembers,
} from "../../../src/oauth/model/codec.js";
import type { Grant } from "../../../src/oauth/model/grant.js";
import { BOUND_BY } from "../../../src/oauth/model/grant-store.js";
import { Secret } from "../../../src/redact.js";
import { madeClient, madeGrant, plainGrant } from "../../helpers/grant.js";
import { fc } from "../../helpers/properties.js";

it("reads text that another program printed like its own", () => {
  const text = encodeGrant(madeGrant());
  const [own, other] = [decodeGrant(text), decodeGrant(JSON.stringify(JSON.parse(text)))];
  expect(plainGrant(own)).toEqual(plainGrant(madeGrant()));
  expect(plainGrant(other)).toEqual(plainGrant(own));
});

it.each(["none", "client_secret_basic", "client_secret_post", "private_key_jwt"] as const)(
  "reads a client that authenticates with %s",
  (authMethod) => {
    const client = madeClient({ authMethod, alternateMethod: "client_secret_post" });
    const grant = madeGrant({ client });
    expect(decodeGrant(encodeGrant(grant)).client).toMatchObject({ authMethod, alternateMethod: "client_secret_post" });
  },
);

/** A grant with every member that a grant can have. */
const FULL: Grant = madeGrant({
  account: "alice",
  acceptedTokenType: "user",
  authorizationParams: { prompt: "", access_type: "offline" },
  needsConsent: true,
  exchanges: false,
  namedIssuer: "https://named.example",
  overrides: ["legacyDiscovery"],
  proofKey: new Secret("key-1"),
  usedAt: 7,
  refusals: [1, 2.5],
  lostRefresh: { at: 1, code: "timeout", generation: 2 },
  retired: { at: 3, reason: "invalid_grant" },
  client: madeClient({ clientName: "name", registeredAt: [1, 2], isRefused: true, secretExpiresAt: 5 }),
});

it("reads every member that it wrote, and no member that it did not write", () => {
  expect(plainGrant(decodeGrant(encodeGrant(FULL)))).toEqual(plainGrant(FULL));
  const least = JSON.parse(encodeGrant(decodeGrant(encodeGrant(madeGrant())))) as Grant;
  for (const name of ["usedAt", "retired", "recipe", "lostRefresh"]) expect(name in least).toBe(false);
  for (const name of ["alternateMethod", "clientName", "registeredAt", "isRefused"])
    expect(name in least.client).toBe(false);
  expect(encodeGrant(FULL)).toBe(`${JSON.stringify(JSON.parse(encodeGrant(FULL)), null, 2)}\n`);
  expect(JSON.parse(encodeGrant(FULL))).toMatchObject({ schema: 1, kind: "grant", proofKey: "key-1" });
});

it("reads a client and a binding as they were written, and neither as the other", () => {
  for (const client of [madeClient(), FULL.client, madeClient({ clientSecret: undefined, redirectUri: undefined })]) {
    const read = decodeClient(encodeClient(client));
    expect({ ...read, clientSecret: read.clientSecret?.reveal() }).toEqual({
      ...client,
      clientSecret: client.clientSecret?.reveal(),
    });
  }
  for (const boundBy of BOUND_BY) {
    const binding = { profile: "p", clientId: "c", issuer: "https://as.example", boundBy, boundAt: 3 };
    expect(decodeBinding(encodeBinding(binding))).toEqual(binding);
    expect(() => decodeClient(encodeBinding(binding))).toThrow("it contains no client");
  }
  expect(() => decodeGrant(encodeClient(madeClient()))).toThrow(new CodecError("it contains no grant"));
  expect(() => decodeBinding('{"schema":1,"kind":"binding","boundBy":"me"}')).toThrow("boundBy is unknown");
});

it("keeps what a newer version wrote about the same login, at every level, and about no other", () => {
  const newer = JSON.parse(encodeGrant(FULL)) as { tokens: object; endpoints: object };
  const before = JSON.stringify({ ...newer, schema: 1, fresh: 1, tokens: { ...newer.tokens, deep: [2] } });
  const next = { ...FULL, generation: 9 };
  expect(JSON.parse(encodeGrant(next, before))).toEqual({
    ...JSON.parse(encodeGrant(next)),
    fresh: 1,
    tokens: { ...JSON.parse(encodeGrant(next)).tokens, deep: [2] },
  });
  for (const other of [
    { ...next, signedInAt: 1 },
    { ...next, issuer: "https://other.example" },
  ])
    expect(encodeGrant(other, before)).toBe(encodeGrant(other));
});

it.each<[string, unknown, string]>([
  ["schema", 2, 'its schema is "2", and this version reads 1'],
  ["kind", "client", "it contains no grant"],
  ["profile", 7, "profile is not a string"],
  ["account", 7, "account is not a string"],
  ["endpoints", [], "endpoints is not an object"],
  ["endpoints.token", undefined, "token is not a string"],
  ["endpoints.jwks", 7, "jwks is not a string"],
  ["client", "c", "client is not an object"],
  ["client.authMethod", "x", "authMethod is unknown"],
  ["client.alternateMethod", "none", "alternateMethod is unknown"],
  ["client.source", "x", "source is unknown"],
  ["client.secretExpiresAt", "x", "secretExpiresAt is not a number"],
  ["client.registeredAt", 7, "registeredAt is not a list of numbers"],
  ["client.isRefused", "no", "isRefused is neither true nor false"],
  ["tokens.accessToken", undefined, "accessToken is not a string"],
  ["tokens.refreshToken", 7, "refreshToken is not a string"],
  ["tokens.expiresAt", "x", "expiresAt is not a number"],
  ["refusals", ["x"], "refusals is not a list of numbers"],
  ["overrides", [7], "overrides is not a list of strings"],
  ["overrides", "x", "overrides is not a list of strings"],
  ["needsConsent", 1, "needsConsent is neither true nor false"],
  ["authorizationParams", [], "authorizationParams is not an object"],
  ["authorizationParams", { a: 1 }, "a is not a string"],
  ["retired", 7, "retired is not an object"],
  ["retired.reason", 7, "reason is not a string"],
  ["lostRefresh.code", 7, "code is not a string"],
])("says what is wrong with a grant whose %s is %j", (path, value, message) => {
  const members = JSON.parse(encodeGrant(FULL)) as Record<string, Record<string, unknown>>;
  const [outer = "", inner] = path.split(".");
  if (inner === undefined) Object.assign(members, { [outer]: value });
  else Object.assign(members[outer] ?? {}, { [inner]: value });
  expect(() => decodeGrant(JSON.stringify(members))).toThrow(new CodecError(message));
});

it("reads a grant without the members that have a default", () => {
  const members = JSON.parse(encodeGrant(FULL)) as Record<string, unknown>;
  for (const name of ["overrides", "refusals", "signedInAt", "generation", "retired", "lostRefresh", "usedAt"])
    delete members[name];
  const read = decodeGrant(JSON.stringify(members));
  expect(read).toMatchObject({ overrides: [], refusals: [], signedInAt: 0, generation: 0 });
  expect([read.retired, read.lostRefresh, read.usedAt]).toEqual([undefined, undefined, undefined]);
});

it("reads addresses and required lists, or says what they are not", () => {
  expect(readUrl({ a: "https://x.example" }, "a")).toBe("https://x.example");
  expect(() => readUrl({ a: "x" }, "a")).toThrow("a is not an address");
  expect(() => readRequiredStrings({}, "a")).toThrow("a is not a list of strings");
});

it.each<[string, (text: string) => string, string]>([
  ["a member twice", (text) => text.replace("{\n", '{\n  "schema": 1,\n'), "appears twice"],
  ["a number that no double can hold", (text) => text.replace("2000000000000", "1e999"), "too large"],
])("refuses %s in text of its own form", (_what, spoil, message) => {
  const text = spoil(encodeGrant(madeGrant()));
  expect(() => decodeGrant(text)).toThrow(CodecError);
  expect(() => decodeGrant(text)).toThrow(message);
});

it("reads as many levels as the strict parser, in text of its own form too", () => {
  const nested = (levels: number): unknown => (levels === 0 ? "end" : [nested(levels - 1)]);
  const at = (levels: number) => encodeGrant(madeGrant({ extra: nested(levels) } as object));
  expect(decodeGrant(at(31))).toBeDefined();
  for (const text of [at(32), JSON.stringify(JSON.parse(at(32)))]) {
    expect(() => decodeGrant(text)).toThrow("nested deeper than 32");
  }
});

const NAMES = ["a", "b", "c", "1", "", "schema", "__proto__", "constructor", "\\u0061", "\\\\", "\\u005f_proto__"];
const SCALARS = ["0", "-0", "1.50", "1E5", "1e999", "-1e999", "1e-999", "true", "null"];
const STRINGS = ["", "a", "é", "\ud800", "\\u0061", '\\"', "\\\\", "__proto__", "{}[]:,"];

/** JSON texts, of which some have duplicate names, too many levels, too large numbers or another defect. */
function documents(): fc.Arbitrary<string> {
  const quoted = (texts: string[]) => fc.constantFrom(...texts).map((text) => `"${text}"`);
  const space = fc.constantFrom("", "", " ", "\n  ");
  const { value } = fc.letrec<{ value: string; object: string; array: string; deep: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.oneof({ weight: 4, arbitrary: quoted(STRINGS) }, { weight: 3, arbitrary: fc.constantFrom(...SCALARS) }),
      tie("object"),
      tie("array"),
      tie("deep"),
    ),
    object: fc.array(fc.tuple(quoted(NAMES), space, tie("value")), { maxLength: 4 }).map((members) => {
      return `{${members.map(([name, gap, text]) => `${name}:${gap}${text}`).join(",")}}`;
    }),
    array: fc
      .array(fc.tuple(space, tie("value")), { maxLength: 3 })
      .map((items) => `[${items.map((item) => item.join("")).join(",")}]`),
    deep: fc
      .tuple(fc.integer({ min: 27, max: 34 }), tie("value"))
      .map(([levels, text]) => "[".repeat(levels) + text + "]".repeat(levels)),
  }));
  const whole = fc.array(fc.tuple(quoted(NAMES), value), { maxLength: 3 }).map((members) => {
    return `{"schema":1,"kind":"grant"${members.map(([name, text]) => `,${name}:${text}`).join("")}}`;
  });
  const spoilt = fc
    .tuple(whole, fc.nat(), fc.constantFrom('"', "\\", ",", "}", "\u0001", " "))
    .map(([text, at, mark]) => text.slice(0, at % text.length) + mark + text.slice(at % text.length));
  return fc.oneof({ weight: 5, arbitrary: whole }, { weight: 1, arbitrary: spoilt });
}

function outcome(parse: () => unknown): string {
  try {
    return JSON.stringify(parse());
  } catch (error) {
    return String((error as Error).message).replace(/^it is not valid JSON: /, "");
  }
}

it("reads and refuses what the strict parser does, for the same reason", () => {
  fc.assert(
    fc.property(documents(), (text) => {
      const strict = outcome(() => requireMembers(parseStrictJson(text), "grant"));
      expect(outcome(() => decode(text, "grant"))).toBe(strict);
    }),
    { numRuns: 3000 },
  );
});

it.each([
  ["twice the same name, also with the same value", '{"schema":1,"kind":"grant","a":"x","a":"x"}'],
  ["a name twice at the bottom", '{"schema":1,"kind":"grant","a":[{"b":1,"b":{}}]}'],
  ["33 levels without line breaks", `{"schema":1,"kind":"grant","a":${"[".repeat(33)}${"]".repeat(33)}}`],
  ["a large number in a list", '{"schema":1,"kind":"grant","a":[1e999]}'],
])("refuses %s", (_what, text) => {
  expect(() => decode(text, "grant")).toThrow(/appears twice|nested deeper|too large/);
});

it.each(["__proto__", "\\u005f_proto__"])("keeps a member of the name %s as a member", (name) => {
  const members = decode(`{"schema":1,"kind":"grant","${name}":{"isAdmin":true}}`, "grant");
  expect(Object.keys(members)).toContain("__proto__");
  expect(members["isAdmin"]).toBeUndefined();
  expect(Object.getPrototypeOf(members)).toBeNull();
});
