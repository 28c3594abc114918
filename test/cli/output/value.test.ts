import { describe, expect, it } from "vitest";
import {
  cellText,
  countText,
  escapeJson,
  isRecord,
  leaves,
  maskSecret,
  project,
  readPath,
  stringifyItems,
  toPlain,
  valueText,
} from "../../../src/cli/output/value.js";
import { hideClientSecret } from "../../../src/redact.js";
import { fc } from "../../helpers/properties.js";
import { device, print, TERMINAL } from "./printing.js";

const AT = "2026-01-01T01:00:00.000Z";
const terminal = { reveal: false, now: () => Date.parse("2026-01-01T00:18:30Z") };

describe("a time that came as text", () => {
  it("is relative for a user, and as it was elsewhere", () => {
    expect(valueText("expires_at", AT, "time", terminal)).toBe("in 41 minutes");
    expect(valueText("expires_at", AT, "time", { reveal: false })).toBe(AT);
  });

  it("stays what it is where it is no time, or not the value of such a column", () => {
    expect(valueText("expires_at", "soon", "time", terminal)).toBe("soon");
    expect(valueText("title", AT, "text", terminal)).toBe(AT);
  });
});

it.each([
  [0, "0 devices"],
  [1, "1 device"],
  [999, "999 devices"],
  [1000, "1,000 devices"],
  [1234567, "1,234,567 devices"],
])("the count %i has its noun, and its thousands apart", (count, expected) => {
  expect(countText(count, "device")).toBe(expected);
});

describe("a list of values", () => {
  it.each<[string, unknown, string | undefined, string]>([
    ["of texts and numbers", ["a", 1, true], ", ", "a, 1, true"],
    ["of nothing", [], ", ", ""],
    ["of objects", [{ a: 1 }, "b"], ", ", '[{"a":1},"b"]'],
    ["of lists", [["a"], ["b"]], ", ", '[["a"],["b"]]'],
    ["without a separator", ["a", "b"], undefined, '["a","b"]'],
    ["that is an object", { a: [1] }, ", ", '{"a":[1]}'],
  ])("%s is a text", (_what, value, listSeparator, text) => {
    const style = { reveal: false, ...(listSeparator !== undefined && { listSeparator }) };
    expect(valueText("scopes", value, undefined, style)).toBe(text);
  });
});

describe("a name", () => {
  const columns = [
    { path: "server", header: "SERVER", kind: "name" },
    { path: "issuer", header: "ISSUER" },
  ] as const;
  const flags = { columns, wideColumns: columns, fields: ["server", "issuer"] };
  const item = { server: "https://mcp.example/mcp", issuer: "https://issuer.example/pool" };

  it("is never cut: what is beside it is, and where it has no room come records", async () => {
    const table = await print("table", [item], { io: { ...TERMINAL, columns: 40 }, flags });
    expect(table.out).toBe(`SERVER                   ISSUER\n${item.server}  https://issuer…\n`);
    const records = await print("table", [item], { io: { ...TERMINAL, columns: 25 }, flags });
    expect(records.out).toBe(`server: ${item.server}\nissuer: ${item.issuer}\n`);
  });
});

describe("a path", () => {
  const item = { a: { b: { c: 1 }, n: null, l: [7] }, "x.y": 2, s: "text" };

  it.each([
    ["a.b.c", 1],
    ["a.b", { c: 1 }],
    ["a.n", null],
    ["a.n.x", undefined],
    ["a.l.0", 7],
    ["a.x", undefined],
    ["x.y", undefined],
    ["s.length", undefined],
    ["constructor", undefined],
    ["a.__proto__", undefined],
  ])("%s leads to %j", (path, expected) => {
    expect(readPath(item, path)).toEqual(expected);
    expect(readPath(undefined, path)).toBeUndefined();
  });

  it("is kept with the objects that it leads through, where it leads somewhere", () => {
    const kept = project(item, ["a.b.c", "s", "a.n", "a.x.y", "nowhere"]);
    expect(JSON.stringify(kept)).toBe('{"a":{"b":{"c":1},"n":null},"s":"text"}');
    expect(JSON.stringify(project({ a: [{ b: 1 }] }, ["a", "a.0"]))).toBe('{"a":{"0":{"b":1}}}');
  });
});

describe("plain data", () => {
  class Own {
    client_secret = "own";
  }
  const bare = Object.assign(Object.create(null), { a: 1 });

  it.each<[string, unknown, boolean]>([
    ["an object", {}, true],
    ["one without a prototype", bare, true],
    ["one whose prototype hides something", Object.create({ toJSON: () => 1 }), true],
    ["an instance", new Own(), false],
    ["a date", new Date(0), false],
    ["one below an instance", Object.create(new Own()), false],
    ["a list", [], false],
    ["null", null, false],
    ["a text", "x", false],
    ["nothing", undefined, false],
  ])("is %s: %#", (_what, value, expected) => {
    expect(isRecord(value)).toBe(expected);
  });

  it("is copied with its secrets masked, at any depth, unless they are to be shown", () => {
    const secret = {
      client_secret: "s",
      client_id: "i",
      deep: [{ client_secret: { a: 1 } }],
      none: { client_secret: null },
    };
    const value = { ...secret, own: new Own() };
    expect(toPlain(value, true)).toEqual(value);
    expect(toPlain(value, false)).toEqual({
      ...{ client_secret: "********", client_id: "i", deep: [{ client_secret: "********" }] },
      ...{ none: { client_secret: null }, own: value.own },
    });
    expect(Object.keys(toPlain(JSON.parse('{"__proto__":1}'), false) as object)).toEqual(["__proto__"]);
    expect([maskSecret("client_secret", undefined, false), maskSecret("client_secret", "s", true)]).toEqual([
      undefined,
      "s",
    ]);
  });

  it("has leaves with their paths and keys", () => {
    const at = new Date(0);
    expect(leaves({ a: { b: { c: 1 }, d: {} }, e: [{ f: 1 }], at })).toEqual([
      { path: "a.b.c", key: "c", value: 1 },
      { path: "a.d", key: "d", value: {} },
      { path: "e", key: "e", value: [{ f: 1 }] },
      { path: "at", key: "at", value: at },
    ]);
  });
});

describe("a cell of two paths", () => {
  const column = { path: "city", and: "country", header: "PLACE" };
  it.each([
    [{ city: "Köln", country: "DE" }, "Köln, DE"],
    [{ city: "Köln" }, "Köln"],
    [{ country: "DE" }, "DE"],
    [{}, ""],
  ])("of %j is %j", (item, text) => {
    expect(cellText(item, column, { reveal: false })).toBe(text);
  });
});

describe("a moment", () => {
  const at = (seconds: number, style: object = {}) =>
    valueText("at", seconds, "time", { reveal: false, now: () => 0, ...style });

  it.each([
    [0, "now", "now"],
    [0.9, "now", "now"],
    [1, "in 1 second", "in 1s"],
    [-59, "59 seconds ago", "59s ago"],
    [-60, "1 minute ago", "1min ago"],
    [3599, "in 59 minutes", "in 59min"],
    [3600, "in 1 hour", "in 1h"],
    [-86_399, "23 hours ago", "23h ago"],
    [86_400, "in 1 day", "in 1d"],
    [30 * 86_400 - 1, "in 29 days", "in 29d"],
    [30 * 86_400, "in 1 month", "in 1mo"],
    [-(365 * 86_400 - 1), "12 months ago", "12mo ago"],
    [-365 * 86_400, "1 year ago", "1y ago"],
    [8.64e12, "in 273,972 years", "in 273,972y"],
  ])("in %i seconds is %j, or %j", (seconds, text, short) => {
    expect([at(seconds), at(seconds, { short: true })]).toEqual([text, short]);
  });

  it("is RFC 3339 for a program, and a number where it is beyond dates", () => {
    expect([at(1.5, { now: undefined }), at(0, { now: undefined })]).toEqual([
      ...["1970-01-01T00:00:01.500Z", "1970-01-01T00:00:00Z"],
    ]);
    expect([at(8.65e12), at(-8.65e12), at(Number.NaN)]).toEqual(["8650000000000", "-8650000000000", "NaN"]);
  });
});

it.each<[unknown, string]>([
  [undefined, ""],
  [null, ""],
  [true, "true"],
  [12n, "12"],
  [0, "0"],
  [{ toJSON: () => undefined }, ""],
  [[null, { a: 1 }], '[null,{"a":1}]'],
])("the text of %s is %j", (value, text) => {
  expect(valueText("x", value, undefined, { reveal: false, listSeparator: ", " })).toBe(text);
});

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
