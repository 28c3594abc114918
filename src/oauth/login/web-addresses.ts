import { AgentAuthError } from "../../errors.js";
import { isLoopbackHost } from "../../http/address.js";
import { parseUrl } from "../../http/url.js";
import { quote } from "../../redact.js";

/** Checks the redirect address of a web app. */
export function checkRedirectUri(redirectUri: string): URL {
  const url = parseUrl(redirectUri);
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && isLoopbackHost(url.hostname));
  if (url !== undefined && isSafe && !url.username && !url.password && !url.href.includes("#")) return url;
  throw usage("redirectUri", redirectUri, "must be an https address, or http on a loopback host, without a fragment");
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
  throw usage("returnTo", returnTo, `must be a path or an address on the origin of redirectUri, ${redirectUri.origin}`);
}

const MAX_CALLBACK = 64 * 1024;

/** The parameters of a callback: only its query counts, since a proxy may have changed the rest of the address. */
export function parametersOf(callback: Request | URL | string): URLSearchParams {
  const address = typeof callback === "string" ? callback : "href" in callback ? callback.href : callback.url;
  if (address.length > MAX_CALLBACK) {
    const message = `the address of the callback is longer than ${MAX_CALLBACK} characters`;
    throw new AgentAuthError("bad_callback", message, { class: "refused" });
  }
  const [, query = ""] = (address.split("#")[0] ?? "").split(/\?(.*)/s);
  return new URLSearchParams(query);
}

function usage(field: string, value: string, rule: string): AgentAuthError {
  return new AgentAuthError("usage", `${field} ${quote(value)} ${rule}`, { class: "usage" });
}
