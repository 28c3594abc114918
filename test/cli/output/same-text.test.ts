import { stringify } from "csv-stringify/sync";
import { describe, expect, it } from "vitest";
import { toCsv } from "../../../src/cli/output/csv.js";
import { plainYaml } from "../../../src/cli/output/plain-yaml.js";
import { toPlain } from "../../../src/cli/output/value.js";
import { toYaml } from "../../../src/cli/output/yaml.js";
import { MASK, Secret } from "../../../src/redact.js";
import { fc } from "../../helpers/properties.js";
import { device } from "./printing.js";

const part = fc.constantFrom(..."aZ09 _-.:,;#&*!|>%@`?=+~/()[]{}<'\"\\\t\r\né\u202e");
const text = fc.oneof(
  fc.string({ unit: part, maxLength: 8 }),
  fc.constantFrom("yes", "No", "null", "Y", "on", "1", "1.5", "0x1f", "1e3", "10.0.0.1", "12:30:45", "2030-01-01", "~"),
  fc.constantFrom(
    "Mozilla/5.0 (X11; Linux x86_64) Gecko",
    "https://app.example/cb",
    "<<",
    "=",
    ".inf",
    "a: b",
    "a #b",
    "---",
  ),
);

describe("what is written without a library is what the library writes", () => {
  it("in CSV", () => {
    const cell = fc.oneof(text, fc.string({ unit: "binary" }));
    const rows = fc.integer({ min: 1, max: 3 }).chain((length) => {
      return fc.array(fc.array(cell, { minLength: length, maxLength: length }), { minLength: 1, maxLength: 4 });
    });
    fc.assert(
      fc.property(rows, (given) => {
        const options = {
          record_delimiter: "\r\n",
          quote_record_delimiter: true,
          quoted_empty: given[0]?.length === 1,
        };
        expect(toCsv(given)).toBe(stringify(given, options));
      }),
      { numRuns: 200 },
    );
  });

  it("in YAML", async () => {
    const leaf = fc.oneof(text, fc.double(), fc.integer(), fc.boolean(), fc.constantFrom(null, undefined));
    const value = fc.letrec((tie) => ({
      node: fc.oneof(
        { maxDepth: 3 },
        leaf,
        fc.array(tie("node"), { maxLength: 3 }),
        fc.dictionary(fc.oneof(text, fc.constantFrom("id", "last_seen", "at", "n")), tie("node"), { maxKeys: 3 }),
      ),
    })).node;
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(value, { minLength: 1, maxLength: 3 }), async (items) => {
        const plain = plainYaml(items);
        if (plain === undefined) return;
        compared++;
        expect(plain).toBe(await toYaml(items, true));
      }),
      { numRuns: 1000 },
    );
    expect(compared).toBeGreaterThan(50);
  });

  it("in YAML of a device, which needs no document", async () => {
    const item = toPlain(
      device({ last_seen: { region_code: "27", country_code: "NO", lat_long: [38.7223, -9] } }),
      false,
    );
    const plain = plainYaml([item]);
    expect(plain).toContain(MASK);
    expect(plain).toBe(await toYaml([item], false));
  });

  it("in YAML of each text alone", async () => {
    await fc.assert(
      fc.asyncProperty(text, async (given) => {
        const items = [{ id: given, list: [given] }];
        const plain = plainYaml(items);
        if (plain !== undefined) expect(plain).toBe(await toYaml(items, true));
      }),
      { numRuns: 1000 },
    );
  });

  it.each([[{ at: new Date(0) }], [{ token: new Secret("secret") }], [[[1]]]])("and not of %j", (value) => {
    expect(plainYaml([value])).toBeUndefined();
  });
});
