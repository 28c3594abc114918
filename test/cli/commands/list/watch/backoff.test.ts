import { describe, expect, it } from "vitest";
import { backoff } from "../../../../../src/cli/commands/list/watch/backoff.js";
import { duration, durationText } from "../../../../../src/cli/commands/list/watch/duration.js";
import { AgentAuthError } from "../../../../../src/errors.js";

const NOW = Date.UTC(2026, 0, 31, 12);

function failure(headers?: Record<string, string>): AgentAuthError {
  const response = headers && new Response(null, { status: 503, headers });
  return new AgentAuthError("server_error", "x", { class: "unavailable", response });
}

describe("the wait after a reading that failed", () => {
  it("grows up to a minute, and is never shorter than the interval", () => {
    const waits = [1, 2, 3, 4, 5, 6].map((failures) => backoff(failures, 5000, failure(), NOW));
    expect(waits).toEqual([10_000, 20_000, 40_000, 60_000, 60_000, 60_000]);
    expect(backoff(3, 300_000, failure(), NOW)).toBe(300_000);
  });

  it.each([
    ["in seconds", { "retry-after": "90" }, 90_000],
    ["shorter than ours", { "retry-after": "1" }, 10_000],
    ["as a date", { "retry-after": "Sat, 31 Jan 2026 12:02:00 GMT" }, 120_000],
    [
      "as a date by their clock",
      { "retry-after": "Sat, 31 Jan 2026 18:02:00 GMT", date: "Sat, 31 Jan 2026 18:00:30 GMT" },
      90_000,
    ],
    ["that makes no sense", { "retry-after": "soon" }, 10_000],
    ["that is no HTTP date", { "retry-after": "2027-01-01" }, 10_000],
  ])("heeds a Retry-After %s", (_what, headers, expected) => {
    expect(backoff(1, 5000, failure(headers), NOW)).toBe(expected);
  });
});

describe("a time on the command line", () => {
  it.each([
    ["5s", 5000],
    ["5", 5000],
    ["1.5", 1500],
    ["2m", 120_000],
    ["24h", 86_400_000],
  ])("%s", (text, expected) => {
    expect(duration(text)).toBe(expected);
  });

  it.each(["", "0", "0.9s", "25h", "-1", "5 s", "500ms", "1e3", "NaN", "5d"])("refuses %j", (text) => {
    expect(() => duration(text)).toThrow("must be a time such as 5s");
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
