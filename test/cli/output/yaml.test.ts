import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { SECRET_MASK, Secret } from "../../../src/redact.js";
import { fc } from "../../helpers/properties.js";
import { print } from "./printing.js";

describe("yaml", () => {
  it("parses back equal, by the rules of 1.1 and of 1.2", async () => {
    const part = fc.constantFrom(..."aZ09 _-.:,;#&*!|>%@`?=+~/()[]{}<'\"\\\t\r\né\u202e");
    const text = fc.oneof(
      fc.constantFrom("yes", "No", "null", "Y", "on", "1", "1.5", "0x1f", "0o7", "0123", "1e3", "1_000", "~", ".inf"),
      fc.constantFrom("12:30:45", "1:2:3:4:5:6:7:8", "2001-01-01", "10.0.0.1", "2001:db8::1", "::1", "=", "<<", "---"),
      fc.constantFrom("", " x ", "a: b", "a:", "a #b", "- a", "#", "Ann's", "'", "\u0085", "k".repeat(1100)),
      fc.string({ unit: part, maxLength: 8 }),
      fc.string({ unit: "grapheme" }),
      fc.string({ unit: "binary" }),
    );
    const { node } = fc.letrec((tie) => ({
      node: fc.oneof(
        { maxDepth: 3 },
        fc.oneof(text, fc.double(), fc.integer(), fc.boolean(), fc.constant(null)),
        fc.array(tie("node"), { maxLength: 3 }),
        fc.dictionary(text, tie("node"), { maxKeys: 3 }),
      ),
    }));
    const items = fc.array(fc.dictionary(text, node, { maxKeys: 4 }), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(items, async (list) => {
        const { out } = await print("yaml", list, { pageSize: 2 });
        // The prototypes of the generated objects differ.
        const plain: unknown = structuredClone(list);
        expect(parse(out)).toEqual(plain);
        expect(parse(out, { version: "1.1", merge: false })).toEqual(plain);
      }),
      { numRuns: 500 },
    );
  });

  it("leaves out what JSON leaves out, and shows of an instance what it shows of itself", async () => {
    const items = [
      { none: undefined, list: [undefined, new Date(0)], token: new Secret("planted-secret"), empty: { a: undefined } },
    ];
    const { out } = await print("yaml", items);
    expect(parse(out)).toEqual([{ list: [null, "1970-01-01T00:00:00.000Z"], token: SECRET_MASK, empty: {} }]);
  });

  it("writes a key that is too long for the line of its value before it", async () => {
    const key = "k".repeat(1001);
    expect((await print("yaml", [{ [key]: [{ a: 1 }], b: 2 }])).out).toBe(`- ? ${key}\n  :\n    - a: 1\n  b: 2\n`);
  });

  it("quotes what YAML 1.1 reads as something else", async () => {
    const { out } = await print("yaml", [{ a: "no", b: "0123", c: "1e3", d: "12:30:45", e: "2001-01-01", f: "=" }]);
    expect(out).toBe('- a: "no"\n  b: "0123"\n  c: "1e3"\n  d: "12:30:45"\n  e: "2001-01-01"\n  f: "="\n');
  });

  it("escapes control, bidi and invisible characters in values and keys", async () => {
    const { out } = await print("yaml", [{ "k\u202e": "a\nb\u001b\u0085\u200b\u{e0041}" }]);
    expect(out).toBe('- "k\\u202e": "a\\nb\\x1b\\x85\\u200b\\U000e0041"\n');
    expect(parse(out)).toEqual([{ "k\u202e": "a\nb\u001b\u0085\u200b\u{e0041}" }]);
  });

  it("writes an object that is there twice twice, not as an alias", async () => {
    const seen = { at: 1 };
    expect((await print("yaml", [{ first_seen: seen, last_seen: seen }])).out).toBe(
      "- first_seen:\n    at: 1\n  last_seen:\n    at: 1\n",
    );
  });
});
