import { describe, expect, it } from "vitest";
import { guardFormula, toCsv } from "../../../src/cli/output/csv.js";
import { labPackage, sayWithoutLab } from "../../helpers/lab.js";
import { fc } from "../../helpers/properties.js";
import { device, parseCsv, print, TERMINAL } from "./printing.js";

interface Library {
  stringify(rows: readonly string[][], options: object): string;
}
const library = await labPackage<Library>("csv-stringify/sync");
sayWithoutLab("the comparison of CSV with csv-stringify");

const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: fc.constantFrom('"', ",", "\r", "\n", "'", "=", "+", "-", "@", "\t", " ", "\0", "a") }),
);
const flags = { columnsFlag: "id,title,status" };
const unguard = (cell: string) => (cell.startsWith("'") && guardFormula(cell.slice(1)) === cell ? cell.slice(1) : cell);

describe("csv", () => {
  it.runIf(library)("is what the library writes, which costs more", () => {
    const rows = fc.integer({ min: 1, max: 3 }).chain((length) => {
      return fc.array(fc.array(text, { minLength: length, maxLength: length }), { minLength: 1, maxLength: 4 });
    });
    const options = { record_delimiter: "\r\n", quote_record_delimiter: true };
    fc.assert(
      fc.property(rows, (given) => {
        expect(toCsv(given)).toBe(library?.stringify(given, { ...options, quoted_empty: given[0]?.length === 1 }));
      }),
      { numRuns: 200 },
    );
  });

  it("parses back equal once the formula guard is taken away", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(text, text, text), { maxLength: 6 }), async (rows) => {
        const items = rows.map(([id, title, status]) => ({ id, title, status }));
        const [header, ...parsed] = parseCsv((await print("csv", items, { flags, pageSize: 2 })).out);
        expect(header).toEqual(["id", "title", "status"]);
        expect(parsed.map((row) => row.map(unguard))).toEqual(rows);
      }),
    );
  });

  it("begins with one byte order mark with --csv-bom, but on a terminal", async () => {
    const items = [device({ title: "Köln" }), device()];
    for (const noHeader of [false, true]) {
      const flags = { columnsFlag: "title", noHeader };
      const bare = await print("csv", items, { flags, pageSize: 1 });
      const marked = await print("csv", items, { flags: { ...flags, csvBom: true }, pageSize: 1 });
      expect(marked.out).toBe(`\ufeff${bare.out}`);
    }
    expect((await print("csv", items, { flags: { csvBom: true }, io: TERMINAL })).out).not.toContain("\ufeff");
    expect((await print("csv", [], { flags: { csvBom: true, noHeader: true } })).out).toBe("");
  });

  it("parses back equal as it is with --csv-raw", async () => {
    await fc.assert(
      fc.asyncProperty(text, async (title) => {
        const { out } = await print("csv", [{ title }], {
          flags: { columnsFlag: "title", csvRaw: true, noHeader: true },
        });
        expect(parseCsv(out)).toEqual([[title]]);
      }),
    );
  });

  it.each([
    ...[
      "=1+1",
      "+1",
      "-1",
      "@SUM",
      "\t=1",
      "\r=1",
      "＝1",
      "＋1",
      "－1",
      "＠x",
      "  =1",
      '"=1',
      "'=1",
      "\n=1",
      "\u00a0=1",
    ],
  ])("does not let %j run as a formula", async (title) => {
    const [row] = parseCsv((await print("csv", [{ title }], { flags: { columnsFlag: "title", noHeader: true } })).out);
    expect(row).toEqual([`'${title}`]);
  });

  it("leaves numbers and harmless text alone", async () => {
    const item = { id: -5, title: "a=b", status: "'quoted'" };
    expect(parseCsv((await print("csv", [item], { flags: { ...flags, noHeader: true } })).out)).toEqual([
      ["-5", "a=b", "'quoted'"],
    ]);
  });

  it("writes times as RFC 3339, lists as JSON and nothing for nothing", async () => {
    const item = device({ last_seen: { at: 0 }, dynamic_client_details: { redirect_uris: ["http://a", "b"] } });
    const columnsFlag = "last_seen.at,dynamic_client_details.redirect_uris,first_seen.at";
    const { out } = await print("csv", [item], { flags: { columnsFlag, noHeader: true }, io: TERMINAL });
    expect(parseCsv(out)).toEqual([["1970-01-01T00:00:00Z", '["http://a","b"]', ""]]);
  });

  it("does not leave an empty line for a record of one empty cell", async () => {
    const { out } = await print("csv", [{ id: "" }, {}], { flags: { columnsFlag: "id", noHeader: true } });
    expect(out).toBe('""\r\n""\r\n');
  });

  it("of no rows is nothing", () => {
    expect([toCsv([]), toCsv([[]]), toCsv([["", ""]])]).toEqual(["", "\r\n", ",\r\n"]);
  });

  it("has its header once, however many pages there are", async () => {
    const items = [1, 2, 3].map((id) => ({ id }));
    expect((await print("csv", items, { flags: { columnsFlag: "id" }, pageSize: 1 })).out).toBe(
      "id\r\n1\r\n2\r\n3\r\n",
    );
  });
});
