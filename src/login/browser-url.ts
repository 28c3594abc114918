import { AgentAuthError } from "../errors.js";
import { isLoopbackHost } from "../http/address.js";
import { refused } from "../http/refuse.js";
import { escapeText } from "../redact.js";

/** The longest address that every system's opener takes, in bytes. */
const MAX_BYTES = 8 * 1024;
const PLAIN_HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/;

/**
 * Checks an address that a person's browser is sent to: https, or http on this machine; no user, password, control,
 * bidirectional or invisible characters; at most 8 KB.
 *
 * @param field what the address is, for the complaint
 * @param from where it came from
 * @returns the address written anew: the host in ASCII, and no quote, parenthesis or other character in it that means
 * something to a shell or to an opener, apart from `&`, `;`, `$`, `!` and `*`, which are part of addresses
 * @throws AgentAuthError `bad_address`
 */
export function checkBrowserUrl(value: string, field: string, from: string): string {
  const complain = (rule: string) => refused("bad_address", { field, value, from, rule });
  if (value.length > MAX_BYTES) throw complain(`must not be longer than ${MAX_BYTES} bytes`);
  if (escapeText(value) !== value) throw complain("must not contain control, bidirectional or invisible characters");
  if (!URL.canParse(value)) throw complain("must be an absolute URL");
  const url = new URL(value);
  // The complaint about this one does not quote the password.
  if (url.username !== "" || url.password !== "") {
    throw new AgentAuthError("bad_address", `${field} must not contain a user name or password`, { class: "refused" });
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") throw complain("must be an https address");
  if (url.protocol === "http:" && !isLoopbackHost(url.hostname)) throw complain("must be an https address");
  if (!PLAIN_HOST.test(url.hostname)) throw complain("must have a plain host name");
  const written = percentEncode(url.href);
  if (written.length > MAX_BYTES) throw complain(`must not be longer than ${MAX_BYTES} bytes`);
  return written;
}

/** A percent sign that begins no escape, so that `%NAME%` names nothing, and what the URL standard leaves as it is. */
function percentEncode(href: string): string {
  return href
    .replace(/%(?![0-9a-f]{2})/gi, "%25")
    .replace(/['()`^|\\{}"<>]/g, (found) => `%${found.charCodeAt(0).toString(16).toUpperCase()}`);
}
