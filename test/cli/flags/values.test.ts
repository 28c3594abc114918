import { describe, expect, it } from "vitest";
import { durationText, parseDuration } from "../../../src/cli/flags/values.js";

describe("a time on the command line", () => {
  it.each([
    ["5s", 5000],
    ["5", 5000],
    ["1.5", 1500],
    ["2m", 120_000],
    ["24h", 86_400_000],
  ])("%s", (text, expected) => {
    expect(parseDuration(text)).toBe(expected);
  });

  it.each(["", "0", "0.9s", "25h", "-1", "5 s", "500ms", "1e3", "NaN", "5d"])("refuses %j", (text) => {
    expect(() => parseDuration(text)).toThrow("must be a time such as 5s");
  });

  it.each([
    [5000, "5s"],
    [1500, "2s"],
    [60_000, "1m"],
    [90_000, "90s"],
  ])("%i milliseconds are said as %s", (ms, expected) => {
    expect(durationText(ms)).toBe(expected);
  });
});
