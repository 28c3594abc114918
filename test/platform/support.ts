import { onTestFinished } from "vitest";
import { type System, system } from "../../src/platform.js";
import { pasting, type Shell } from "../../src/redact.js";

/** Lets the code under test run on another system until the test has finished, with messages for a shell. */
export function onSystem(other: Partial<System>, shell?: Shell): void {
  const before = { system: { ...system }, pasting: { caller: undefined, ...pasting } };
  onTestFinished(() => {
    Object.assign(system, before.system);
    Object.assign(pasting, before.pasting);
  });
  pasting.caller = undefined;
  Object.assign(system, other);
  if (shell !== undefined) pasting.shell = shell;
}
