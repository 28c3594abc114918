import { onTestFinished } from "vitest";
import { type System, system } from "../../src/platform/system.js";

/** Lets the code under test run on another system until the test has finished. */
export function onSystem(other: Partial<System>): void {
  const before = { ...system };
  onTestFinished(() => void Object.assign(system, before));
  Object.assign(system, other);
}
