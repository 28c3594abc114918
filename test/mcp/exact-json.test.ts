import { describe, expect, it } from "vitest";
import { parseExactJson, parseServerJson, writeExactJson } from "../../src/mcp/exact-json.js";
import { fc } from "../helpers/properties.js";

describe("JSON with every digit", () => {
  it.each([
    "12345678901234567890",
    "-9007199254740993",
    "0.12345678901234567891",
    "9007199254740991.5",
    '[1,{"a":18446744073709551615,"__proto__":1.00000000000000000001},"18446744073709551615"]',
    "1.2345678901234567890e-7",
    '{"text":"\\"18446744073709551615\\\\","n":18446744073709551615}',
  ])("is written as it was read: %s", (text) => {
    expect(writeExactJson(parseExactJson(text))).toBe(text);
    expect(writeExactJson(parseServerJson(text))).toBe(text);
  });

  it.each([
    ["1e3", "1000"],
    ["0.10", "0.1"],
    ["-0.0", "0"],
    ["0.30000000000000004", "0.30000000000000004"],
    ["1.7976931348623157e308", "1.7976931348623157e+308"],
    ["9007199254740991", "9007199254740991"],
    ["1000000000000000000000", "1000000000000000000000"],
  ])("has a number that a double holds: %s", (text, written) => {
    expect(writeExactJson(parseExactJson(text))).toBe(written);
  });

  it("is the same as that of JSON.stringify for whatever that writes", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const text = JSON.stringify(value);
        expect(writeExactJson(parseExactJson(text))).toBe(JSON.stringify(JSON.parse(text)));
      }),
    );
  });

  it.each([
    "1e400",
    `1${"0".repeat(1000)}`,
    '{"a":12345678901234567890,"a":1}',
    `${"[".repeat(502)}1${"]".repeat(502)}`,
  ])("is refused where parsers disagree: %.20s", (text) =>
    expect(() => parseExactJson(text)).toThrow(expect.objectContaining({ name: "StrictJsonError" })),
  );

  it("of a server need not be strict", () => {
    expect(parseServerJson('{"a":12345678901234567890,"a":1}')).toEqual({ a: 1 });
    expect(() => parseServerJson("{12345678901234567890}")).toThrow(SyntaxError);
  });

  it("cannot be made of what is no JSON", () => {
    const loop: unknown[] = [];
    loop.push(loop);
    expect(() => writeExactJson(loop)).toThrow(TypeError);
  });

  // A time that grows with the square of the length would be minutes, and the limit of a test ends it.
  it("is read and written where it has megabytes", () => {
    const text = JSON.stringify(['\\\\\\"'.repeat(300_000), Array(100_000).fill("0.12345678901234567890\n")]);
    const long = `[${text},${"12345678901234567890,".repeat(100_000)}1${"0".repeat(300)}]`;
    expect(writeExactJson(parseExactJson(long))).toBe(long);
  });
});
