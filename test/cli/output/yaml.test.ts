import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { fc } from "../../helpers/properties.js";
import { print } from "./printing.js";

describe("yaml", () => {
  it("parses back equal, by the rules of 1.1 and of 1.2", async () => {
    const tricky = fc.constantFrom(
      "no",
      "y",
      "0123",
      "1e3",
      "0o7",
      "12:30:45",
      "2001-01-01",
      "~",
      "=",
      "<<",
      "- a",
      "a: b",
      "#",
      "",
      "1_000",
      "\u202e",
      "a\nb",
      " x ",
      "\u0085",
    );
    const value = fc.oneof(
      tricky,
      fc.string({ unit: "grapheme" }),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.array(tricky),
    );
    const items = fc.array(fc.dictionary(fc.oneof(tricky, fc.string()), value), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(items, async (list) => {
        const { out } = await print("yaml", list, { pageSize: 2 });
        const plain: unknown = JSON.parse(JSON.stringify(list));
        expect(parse(out)).toEqual(plain);
        expect(parse(out, { version: "1.1", merge: false })).toEqual(plain);
      }),
    );
  });

  it("quotes what YAML 1.1 reads as something else", async () => {
    const { out } = await print("yaml", [{ a: "no", b: "0123", c: "1e3", d: "12:30:45", e: "2001-01-01", f: "=" }]);
    expect(out).toBe('- a: "no"\n  b: "0123"\n  c: "1e3"\n  d: "12:30:45"\n  e: "2001-01-01"\n  f: "="\n');
  });

  it("escapes control, bidi and invisible characters in values and keys", async () => {
    const { out } = await print("yaml", [{ "k\u202e": "a\nb\u001b\u0085\u200b\u{e0041}" }]);
    expect(out).toBe('- "k\\u202e": "a\\nb\\e\\x85\\u200b\\U000e0041"\n');
    expect(parse(out)).toEqual([{ "k\u202e": "a\nb\u001b\u0085\u200b\u{e0041}" }]);
  });

  it("writes an object that is there twice twice, not as an alias", async () => {
    const seen = { at: 1 };
    expect((await print("yaml", [{ first_seen: seen, last_seen: seen }])).out).toBe(
      "- first_seen:\n    at: 1\n  last_seen:\n    at: 1\n",
    );
  });
});
