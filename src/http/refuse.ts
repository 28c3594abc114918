import { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";

/** A value from a peer that breaks a rule. */
export interface Complaint {
  /** The member or parameter, such as `issuer`. */
  field: string;
  /** Its value. */
  value: unknown;
  /** Where it came from. */
  from: string;
  /** The rule it breaks, to be read after the value: `must be the address it was asked from (RFC 8414 section 3.3)`. */
  rule: string;
  /** The flag that disables the rule, where there is one. */
  override?: string | undefined;
}

/** The error for a peer that broke a rule: it names the field, the value, where it came from, the rule, the override. */
export function refused(code: string, { field, value, from, rule, override }: Complaint): AgentAuthError {
  const shown = value === undefined ? "is missing and" : `${quote(value)}`;
  return new AgentAuthError(code, `${field} ${shown} (from ${quote(from)}) ${rule}`, {
    class: "refused",
    hint: overrideHint(override),
  });
}

/** The hint that names the flag which disables a check, where there is one. */
export function overrideHint(override: string | undefined): string | undefined {
  return override && `if you trust this server, ${override} disables this check for it`;
}
