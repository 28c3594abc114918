import { isLoopbackHost } from "../http/address.js";
import { parseUrl } from "../http/url.js";

/** What a setting's value must be, as the end of a sentence that names the setting. */
export type SettingRule = (value: string) => void;

/** @throws `TypeError` with the rule, where it does not hold */
export function must(holds: boolean, rule: string): void {
  if (!holds) throw new TypeError(rule);
}

/** One of several words. */
export function oneOf(allowed: readonly string[]): SettingRule {
  return (value) => must(allowed.includes(value), `must be one of ${allowed.join(", ")}`);
}

/** Anything but nothing. */
export function nonEmpty(value: string): void {
  must(value.trim() !== "", "must not be empty");
}

/** An issuer identifier (RFC 8414 section 2), over TLS or on this machine. */
export function issuerAddress(value: string): void {
  const url = parseUrl(value);
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && isLoopbackHost(url.hostname));
  const isPlain = !/[?#]/.test(value) && url?.username === "" && url.password === "";
  must(
    isSafe && isPlain,
    "must be an https address without a query (http to this machine alone), as the issuer has it",
  );
}
