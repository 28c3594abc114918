import { describe, expect, it } from "vitest";
import { escapeJson } from "../../../src/cli/output/value.js";
import { fc } from "../../helpers/properties.js";
import { device, print, TERMINAL } from "./printing.js";

const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) }),
  fc.constantFrom("\u0000", "\u001b[31m", "\u009b", "\u2028", "\u202e", "\u{e0041}", '"client_secret":"x"', "\r\n"),
);
const item = fc.dictionary(
  text,
  fc.oneof(text, fc.double({ noNaN: true }), fc.boolean(), fc.constant(null), fc.array(text)),
);
const items = fc.array(
  item.filter((value) => !("client_secret" in value)),
  { maxLength: 8 },
);
/** What JSON itself makes of values: no minus zero, no infinities. */
const throughJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe("json", () => {
  it("parses back equal, on a terminal and in a pipe, at any page size", async () => {
    await fc.assert(
      fc.asyncProperty(items, fc.integer({ min: 1, max: 4 }), fc.boolean(), async (list, pageSize, tty) => {
        const { out } = await print("json", list, { pageSize, io: tty ? TERMINAL : {} });
        expect(JSON.parse(out)).toEqual(throughJson(list));
      }),
    );
  });

  it("is one item a line in a pipe and indented on a terminal", async () => {
    const list = [{ id: "a", last_seen: { at: 1 } }, { id: "b" }];
    expect((await print("json", list, { pageSize: 1 })).out).toBe('[{"id":"a","last_seen":{"at":1}},\n{"id":"b"}]\n');
    expect((await print("json", list, { pageSize: 1, io: TERMINAL })).out).toBe(`${JSON.stringify(list, null, 2)}\n`);
  });

  it("keeps times as the numbers they are", async () => {
    expect((await print("json", [device()], { io: TERMINAL })).out).toContain('"at": 1700000000');
  });

  it("escapes beyond the basic plane as two units", () => {
    expect(escapeJson('"\u{e0041}\u2028é"')).toBe('"\\udb40\\udc41\\u2028é"');
  });
});

describe("ndjson", () => {
  it("parses back equal, line by line", async () => {
    await fc.assert(
      fc.asyncProperty(items, fc.integer({ min: 1, max: 4 }), async (list, pageSize) => {
        const { out } = await print("ndjson", list, { pageSize });
        const lines = out.split("\n");
        expect(lines.pop()).toBe("");
        expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(throughJson(list));
      }),
    );
  });
});

describe("--jq", () => {
  const list = [device({ id: "a" }), device({ id: "b", title: "two\nlines \u001b[31m" })];

  it("sees the whole array as json and each item as ndjson", async () => {
    expect((await print("json", list, { flags: { jq: "length" } })).out).toBe("2\n");
    expect((await print("ndjson", list, { flags: { jq: ".id" }, pageSize: 1 })).out).toBe("a\nb\n");
  });

  it.each(['.[] | select(.id == "b")', 'map(select(.id == "b"))', '[.[] | select(.id == "b")]', "last(.[])"])(
    "selects the items of every other format by %s",
    async (jq) => {
      for (const format of ["table", "wide", "plain", "csv", "id"] as const) {
        const [, b = {}] = list;
        const flags = { columnsFlag: "id,dynamic_client_details.client_secret" };
        const { out } = await print(format, list, { flags: { ...flags, jq }, pageSize: 1 });
        expect(out).toBe((await print(format, [b], { flags })).out);
      }
    },
  );

  it.each([".[].id", "length", "map(.id)", ".[9]", "[[.]]"])("is refused for what is no item: %s", async (jq) => {
    await expect(print("csv", list, { flags: { jq } })).rejects.toMatchObject({
      ...{ code: "usage", message: expect.stringMatching(/^--jq returned (?:null|a \w+), /) },
      hint: expect.stringContaining(".[] | select("),
    });
  });

  it("prints what a page has, and the end of a list that is empty", async () => {
    const csv = { flags: { columnsFlag: "id", jq: ".[] | select(.id == 1)" } };
    expect((await print("csv", list, csv)).out).toBe((await print("csv", [], { flags: { columnsFlag: "id" } })).out);
    const part = await print("csv", list, { flags: { columnsFlag: "id", jq: ".[]" }, pageSize: 1, abort: true });
    expect(part.out).toBe("id\r\na\r\nb\r\n");
  });

  it("prints strings with their line breaks and nothing else that acts on a terminal, other values as JSON on one line", async () => {
    const jq = ".[1].title, .[0].last_seen.at, null, {a: .[1].title}";
    const asJson = '{"a":"two\\nlines \\u001b[31m"}\n';
    for (const io of [undefined, TERMINAL]) {
      const { out } = await print("json", list, { flags: { jq }, ...(io && { io }) });
      expect(out).toBe(`two\nlines \\e[31m\n1700000000\nnull\n${asJson}`);
    }
  });

  it("keeps the tabs of @tsv", async () => {
    expect((await print("json", list, { flags: { jq: '.[] | [.id, "x"] | @tsv' } })).out).toBe("a\tx\nb\tx\n");
  });

  it("is no option of jq even when it begins like one", async () => {
    expect((await print("ndjson", [{ id: 3 }], { flags: { jq: "-.id" } })).out).toBe("-3\n");
    await expect(print("ndjson", [{ id: 3 }], { flags: { jq: "-h" } })).rejects.toThrow("h/0 is not defined");
  });

  it("gives the whole list for an empty one", async () => {
    expect((await print("json", [], { flags: { jq: "length" } })).out).toBe("0\n");
    expect((await print("ndjson", [], { flags: { jq: ".id" } })).out).toBe("");
  });

  it.each(["json", "ndjson"] as const)(
    "that jq cannot read is a usage error as %s, also for an empty list",
    async (format) => {
      for (const items of [list, []]) {
        const failing = print(format, items, { flags: { jq: ".[\u001b" } });
        await expect(failing).rejects.toMatchObject({
          class: "usage",
          message: expect.stringMatching(/^--jq: [^\p{Cc}]+$/u),
        });
      }
    },
  );
});
