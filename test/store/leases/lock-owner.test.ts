import { describe, expect, it } from "vitest";
import { processStart } from "../../../src/store/leases/lock-owner.js";
import { onSystem } from "../../platform/support.js";

describe("the start of a process", () => {
  it.each([
    ["darwin", "Mon Nov 23 06:56:51 2026    \n"],
    // (Get-Date "2026-11-23 06:56:51Z").ToFileTimeUtc()
    ["win32", "134398906110000000\r\n"],
  ] as const)("is read from the answer of the system: %s", (name, answer) => {
    onSystem({ name, run: () => answer });
    expect(processStart(42)).toBe(Date.UTC(2026, 10, 23, 6, 56, 51));
  });

  it.each([
    ["no answer", undefined],
    ["an empty answer", "\n"],
    ["another answer", "no such process"],
  ])("is not known by %s", (_what, answer) => {
    for (const name of ["darwin", "win32"] as const) {
      onSystem({ name, run: () => answer });
      expect(processStart(42)).toBeUndefined();
    }
  });
});
