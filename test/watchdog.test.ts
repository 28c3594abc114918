import { expect, it, onTestFinished, vi } from "vitest";
import { watchdog } from "./helpers/watchdog.js";

/** What vitest calls its reporter with, as far as the watchdog reads it. */
const moduleOf = (relativeModuleId: string) => ({ relativeModuleId, project: { name: "in-process" } });
const caseOf = (file: string, fullName: string) => ({ module: moduleOf(file), fullName });

it("names each minute the files that have run for three minutes, with the cases that have not ended", () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const lines: string[] = [];
  const reporter = watchdog((line) => lines.push(line));
  const call = (hook: keyof typeof reporter, value?: object) =>
    (reporter[hook] as ((value?: object) => void) | undefined)?.(value);
  call("onTestRunStart");
  for (const file of ["hangs.test.ts", "imports.test.ts", "ends.test.ts"]) call("onTestModuleQueued", moduleOf(file));
  for (const name of ["first", "second"]) call("onTestCaseReady", caseOf("hangs.test.ts", name));
  call("onTestCaseResult", caseOf("hangs.test.ts", "first"));
  call("onTestModuleEnd", moduleOf("ends.test.ts"));
  vi.advanceTimersByTime(170_000);
  expect(lines).toEqual([]);
  vi.advanceTimersByTime(10_000);
  expect(lines).toEqual([
    "Still running after 180 s: in-process hangs.test.ts (second)",
    "Still running after 180 s: in-process imports.test.ts (no case reported)",
  ]);
  call("onTestRunEnd");
  vi.advanceTimersByTime(600_000);
  expect(lines).toHaveLength(2);
});
