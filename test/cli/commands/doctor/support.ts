import type { Subject } from "../../../../src/cli/commands/doctor/check.js";

/** What a check finds that looks at these parts of a run alone. */
export function look<Finding>(check: (subject: Subject) => Finding, parts: Partial<Subject>): Finding {
  return check(parts as Subject);
}

/** A home folder that the platform chose. */
export const at = (value: string, source = "default") => ({ value, source });
