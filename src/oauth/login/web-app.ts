import { AgentAuthError } from "../../errors.js";
import { isLoopbackHost, parseUrl } from "../../http/address.js";
import { quote } from "../../redact.js";

/** Checks the redirect address of a web app. */
export function checkRedirectUri(redirectUri: string): URL {
  const url = parseUrl(redirectUri);
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && isLoopbackHost(url.hostname));
  if (url !== undefined && isSafe && !url.username && !url.password && !url.href.includes("#")) return url;
  throw usageError(
    "redirectUri",
    redirectUri,
    "must be an https address, or http on a loopback host, without a fragment",
  );
}

/**
 * The address of a page to return to. It is absolute, as a browser reads it: a path such as `/\evil.example` leads to
 * another host.
 *
 * @throws `AgentAuthError` `usage` if it is not on the origin of the redirect address
 */
export function checkReturnTo(returnTo: string | undefined, redirectUri: URL): string | undefined {
  if (returnTo === undefined) return undefined;
  const url = parseUrl(returnTo, redirectUri);
  // The origin of a blob: address is that of its page.
  const isSame = url?.origin === redirectUri.origin && url.protocol === redirectUri.protocol;
  if (url !== undefined && isSame && !url.username && !url.password) return url.href;
  throw usageError(
    "returnTo",
    returnTo,
    `must be a path or an address on the origin of redirectUri, ${redirectUri.origin}`,
  );
}

const MAX_CALLBACK = 64 * 1024;

/** The parameters of a callback: only its query counts, since a proxy may have changed the rest of the address. */
export function readQueryParameters(callback: Request | URL | string): URLSearchParams {
  const address = typeof callback === "string" ? callback : "href" in callback ? callback.href : callback.url;
  if (address.length > MAX_CALLBACK) {
    const message = `the address of the callback is longer than ${MAX_CALLBACK} characters`;
    throw new AgentAuthError("bad_callback", message, { class: "refused" });
  }
  const [, query = ""] = (address.split("#")[0] ?? "").split(/\?(.*)/s);
  return new URLSearchParams(query);
}

function usageError(field: string, value: string, rule: string): AgentAuthError {
  return new AgentAuthError("usage", `${field} ${quote(value)} ${rule}`, { class: "usage" });
}

/** A cookie that only this host gets, over https or on a loopback host, and no script reads; Max-Age 0 removes it. */
export function setCookie(name: string, value: string, maxAgeSeconds: number, path = "/"): string {
  // Lax: the browser comes back from another site.
  return `${name}=${value}; Path=${path}; Max-Age=${maxAgeSeconds}; Secure; HttpOnly; SameSite=Lax`;
}

/** The path of a cookie for one page: where a semicolon would end the attribute, the folder of that part. */
export function cookiePath(page: string): string {
  return new URL(page).pathname.replace(/[^/]*;.*$/, "");
}

/** The value of a cookie in a `Cookie` header; undefined if it is missing or comes twice. */
export function readCookie(header: string, name: string): string | undefined {
  const [value, ...more] = header
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  return more.length === 0 && value !== "" ? value : undefined;
}

/** The names of the cookies in a `Cookie` header that have a form, in its order: the oldest first (RFC 6265 section 5.4). */
export function cookieNames(header: string, form: RegExp): string[] {
  return header.split(";").flatMap((pair) => {
    const [name = ""] = pair.trim().split("=");
    return form.test(name) ? [name] : [];
  });
}
