import type { DriverHealth } from "./driver.js";

/** Sentences; another value for each that does not hold. */
type Findings = readonly (string | false | undefined)[];
type Facts = Readonly<Record<string, string | null | undefined>>;

/** The report of an engine: the sentences that hold, and the facts that are known. */
export function healthReport(clockAheadMs: number, risks: Findings, errors: Findings, facts: Facts): DriverHealth {
  const holding = (findings: Findings) => findings.filter((finding) => typeof finding === "string");
  const known = Object.entries(facts).filter((fact): fact is [string, string] => fact[1] != null);
  return { clockAheadMs, risks: holding(risks), errors: holding(errors), facts: Object.fromEntries(known) };
}
