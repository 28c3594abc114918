import { escapeText } from "../redact.js";
import type { PolicyOption } from "../remedy.js";
import { isLoopbackHost } from "./address.js";
import { type AddressPolicy, classifyHost, ruleOf } from "./address-class.js";
import { refused } from "./refuse.js";
import { parseUrl } from "./url.js";

/** Which addresses a peer may name. */
export interface PeerPolicy {
  /** The hosts that the server may name. */
  bounds: AddressPolicy;
}

/**
 * Checks an address that a peer named before anything is sent to it: https (http only between servers on this
 * machine), no host less public than the server itself, no user or password, no fragment, no invisible characters.
 *
 * @returns the address, unchanged
 * @throws `AgentAuthError` `bad_address`
 */
export function checkAddress(value: unknown, field: string, from: string, policy: PeerPolicy): string {
  const error = (rule: string, override?: PolicyOption) =>
    refused("bad_address", { field, value, from, rule, override });
  const url = parseUrl(value);
  if (typeof value !== "string" || url === undefined) throw error("must be an absolute URL");
  if (url.protocol !== "https:" && url.protocol !== "http:") throw error("must be an https address");
  if (url.protocol === "http:" && !isLoopbackHost(url.hostname))
    throw error("must be an https address (OAuth 2.1 section 1.5)");
  const addressClass = classifyHost(url.hostname);
  if (addressClass !== undefined && !policy.bounds(url.hostname, addressClass)) {
    const { rule, override } = ruleOf(addressClass);
    throw error(rule, override);
  }
  if (url.username !== "" || url.password !== "") throw error("must not contain a user name or password");
  if (url.hash !== "" || value.includes("#")) throw error("must not have a fragment");
  if (escapeText(value) !== value || /[\s\\]/.test(value))
    throw error("must not contain blanks, backslashes or invisible characters");
  return value;
}
