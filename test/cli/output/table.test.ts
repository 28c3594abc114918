import Table from "cli-table3";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { columnsOf, device, print, TERMINAL } from "./printing.js";

const terminal = (columns: number) => ({ ...TERMINAL, columns });
const LAST_SEEN = { at: 1_700_000_000, country_code: "US", city: "Ashburn" };
const linesOf = (out: string) => out.split("\n").slice(0, -1);
const WIDE = /[\u3000-\u9fff\uac00-\ud7af\uff01-\uff60\u{1f300}-\u{1faff}]/gu;
const NONE = /\p{M}/gu;
const width = (line: string) => columnsOf(line, WIDE, NONE);

describe("a table on a terminal", () => {
  it("has a heading, relative times and no vertical lines", async () => {
    expect((await print("table", [device()], { io: TERMINAL })).out).toBe(
      "TITLE   ID     STATUS  LAST SEEN  PLACE     SESSION\n" + "Laptop  dev_1  active  3d ago     Köln, DE  mcp\n",
    );
  });

  it.each([
    [0, "now"],
    [45, "45s ago"],
    [60, "1min ago"],
    [7200, "2h ago"],
    [86_400 * 45, "1mo ago"],
    [86_400 * 800, "2y ago"],
    [-3600, "in 1h"],
    [-86_400 * 365 * 1200, "in 1,200y"],
  ])("says %i seconds ago as %j", async (seconds, expected) => {
    const item = { last_seen: { at: 1_700_259_200 - seconds } };
    const { out } = await print("table", [item], {
      io: TERMINAL,
      flags: { columnsFlag: "last_seen.at", noHeader: true },
    });
    expect(out).toBe(`${expected}\n`);
  });

  it("shows a time beyond what dates hold as the number it is", async () => {
    const { out } = await print("plain", [{ last_seen: { at: 1e300 } }], { flags: { columnsFlag: "last_seen.at" } });
    expect(out).toBe("1e+300\n");
  });

  it("has its heading in bold where there is colour, and none with --no-header", async () => {
    const colour = await print("table", [device()], { io: { tty: true, columns: 80 } });
    expect(colour.out.split("\n")[0]).toBe("\u001b[1mTITLE   ID     STATUS  LAST SEEN  PLACE     SESSION\u001b[22m");
    expect((await print("table", [device()], { io: TERMINAL, flags: { noHeader: true } })).out).toMatch(
      /^Laptop +dev_1/,
    );
  });

  it("has nothing in bold but its heading, however many rows there are", async () => {
    const io = { tty: true, columns: 80 };
    const many = Array.from({ length: 450 }, (_, nth) => device({ id: `dev_${nth}` }));
    const { out } = await print("table", many, { io });
    expect(out.match(/^.*\[1m.*$/gm)).toHaveLength(1);
    expect((await print("table", many, { io, flags: { noHeader: true } })).out).not.toContain("[1m");
  });

  it("keeps columns in line for wide, emoji and combining characters", async () => {
    const titles = [
      ...["abc", "日本語", "한국어", "e\u0301a\u0308\u0323", "🎉 party", "ｗｉｄｅ", "\u0301alone", "กำ\u0e49"],
    ];
    const items = titles.map((title, index) => device({ id: `dev_${index}`, title }));
    const { out } = await print("table", items, { io: TERMINAL });
    // Thai am counts as a letter and a mark to some terminals: everything before it must be in line.
    const offsets = linesOf(out)
      .slice(1, -1)
      .map((line) => width(line.slice(0, line.indexOf("active"))));
    expect(new Set(offsets)).toEqual(new Set([17]));
  });

  it("gives a mark without a letter something to stand on", async () => {
    const { out } = await print("table", [device({ title: "\u0301x" })], { io: TERMINAL });
    expect(out).toContain("\n\u25cc\u0301x  ");
  });

  it("measures text after escaping it", async () => {
    const items = [device({ title: "\u001b[31mred\u202e" }), device({ title: "plain" })];
    const [heading = "", ...rows] = linesOf((await print("table", items, { io: TERMINAL })).out);
    for (const row of rows) expect(row.indexOf("active")).toBe(heading.indexOf("STATUS"));
  });
});

describe("a narrow terminal", () => {
  const items = [device({ id: "device_0001", title: "A laptop with quite a long name that goes on" }), device()];

  it.each([32, 40, 50, 60, 80, 100])("of %i columns never has a longer line in a table", async (columns) => {
    const flags = { columnsFlag: "id,title,status" };
    const { out } = await print("table", items, { io: terminal(columns), flags });
    expect(linesOf(out)).toHaveLength(3);
    for (const line of linesOf(out)) expect(width(line)).toBeLessThanOrEqual(columns);
  });

  it("of 30 columns gets records, where a title and an id do not fit", async () => {
    const many = Array.from({ length: 450 }, () => items).flat();
    const { out, err } = await print("table", many, { io: terminal(30) });
    expect(out.match(/^last_seen\.city: /gm)).toHaveLength(many.length);
    expect(err).toBe("");
  });

  it.each([
    [100, /^TITLE +ID +STATUS +LAST SEEN +PLACE +SESSION$/, undefined],
    [78, /^TITLE {10,}ID +STATUS +LAST SEEN +PLACE$/, "no room for SESSION; -o wide shows every column"],
    [56, /^TITLE {10,}ID +STATUS$/, "no room for LAST SEEN, PLACE, SESSION; -o wide shows every column"],
  ])(
    "of %i columns leaves out the last columns before it cuts a title, and reports which",
    async (columns, head, note) => {
      const agents = ["one", "two"].map((name) =>
        device({ id: `dev_${"x".repeat(14)}`, title: `research-agent-${name}`, last_seen: LAST_SEEN }),
      );
      const { out, err } = await print("table", agents, { io: terminal(columns) });
      expect(linesOf(out)[0]).toMatch(head);
      for (const name of ["one", "two"]) expect(out).toContain(`research-agent-${name} `);
      expect(linesOf(err)).toEqual(note === undefined ? [] : [note]);
    },
  );

  it("colours states and isolates text from right to left, which takes no column", async () => {
    const states = ["active", "revoked", "odd"].map((status) => device({ status, title: "سطح المكتب" }));
    const { out } = await print("table", states, { io: { tty: true, columns: 80 } });
    const [, first = "", second = "", third = ""] = linesOf(out);
    expect(first).toContain("\u001b[32mactive\u001b[39m");
    expect(second).toContain("\u001b[31mrevoked\u001b[39m");
    expect(third).toContain("  odd ");
    expect(first).toMatch(/^\u2068سطح المكتب\u2069 {2}dev_1/);
    expect((await print("table", states)).out).not.toContain("\u2068");
  });

  it("of 40 columns gets a table where the columns fit when cut, and says so once", async () => {
    const many = Array.from({ length: 450 }, () => items).flat();
    const { out, err } = await print("table", many, {
      io: terminal(40),
      flags: { columnsFlag: "id,title,status,session_type" },
    });
    expect(linesOf(out)[0]).toMatch(/^ID {11}TITLE {4,}STATUS {2}SESSION$/);
    expect(err.match(/cells that end with … are cut/g)).toHaveLength(1);
    expect(linesOf(out)).toHaveLength(many.length + 1);
  });

  it("of 80 columns cuts long text with … and says so once", async () => {
    const { out, err } = await print("table", items, { io: TERMINAL });
    expect(out).toMatch(/A laptop with quite a lo.*… {2}dev/);
    expect(err).toEqual(
      expect.stringContaining("cells that end with … are cut; -o wide and -o plain show them whole\n"),
    );
  });

  it("says nothing where everything is shown", async () => {
    expect((await print("table", [device()], { io: TERMINAL })).err).toBe("");
  });

  it("says it also when the list ends early, and not with quiet", async () => {
    expect((await print("table", items, { io: TERMINAL, abort: true })).err).toContain("are cut");
    expect((await print("table", items, { io: { ...TERMINAL, quiet: true } })).err).toBe("");
  });

  it("of 20 columns gets records with every column, none cut", async () => {
    const { out, err } = await print("table", items, { io: terminal(20), pageSize: 1 });
    const [first, second, ...rest] = out.split("\n\n");
    expect(rest).toEqual([]);
    expect(first).toContain("title:          A laptop with quite a long name that goes on\n");
    expect(second).toMatch(/^title: {10}Laptop\nid: {13}dev_1\n/);
    expect(second).toContain("last_seen.city: Köln, DE\n");
    expect(err).toBe("");
  });

  it("gets a table for one or two columns that fit", async () => {
    const { out } = await print("table", [device()], { io: terminal(20), flags: { columnsFlag: "id,status" } });
    expect(out).toBe("ID     STATUS\ndev_1  active\n");
  });

  it("cuts between characters, not inside them", async () => {
    const item = { title: `${"日".repeat(30)}` };
    const { out } = await print("table", [item], { io: terminal(20), flags: { columnsFlag: "title", noHeader: true } });
    expect(out).toBe(`${"日".repeat(9)}…\n`);
  });
});

describe("more rows than are measured at once", () => {
  const rows = (count: number) => Array.from({ length: count }, (_, index) => device({ id: `dev_${index}` }));

  it("come out one a line, ten thousand of them", async () => {
    const lines = linesOf((await print("table", rows(10_000), { io: TERMINAL, pageSize: 100 })).out);
    expect(lines).toHaveLength(10_001);
    expect(lines.at(-1)).toMatch(/^Laptop +dev_9999 +active/);
    expect(lines.filter((line) => line.startsWith("TITLE"))).toHaveLength(1);
  });

  it("are cut on a terminal when they are wider than it, and never in a pipe", async () => {
    const long = "x".repeat(300);
    const items = [...rows(200), device({ title: long })];
    const onTerminal = await print("table", items, { io: TERMINAL });
    expect(onTerminal.out).not.toContain(long);
    expect(onTerminal.err).toContain("cells that end with … are cut");
    const piped = await print("table", items);
    expect(piped.out).toContain(long);
    expect(piped.err).toBe("");
  });

  it("are separated by a blank line as records", async () => {
    const { out } = await print("table", rows(401), { io: terminal(20), flags: { columnsFlag: "id,title,status" } });
    expect(out.split("\n\n")).toHaveLength(401);
  });
});

describe("a bounded table", () => {
  const items = [device(), device({ id: "dev_20", title: "東京 📡" }), device({ title: "é – x".repeat(40) })];

  it.each([TERMINAL, undefined])("comes out as the rows of a long list do: %o", async (io) => {
    const streamed = await print("table", items, io && { io });
    const whole = await print("table", items, { ...(io && { io }), flags: { bounded: true } });
    expect([whole.out, whole.err]).toEqual([streamed.out, streamed.err]);
  });

  it("is drawn as a whole by cli-table3, and printed row by row where it is long after all", async () => {
    const drawn = vi.spyOn(Table.prototype, "toString");
    onTestFinished(() => drawn.mockRestore());
    await print("table", items, { flags: { bounded: true } });
    expect(drawn).toHaveBeenCalledTimes(1);
    const many = Array.from({ length: 10_000 }, (_, index) => device({ id: `dev_${index}` }));
    await print("table", many, { flags: { bounded: true } });
    await print("table", items);
    expect(drawn).toHaveBeenCalledTimes(1);
  });
});

describe("wide", () => {
  it("shows every column whole, however long the line", async () => {
    const long = "y".repeat(200);
    const { out, err } = await print("wide", [device({ title: long })], { io: terminal(40) });
    expect(linesOf(out)[0]).toMatch(/ID .*USER AGENT$/);
    expect(out).toContain(long);
    expect(err).toBe("");
  });
});

describe("lines for programs", () => {
  it("are tab-separated without a heading, times in RFC 3339, also on a terminal", async () => {
    const expected = "dev_1\tLaptop\tactive\tmcp\t2023-11-14T22:13:20Z\tDE\tKöln\n";
    for (const io of [{}, terminal(20)]) expect((await print("plain", [device()], { io })).out).toBe(expected);
  });

  it("keep a tab or a line break inside its value", async () => {
    const flags = { columnsFlag: "id,title" };
    expect((await print("plain", [{ id: "a\tb", title: "c\nd" }], { flags })).out).toBe("a\\tb\tc\\nd\n");
  });

  it("are ids alone as id", async () => {
    expect((await print("id", [device(), { id: "a\nb" }, {}])).out).toBe("dev_1\na\\nb\n\n");
  });
});
