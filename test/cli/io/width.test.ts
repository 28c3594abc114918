import stringWidth from "string-width";
import { expect, it } from "vitest";
import { cutText, textWidth, wrap } from "../../../src/cli/io/terminal.js";

it("agrees with string-width on every character below U+3000", () => {
  const texts = Array.from({ length: 0x2fe0 }, (_, at) => `x${String.fromCharCode(at + 0x20)}x`);
  expect(texts.filter((text) => textWidth(text) !== stringWidth(text))).toEqual([]);
});

it.each([
  ["Köln am Rhein", 6, "Köln …"],
  ["plain text", 10, "plain text"],
  ["plain text", 9, "plain te…"],
  ["plain text", 1, "…"],
  ["日本", 0, ""],
  ["日本", 1, "…"],
  ["日本", 3, "日…"],
  ["日本", 4, "日本"],
  ["plain text", 0, ""],
  ["日本語の文字", 6, "日本…"],
  ["e\u0301e\u0301e\u0301", 2, "e\u0301…"],
])("cuts %j to %i columns", (text, width, expected) => {
  expect(cutText(text, width)).toBe(expected);
});

it.each([
  ["", 5, [""]],
  ["one two three", 7, ["one two", "three"]],
  ["one two three", 6, ["one", "two", "three"]],
  ["longest of all", 3, ["longest", "of", "all"]],
  ["日本 語", 7, ["日本 語"]],
  ["日本 語", 6, ["日本", "語"]],
])("%j in %i columns has the lines %j", (text, width, lines) => {
  expect(wrap(text, width)).toEqual(lines);
});

it("measures as many texts as come", () => {
  const texts = Array.from({ length: 5000 }, (_, nth) => `日${nth}`);
  expect([...texts, ...texts].map(textWidth)).toEqual([...texts, ...texts].map((text) => text.length + 1));
});
