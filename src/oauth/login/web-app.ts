import { AgentAuthError, usageError } from "../../errors.js";
import { parseUrl, secureAddress } from "../../http/address.js";
import { quote } from "../../redact.js";
import type { LoginOptions } from "../grant/grant-requirements.js";
import type { AccessToken } from "../model/grant.js";

export function checkRedirectUri(redirectUri: string): URL {
  const url = secureAddress(redirectUri);
  if (url !== undefined) return url;
  const rule = "must be an https address, or http on a loopback host, without a fragment";
  throw usageError(`redirectUri ${quote(redirectUri)} ${rule}`);
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
  const rule = `must be a path or an address on the origin of redirectUri, ${redirectUri.origin}`;
  throw usageError(`returnTo ${quote(returnTo)} ${rule}`);
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

/** Options of `AgentClient.startLogin`. Default scopes: those that the server names. */
export interface StartLoginOptions extends LoginOptions {
  /** Where the browser returns to: an https address of the web app, or http on a loopback host. One serves every server. */
  redirectUri: string;
  /** The page to show after the login: a path, or an address on the origin of `redirectUri`. */
  returnTo?: string | undefined;
}

/** A login that waits for its callback, in any process of a web app. */
export interface StartedLogin {
  /** Where to redirect the browser. */
  url: string;
  /** The `state` of the callback. */
  state: string;
  /** The login, sealed with `loginSecret`; undefined without a `loginSecret`: the store holds it then. */
  saved: string | undefined;
  /** The `Set-Cookie` header to send with the redirect: only the browser with this cookie can finish the login. */
  cookie: string;
}

/** Begins the login of a remedy, even if the user declined it before. */
export interface LoginStart {
  /**
   * Begins the login in a web app, as `AgentClient.startLogin` does, by default for the scopes of the remedy. The client
   * needs a `loginSecret`, or a store with short-lived records.
   */
  (options: StartLoginOptions): Promise<StartedLogin>;
  /** Begins the login with the `login` method of the client; resolves once the user has logged in. */
  (options?: Pick<LoginOptions, "signal" | "authorizationParams">): Promise<unknown>;
}

declare module "../../remedy.js" {
  // Declared here, since remedies are data below all that begins a login.
  interface LoginRemedy {
    /**
     * Begins this login. Set by an `AgentClient` with a `login` method, or one that can start logins in a web app; not
     * enumerable.
     */
    readonly start?: LoginStart | undefined;
  }
}

/** Options of `AgentClient.handleCallback`. */
export interface CallbackOptions {
  /** The `saved` of the login, if it has one. */
  saved?: string | undefined;
  /** The `Cookie` header of the callback. Default: that of the request. */
  cookie?: string | undefined;
  /** Aborts the call. */
  signal?: AbortSignal | undefined;
}

/** A login that a callback finished; its grant is stored. */
export interface FinishedLogin {
  /** The MCP server, or the identity provider. */
  server: string;
  /** The page to show, as an absolute address; undefined if none was named. */
  returnTo: string | undefined;
  /** The token; that of the identity provider is for no MCP server. */
  token: AccessToken;
}

/** A callback that finished its login. */
export interface CallbackDone {
  /** The login. */
  done: FinishedLogin;
  /** Undefined: no other redirect is needed. */
  redirect?: undefined;
  /** Undefined. */
  cookie?: undefined;
}

/** A callback whose issuer rejected an optional scope: redirect the browser once more, with another cookie. */
export interface CallbackRedirect extends Omit<StartedLogin, "url"> {
  /** Undefined: the login waits for another callback. */
  done?: undefined;
  /** Where to redirect the browser. */
  redirect: string;
}

/** The result of a callback. */
export type CallbackResult = CallbackDone | CallbackRedirect;
