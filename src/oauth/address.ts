import { isLoopbackHost } from "../http/address.js";
import { escapeText } from "../redact.js";
import { refused } from "./refuse.js";

/** The rules that lift others for one issuer. */
export interface AddressPolicy {
  /** Whether the person named a server on this machine, so that its issuer may be here too. */
  loopback: boolean;
}

/**
 * Checks an address that a peer gave us before anything is sent to it: https (http only between servers on this
 * machine), no user or password, no fragment, nothing invisible in it.
 *
 * @returns the address as it was given
 * @throws `AgentAuthError` `bad_address`
 */
export function checkAddress(value: unknown, field: string, from: string, policy: AddressPolicy): string {
  const complain = (rule: string) => refused("bad_address", { field, value, from, rule });
  if (typeof value !== "string" || !URL.canParse(value)) throw complain("must be an absolute URL");
  const url = new URL(value);
  if (url.protocol !== "https:" && url.protocol !== "http:") throw complain("must be an https address");
  const local = isLoopbackHost(url.hostname);
  if (url.protocol === "http:" && !local) throw complain("must be an https address (OAuth 2.1 section 1.5)");
  if (local && !policy.loopback)
    throw complain("leads to this machine, which a server elsewhere must not (RFC 9728 section 7.7)");
  if (url.username !== "" || url.password !== "") throw complain("must not contain a user name or password");
  if (url.hash !== "" || value.includes("#")) throw complain("must not have a fragment");
  if (escapeText(value) !== value || /[\s\\]/.test(value))
    throw complain("must not contain blanks, backslashes or invisible characters");
  return value;
}
