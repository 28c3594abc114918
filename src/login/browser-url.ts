import { AgentAuthError } from "../errors.js";
import { isLoopbackHost, parseUrl } from "../http/address.js";
import { refusalError } from "../http/refuse.js";
import { escapeText } from "../redact.js";

/** The longest address that every system's opener takes, in bytes. */
const MAX_BYTES = 8 * 1024;
const PLAIN_HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/;

/**
 * Checks an address that the user's browser is sent to: https, or http on this machine; no user, password, control,
 * bidirectional or invisible characters; at most 8 KB.
 *
 * @param field the name of the address, for the error
 * @param from where it came from
 * @returns the normalised address: the host in ASCII, and no quote, parenthesis or other character that means
 * something to a shell or to an opener, apart from `&`, `;`, `$`, `!` and `*`, which are part of addresses
 * @throws AgentAuthError `bad_address`
 */
export function checkBrowserUrl(value: string, field: string, from: string): string {
  const error = (rule: string) => refusalError("bad_address", { field, value, from, rule });
  if (value.length > MAX_BYTES) throw error(`must not be longer than ${MAX_BYTES} bytes`);
  if (escapeText(value) !== value) throw error("must not contain control, bidirectional or invisible characters");
  const url = parseUrl(value);
  if (url === undefined) throw error("must be an absolute URL");
  // This error does not quote the password.
  if (url.username !== "" || url.password !== "") {
    throw new AgentAuthError("bad_address", `${field} must not contain a user name or password`, { class: "refused" });
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") throw error("must be an https address");
  if (url.protocol === "http:" && !isLoopbackHost(url.hostname)) throw error("must be an https address");
  if (!PLAIN_HOST.test(url.hostname)) throw error("must have a plain host name");
  const written = percentEncode(url.href);
  if (written.length > MAX_BYTES) throw error(`must not be longer than ${MAX_BYTES} bytes`);
  return written;
}

/** Encodes percent signs that begin no escape, so that `%NAME%` is no variable, and what the URL standard leaves as it is. */
function percentEncode(href: string): string {
  return href
    .replace(/%(?![0-9a-f]{2})/gi, "%25")
    .replace(/['()`^|\\{}"<>]/g, (found) => `%${found.charCodeAt(0).toString(16).toUpperCase()}`);
}
