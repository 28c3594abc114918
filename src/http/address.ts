import { orUndefined } from "../errors.js";
import { quote } from "../redact.js";

/**
 * Reads an absolute URL, or one relative to a base.
 *
 * No module uses `URL.canParse`: in optimised code, Node.js 20 returns `false` for a host with a letter such as `ü`.
 *
 * @returns undefined for any other value
 */
export function parseUrl(value: unknown, base?: URL): URL | undefined {
  if (typeof value !== "string") return undefined;
  return orUndefined(() => new URL(value, base));
}

/**
 * Text with its percent-encoded characters decoded; a "%" that encodes nothing stays as it is, as in the URL standard.
 */
export function percentDecoded(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (encoded) => {
    return orUndefined(() => decodeURIComponent(encoded)) ?? encoded;
  });
}

/** Whether the `hostname` of a URL is this machine: `localhost`, a name under it, 127.0.0.0/8 or ::1, in any spelling. */
export function isLoopbackHost(hostname: string): boolean {
  return (
    /^(?:.+\.)?localhost\.?$/.test(hostname) ||
    hostname === "[::1]" ||
    /^127(?:\.\d{1,3}){3}$/.test(hostname) ||
    // 127.0.0.0/8 as an IPv6 address (RFC 4291 section 2.5.5.2), as URLs spell it.
    /^\[::ffff:7f[\da-f]{2}:[\da-f]{1,4}\]$/.test(hostname)
  );
}

/**
 * An address that secrets may be sent to: over TLS or inside this machine, without a user name, a password and a fragment.
 *
 * @returns undefined for any other value
 */
export function secureAddress(value: unknown): URL | undefined {
  const url = parseUrl(value);
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && isLoopbackHost(url.hostname));
  return isSafe && !url?.username && !url?.password && !url?.href.includes("#") ? url : undefined;
}

/** Whether a path is another one, or below it. */
export function isPathWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.replace(/\/?$/, "/"));
}

export function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, "$1");
}

/** A host in the one spelling to compare: in lower case, without brackets and the dot of a full name. */
export function bareHost(host: string): string {
  return withoutBrackets(host).replace(/\.$/, "").toLowerCase();
}

/**
 * What an address without a scheme, such as `localhost:3000/mcp`, must have been meant as; undefined for any other text.
 * Plain http is possible for this machine alone.
 */
export function schemelessRule(value: string): string | undefined {
  const [, host = "", port] = /^([\w.-]+|\[[\da-f:]+\])(:\d+)?(?:[/?]|$)/i.exec(value) ?? [];
  const isLoopback = isLoopbackHost(host.toLowerCase());
  if (host === "" || !(isLoopback || port !== undefined || host.includes("."))) return undefined;
  const forms = [`https://${value}`, ...(isLoopback ? [`http://${value}`] : [])];
  return `has no scheme; did you mean ${forms.map((form) => quote(form)).join(" or ")}?`;
}

/**
 * Reads a base address: absolute, https (http only to this machine), without user, password, query or fragment.
 *
 * @returns the address without a trailing slash
 * @throws `TypeError` that names the field, the value and the rule
 */
export function parseBaseUrl(value: string, field: string): string {
  if (typeof value !== "string") throw new TypeError(`${field} is required`);
  // First, because the errors below quote the value.
  if (value.includes("@")) throw new TypeError(`${field} must not contain a user name or password`);
  const error = (rule: string) => new TypeError(`${field} ${quote(value)} ${rule}`);
  const schemeless = schemelessRule(value);
  if (schemeless !== undefined) throw error(schemeless);
  const url = parseUrl(value);
  if (url === undefined) throw error("is not an absolute URL such as https://agentauth.example");
  if (url.protocol !== "https:" && url.protocol !== "http:") throw error("must begin with https://");
  if (url.protocol === "http:" && !isLoopbackHost(url.hostname)) {
    throw error(
      "must begin with https:// (http:// is accepted for loopback addresses only, it would send the token in the clear)",
    );
  }
  if (url.search !== "" || url.hash !== "") throw error("must not contain a query or a fragment");
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** An address for messages: without user, password, query and fragment. */
export function shownUrl(url: string): string {
  const parsed = parseUrl(url);
  return parsed ? `${parsed.origin}${parsed.pathname}` : "";
}
