import { describe, expect, it } from "vitest";
import { suggest, suggestionHint } from "../../src/http/suggest.js";
import { fc } from "../helpers/properties.js";

const FORMATS = ["table", "wide", "plain", "json", "ndjson", "csv", "id"];

describe("did you mean", () => {
  it.each([
    ["jsn", "json"],
    ["JSON", "json"],
    ["tabel", "table"],
    ["cvs", "csv"],
    ["ndjsn", "ndjson"],
    ["plan", "plain"],
    ["xml", undefined],
    ["", undefined],
    ["jo", undefined],
    ["nd", "id"],
    ["pla", "plain"],
    ["xx", undefined],
    ["zzzzzz", undefined],
  ])("%j: %s", (word, expected) => {
    expect(suggest(word, FORMATS)).toBe(expected);
  });

  it("has a letter of the word in it", () => {
    expect(suggest("x", ["a"])).toBeUndefined();
  });

  it("gives one of the candidates or none, and a candidate for itself", () => {
    fc.assert(
      fc.property(fc.string(), fc.array(fc.string({ minLength: 1 }), { minLength: 1 }), (word, candidates) => {
        const found = suggest(word, candidates);
        expect(found === undefined || candidates.includes(found)).toBe(true);
        expect(suggest(candidates[0] ?? "", candidates)?.toLowerCase()).toBe(candidates[0]?.toLowerCase());
      }),
    );
  });
});

it("the hint about an unknown name names the known one that it nearly is, or else what helps otherwise", () => {
  expect(suggestionHint("jsn", FORMATS, "see the list")).toBe("did you mean json?");
  expect(suggestionHint("xml", FORMATS, "see the list")).toBe("see the list");
});
