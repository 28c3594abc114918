/** What the value of a setting or of a flag must be. Each check throws a `TypeError` with the rule, to be read after the name. */

import { secureAddress } from "../http/address.js";
import { escapeText } from "../redact.js";

/** @throws `TypeError` with the rule, where it does not hold */
export function requireRule(holds: boolean, rule: string): void {
  if (!holds) throw new TypeError(rule);
}

/** Anything but nothing. */
export function nonEmpty(value: string): string {
  requireRule(value.trim() !== "", "must not be empty");
  return value;
}

/** An issuer identifier (RFC 8414 section 2), over TLS or on this machine. */
export function issuerAddress(value: string): string {
  const rule = "must be an https address without a query (http to this machine alone), as the issuer has it";
  requireRule(secureAddress(value) !== undefined && !value.includes("?"), rule);
  return value;
}

export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (value: string) => number {
  return (value) => {
    const number = Number(value);
    const holds = /^\d+$/.test(value) && Number.isSafeInteger(number) && number >= least && number <= most;
    requireRule(holds, `must be a whole number of at least ${least}${most < 1e15 ? ` and at most ${most}` : ""}`);
    return number;
  };
}

/** A positive number of seconds. */
export function parseSeconds(value: string): number {
  const number = Number(value);
  const holds = /^(?:\d+(?:\.\d*)?|\.\d+)$/.test(value) && number > 0 && number <= 86_400;
  requireRule(holds, "must be a number of seconds above 0 and at most 86400");
  return number;
}

/** A text that other programs show: with no control or invisible characters in it. */
export function shortText(most: number): (value: string) => string {
  return (value) => {
    const holds = value.trim() !== "" && value.length <= most && escapeText(value) === value;
    requireRule(holds, `must be a text of 1 to ${most} visible characters`);
    return value;
  };
}
