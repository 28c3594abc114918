import { MASK, type Redactor } from "../../../redact.js";
import type { CheckResult } from "./check.js";
import type { SettingRow } from "./rows.js";

/** What `doctor` found, as `-o json` prints it. Nothing in it is secret. */
export interface Report {
  /** The version of this package. */
  version: string;
  /** As in `process.version`. */
  node: string;
  platform: string;
  checks: CheckResult[];
  settings: SettingRow[];
}

// An address that is none, such as "user:pass@host", is quoted in complaints, and has its password in no known place.
const QUOTED_CREDENTIALS = /"[^"]*@[^"]*"/g;

/** The report with every known and every recognised secret masked. */
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
