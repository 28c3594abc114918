import { describe, expect, it } from "vitest";
import { escapeJson, stringifyItems } from "../../../src/cli/output/value.js";
import { hideClientSecret } from "../../../src/redact.js";

it.each([
  ["\u007f", "\\u007f"],
  ["\u009f", "\\u009f"],
  ["\u00a0", "\\u00a0"],
  ["a\u2028\u202e\u200bb", "a\\u2028\\u202e\\u200bb"],
  ["\u2800\u3164\u{1d159}", "\\u2800\\u3164\\ud834\\udd59"],
  ["\ue000\u{10fffd}", "\\ue000\\udbff\\udffd"],
  ["\u0378", "\\u0378"],
  [`a${"\u0301".repeat(8)}`, `a${"\u0301".repeat(8)}`],
  [`a${"\u0301".repeat(9)}`, `a${"\\u0301".repeat(9)}`],
  ["é日🎉\n", "é日🎉\n"],
])("JSON has %j as %j", (text, expected) => {
  expect(escapeJson(text)).toBe(expected);
});

describe("items as JSON", () => {
  const SECRET = { client_secret: "planted" };
  const text = (items: unknown[], style: Partial<Parameters<typeof stringifyItems>[2]> = {}) =>
    stringifyItems(items, ",", { reveal: false, ...style });

  it.each<[string, unknown[], string, string]>([
    ["a secret", [SECRET], '{"client_secret":"********"}', '{"client_secret":"planted"}'],
    [
      "a second secret",
      [{ client_secret: null }, [SECRET]],
      '{"client_secret":null},[{"client_secret":"********"}]',
      '{"client_secret":null},[{"client_secret":"planted"}]',
    ],
    [
      "a secret after a masked one",
      [{ client_secret: "********" }, SECRET],
      '{"client_secret":"********"},{"client_secret":"********"}',
      '{"client_secret":"********"},{"client_secret":"planted"}',
    ],
    [
      "no secret",
      [{ client_secret: null, a: "********" }, 1, undefined],
      '{"client_secret":null,"a":"********"},1,null',
      '{"client_secret":null,"a":"********"},1,null',
    ],
    ["a number", [{ client_secret: 5 }], '{"client_secret":"********"}', '{"client_secret":5}'],
    [
      "one that masks itself",
      [hideClientSecret({ ...SECRET, a: 1 })],
      '{"client_secret":"********","a":1}',
      '{"client_secret":"planted","a":1}',
    ],
  ])("have %s", (_what, items, masked, revealed) => {
    expect([text(items), text(items, { reveal: true })]).toEqual([masked, revealed]);
  });

  it("are indented, with their secrets masked as well", () => {
    const shown = (secret: string) => `{\n  "client_secret": "${secret}"\n}`;
    expect([text([SECRET], { indent: 2 }), text([SECRET], { indent: 2, reveal: true })]).toEqual([
      ...[shown("********"), shown("planted")],
    ]);
    expect(text([{ client_secret: null }], { indent: 2 })).toBe('{\n  "client_secret": null\n}');
  });

  it("have the paths that are named", () => {
    expect(text([{ a: { b: 1, c: 2 }, d: 3 }, { d: "\u202e" }], { paths: ["a.c", "d"] })).toBe(
      '{"a":{"c":2},"d":3},{"d":"\\u202e"}',
    );
  });
});
