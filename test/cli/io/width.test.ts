import stringWidth from "string-width";
import { expect, it } from "vitest";
import { cutText, textWidth } from "../../../src/cli/io/width.js";

it("agrees with string-width on every character below U+3000", () => {
  const texts = Array.from({ length: 0x2fe0 }, (_, at) => `x${String.fromCharCode(at + 0x20)}x`);
  expect(texts.filter((text) => textWidth(text) !== stringWidth(text))).toEqual([]);
});

it.each([
  ["Köln am Rhein", 6, "Köln …"],
  ["plain text", 1, "…"],
  ["plain text", 0, ""],
  ["日本語の文字", 6, "日本…"],
  ["e\u0301e\u0301e\u0301", 2, "e\u0301…"],
])("cuts %j to %i columns", (text, width, expected) => {
  expect(cutText(text, width)).toBe(expected);
});
