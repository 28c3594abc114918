import { describe, expect, it } from "vitest";
import { createPainter, fitColumns, growColumns, isolate, rowText, tableText } from "../../../src/cli/output/layout.js";
import { createMemoryIo } from "../../helpers/memory-io.js";

describe("the widths of columns", () => {
  /** Columns as `minimum-natural`. */
  const widths = (text: string) =>
    text
      .split(" ")
      .filter(Boolean)
      .map((one) => {
        const [minimum = 0, natural = 0] = one.split("-").map(Number);
        return { minimum, natural };
      });

  it.each<[string, string, number, string | undefined]>([
    ["are the natural ones where there is room", "2-5 3-7", 14, "5 7"],
    ["grow the narrowest first", "2-5 3-7", 13, "5 6"],
    ["grow the first of two that are equal", "3-9 3-9", 9, "4 3"],
    ["grow none that has enough", "2-2 3-9", 9, "2 5"],
    ["are the least ones where there is no more room", "2-5 3-7", 7, "2 3"],
    ["do not fit", "2-5 3-7", 6, undefined],
    ["need no gap for one column", "2-5", 2, "2"],
    ["of no columns fit anywhere", "", 0, ""],
  ])("%s", (_what, columns, available, expected) => {
    expect(fitColumns(widths(columns), available)?.join(" ")).toBe(expected);
  });

  it("do not shrink for later rows", () => {
    expect(growColumns([5, 3], [2, 4], 20)).toEqual([5, 4]);
    expect(growColumns([5, 3], [2, 9], 9)).toEqual([5, 3]);
    expect(growColumns([5, 3], [9, 9], 12)).toEqual([5, 5]);
  });
});

describe("a row", () => {
  it("is padded to its widths, two blanks apart, with nothing at its end", () => {
    expect(rowText(["a", "日本", "c", ""], [3, 5, 1, 4])).toBe("a    日本   c");
    expect(rowText(["abc", "d"], [1])).toBe("abc  d");
  });

  it("is painted outside its padding, cell by cell", () => {
    expect(rowText(["a", "b"], [2, 2], (cell, index) => `<${cell}${index}>`)).toBe("<a0>   <b1>");
  });
});

it("a table has no borders, and the gap that is asked for", async () => {
  const rows = [
    ["ab", "c"],
    ["d", "日本"],
    ["", "e"],
  ];
  expect(await tableText(rows)).toBe("ab  c\nd   日本\n    e");
  expect(await tableText(rows, 4)).toBe("ab    c\nd     日本\n      e");
});

describe("a cell on a terminal", () => {
  it.each(["שלום", "سلام", "ܫܠܡܐ", "ދިވެހި", "ߒߞߏ", "abc سلام"])(
    "is isolated where it is from right to left: %s",
    (text) => {
      expect(isolate(text)).toBe(`\u2068${text}\u2069`);
    },
  );

  it.each(["", "abc", "日本", "été"])("is not isolated otherwise: %j", (text) => {
    expect(isolate(text)).toBe(text);
  });

  it.each([
    ["active", "32;39"],
    ["failed", "31;39"],
    ["revoked", "31;39"],
    ["expired", "33;39"],
    ["paused", "33;39"],
    ["archived", "2;22"],
  ])("has the colour of the state %s, in the column of states alone", (state, codes) => {
    const { colors } = createMemoryIo({ tty: true }).stdout;
    const paint = createPainter(
      [
        { path: "status", header: "S" },
        { path: "title", header: "T" },
      ],
      colors,
    );
    const [open, close] = codes.split(";");
    expect([paint(state, 0), paint(state, 1), paint(state, 2)]).toEqual([
      ...[`\u001b[${open}m${state}\u001b[${close}m`, state, state],
    ]);
    expect([paint("constructor", 0), paint("שלום", 0)]).toEqual(["constructor", "\u2068שלום\u2069"]);
  });
});
