import { describe, expect, it } from "vitest";
import { deleteNulls, isJsonObject, parseAnyJson, parseStrictJson } from "../../src/http/strict-json.js";
import { fc } from "../helpers/properties.js";

describe("strict JSON", () => {
  it("reads whatever JSON.stringify writes", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.nat(3), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(JSON.stringify(parseStrictJson(text))).toBe(JSON.stringify(value));
        expect(JSON.stringify(parseAnyJson(text))).toBe(JSON.stringify(value));
      }),
    );
  });

  it("refuses every text that JSON.parse refuses", () => {
    const text = fc.string({ unit: fc.constantFrom(...'{}[]",:\\ \n01-+.eEtruefalsn\u0001'.split("")), maxLength: 12 });
    fc.assert(
      fc.property(text, (candidate) => {
        let valid = true;
        try {
          JSON.parse(candidate);
        } catch {
          valid = false;
        }
        if (valid) return;
        expect(() => parseStrictJson(candidate)).toThrow();
      }),
      { numRuns: 2000 },
    );
  });

  it.each([
    ['{"a":1,\n "a":2}', 'the name "a" appears twice in one object (line 2, column 2)'],
    ['{"a":{"b":1,"\\u0062":2}}', 'the name "b" appears twice'],
    ["[".repeat(40), "nested deeper than 32"],
    [`${"[".repeat(33)}1${"]".repeat(33)}`, "nested deeper than 32"],
    [`${'{"a":'.repeat(33)}1${"}".repeat(33)}`, "nested deeper than 32"],
    ["1e400", "too large"],
    ["[1,]", "a value was expected (line 1, column 4)"],
    ['{"a":1} x', "something follows"],
    ['{"a" 1}', '":" was expected'],
    ["[1 2]", '"," or "]" was expected'],
    ['{"a":1 "b"}', '"," or "}" was expected'],
    ["{1:1}", "a string was expected"],
    ['{"a":', "ends too early"],
  ])("refuses %j and says where", (text, message) => {
    expect(() => parseStrictJson(text)).toThrow(message);
  });

  // Each first text makes JSON.parse of Node.js 24 and 26 read a name of the second one wrong (nodejs/node#63785).
  it.each([
    ['{"b":[],"\\\\":0}', '{"b":1,"\\u0062":2}'],
    ['{"b":[],"\\\\u0062":0}', '{"b":1,"\\u0062" \n:2}'],
    ['{"x":0,"b":[],"\\\\":0}', '{"x":"\\"","b":1,"\\u0062":2}'],
  ])("sees a name that appears twice after %s", (first, text) => {
    JSON.parse(first);
    expect(() => parseStrictJson(text)).toThrow('the name "b" appears twice');
  });

  it.each([
    ['{"h":[],"\\\\":0}', '{"h":1,"\\"":2}', '"'],
    ['{"h":[],"\\\\":0}', '{"h":1,"\\n" :2}', "\n"],
    ['{"h":[],"\\\\u0041":0}', '{"h":"\\\\","\\u0041":2}', "A"],
  ])("reads the names that are written after %s", (first, text, name) => {
    JSON.parse(first);
    const value = parseAnyJson(text) as object;
    expect([Object.keys(value)[1], Object.getPrototypeOf(value)]).toEqual([name, Object.prototype]);
    expect(Object.keys(parseStrictJson(text) as object)[1]).toBe(name);
  });

  it("reads what is not strict, and refuses what is no JSON", () => {
    expect(parseAnyJson('{"\\n":1,"\\n":2}')).toEqual({ "\n": 2 });
    expect(() => parseAnyJson('{"\\n":')).toThrow(SyntaxError);
  });

  it.each(['{"a":{"b":[{}]}}', '{ "a": { "b": [{}] } }'])("makes objects without a prototype of %s", (text) => {
    const value = parseStrictJson(text) as { a: { b: [object] } };
    expect([value, value.a, value.a.b[0]].map((object) => Object.getPrototypeOf(object))).toEqual([null, null, null]);
    expect(Object.getPrototypeOf(value.a.b)).toBe(Array.prototype);
  });

  it("reads 32 levels", () => {
    const text = `${"[".repeat(32)}1${"]".repeat(32)}`;
    expect(JSON.stringify(parseStrictJson(text))).toBe(text);
  });

  it("takes __proto__ for a name like any other", () => {
    const value = parseStrictJson('{"__proto__":{"polluted":1},"constructor":2}') as Record<string, unknown>;
    expect(Object.keys(value)).toEqual(["__proto__", "constructor"]);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});

it("an object of JSON is neither null nor a list", () => {
  expect([{}, { a: 1 }, null, [], [{}], "a", 1, true, undefined].map(isJsonObject)).toEqual([
    ...[true, true],
    ...Array(7).fill(false),
  ]);
});

it("members that are null are deleted, all or those that are named", () => {
  const made = () => ({ a: null, b: null, c: 0, d: undefined });
  const object = made();
  expect(deleteNulls(object)).toBe(object);
  expect(Object.keys(object)).toEqual(["c", "d"]);
  expect(Object.keys(deleteNulls(made(), ["b", "c"]))).toEqual(["a", "c", "d"]);
});
