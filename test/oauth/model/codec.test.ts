import { expect, it } from "vitest";
import { parseStrictJson } from "../../../src/http/strict-json.js";
import { CodecError, decode, decodeGrant, encodeGrant, membersOf } from "../../../src/oauth/model/codec.js";
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
    const grant = madeGrant({ client: madeClient({ authMethod }) });
    expect(decodeGrant(encodeGrant(grant)).client.authMethod).toBe(authMethod);
  },
);

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
      const strict = outcome(() => membersOf(parseStrictJson(text), "grant"));
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
