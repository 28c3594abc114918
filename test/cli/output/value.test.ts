import { describe, expect, it } from "vitest";
import {
  cellText,
  countText,
  isRecord,
  leaves,
  maskSecret,
  project,
  readPath,
  toPlain,
  valueText,
} from "../../../src/cli/output/value.js";
import { print, TERMINAL } from "./printing.js";

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
