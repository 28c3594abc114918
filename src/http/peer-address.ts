import { escapeText } from "../redact.js";
import { isLoopbackHost } from "./address.js";
import { type AddressPolicy, classifyHost, ruleOf } from "./address-class.js";
import { refused } from "./refuse.js";

/** What decides where an address may lead. */
export interface PeerPolicy {
  /** How near to us those may be that the server names. */
  bounds: AddressPolicy;
}

/**
 * Checks an address that a peer gave us before anything is sent to it: https (http only between servers on this
 * machine), nothing nearer to us than the server itself, no user or password, no fragment, nothing invisible in it.
 *
 * @returns the address as it was given
 * @throws `AgentAuthError` `bad_address`
 */
export function checkAddress(value: unknown, field: string, from: string, policy: PeerPolicy): string {
  const complain = (rule: string, override?: string) => refused("bad_address", { field, value, from, rule, override });
  if (typeof value !== "string" || !URL.canParse(value)) throw complain("must be an absolute URL");
  const url = new URL(value);
  if (url.protocol !== "https:" && url.protocol !== "http:") throw complain("must be an https address");
  if (url.protocol === "http:" && !isLoopbackHost(url.hostname))
    throw complain("must be an https address (OAuth 2.1 section 1.5)");
  const reach = classifyHost(url.hostname);
  if (reach !== undefined && !policy.bounds(url.hostname, reach)) {
    const { rule, override } = ruleOf(reach);
    throw complain(rule, override);
  }
  if (url.username !== "" || url.password !== "") throw complain("must not contain a user name or password");
  if (url.hash !== "" || value.includes("#")) throw complain("must not have a fragment");
  if (escapeText(value) !== value || /[\s\\]/.test(value))
    throw complain("must not contain blanks, backslashes or invisible characters");
  return value;
}
