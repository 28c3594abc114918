import { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import type { PolicyOption, Remedy } from "../remedy.js";

export interface Complaint {
  /** The member or parameter, such as `issuer`. */
  field: string;
  value: unknown;
  from: string;
  /** The address asked, where the advice depends on it. */
  url?: string | undefined;
  /** The rule it breaks, to be read after the value: `must be the address it was asked from (RFC 8414 section 3.3)`. */
  rule: string;
  /** The option that disables the rule, where there is one. */
  override?: PolicyOption | undefined;
  /** The value that the option needs. */
  overrideValue?: string | undefined;
  /** What else helps, where no option disables the rule. */
  remedy?: Remedy | undefined;
  /** The same in words. */
  hint?: string | undefined;
}

/** The error for a peer that broke a rule: it names the field, the value, where it came from, the rule, the override. */
export function refusalError(
  code: string,
  { field, value, from, url, rule, override, overrideValue, remedy, hint }: Complaint,
): AgentAuthError {
  const shown = value === undefined ? "" : ` ${quote(value)}`;
  const broken = value === undefined ? `is missing, and ${rule}` : rule;
  return new AgentAuthError(code, `${field}${shown} (from ${quote(from)}) ${broken}`, {
    class: "refused",
    url,
    ...(override === undefined ? { remedy, hint } : explainOverride(override, overrideValue)),
  });
}

/** The options that are no members of `policy`. */
const FLAT: ReadonlySet<PolicyOption> = new Set(["allowNonLoopback", "dpop", "resource"]);

/** Where the options of a client have an option: `policy.allowPrivateNetwork`. */
export function optionPath(option: PolicyOption): string {
  return FLAT.has(option) ? option : `policy.${option}`;
}

/** The remedy against a refusal by a check that an option disables. */
export function explainOverride(option: PolicyOption, value?: string): { hint: string; remedy: Remedy } {
  const set = option === "dpop" ? "auto" : value;
  const setting = set === undefined ? optionPath(option) : `${optionPath(option)}: ${quote(set)}`;
  return {
    hint: `if you trust this server, ${setting} disables this check for it`,
    remedy: { action: "allow", option, ...(value !== undefined && { value }) },
  };
}
