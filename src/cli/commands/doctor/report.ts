import { MASK, type Redactor } from "../../../redact.js";
import type { CheckResult } from "./check.js";
import type { SettingRow } from "./rows.js";

/** The report of `doctor`, as `-o json` prints it. It contains no secret. */
export interface Report {
  /** The version of this package. */
  version: string;
  /** The version of Node. */
  node: string;
  /** The system, its architecture and its release. */
  platform: string;
  /** In the order in which they were made. */
  checks: CheckResult[];
  /** Every effective setting. */
  settings: SettingRow[];
}

// Error messages quote an invalid URL such as "user:pass@host", whose password has no known position.
const QUOTED_CREDENTIALS = /"[^"]*@[^"]*"/g;

/** The report with every known and every recognized secret masked. */
export function redactReport(report: Report, redactor: Pick<Redactor, "redact">): Report {
  const clean = (text: string) => redactor.redact(text);
  return {
    ...report,
    checks: report.checks.map(({ name, state, found, hint }) => ({
      name,
      state,
      found: clean(found).replace(QUOTED_CREDENTIALS, `"${MASK}"`),
      ...(hint !== undefined && { hint: clean(hint) }),
    })),
    settings: report.settings.map(({ name, value, source }) => ({
      name,
      value: value === null ? null : clean(value),
      source: clean(source),
    })),
  };
}
