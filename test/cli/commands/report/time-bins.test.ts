import { expect, it } from "vitest";
import { binName } from "../../../../src/cli/commands/report/time-bins.js";

it.each([
  ["day", "2026-09-14", "2026-09-14"],
  ["week", "2026-09-14", "2026-09-14"],
  ["month", "2026-09-01", "2026-09"],
  ["quarter", "2026-07-01", "2026 Q3"],
  ["year", "2026-01-01", "2026"],
  ["decade", "2020-01-01", "2020s"],
] as const)("a %s from %s is named %s", (unit, start, name) => {
  expect(binName(unit, start)).toBe(name);
});
