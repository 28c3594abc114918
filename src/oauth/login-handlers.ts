import { isAgentAuthError, usageError } from "../errors.js";
import { parseUrl } from "../http/address.js";
import { checkOptionNames, type OptionNames } from "../http/public-class.js";
import type { AgentClient } from "./agent.js";
import type { StartedLogin } from "./login/web-app.js";
import { checkRedirectUri, cookiePath, readCookie, readQueryParameters, setCookie } from "./login/web-app.js";
import { abandonedCookies, cookieName, readState, savedCookieName, WEB_LOGIN_LIFE_MS } from "./login/web-login.js";

/** What the login pages of a web app need; `R` is the request of its framework. */
export interface LoginHandlersOptions<R = Request> {
  /**
   * The client of the user who sent a request, with a `profile` for each user; undefined if no user is logged in to the
   * web app, which is then answered with 401.
   */
  agent: (request: R) => AgentClient | undefined | Promise<AgentClient | undefined>;
  /** The address of the `callback` page: one for every MCP server. */
  redirectUri: string;
  /** The MCP servers that a user may log in at. */
  servers: readonly string[];
  /** Whether a user may log in at the identity provider of the client (its option `idp`). Default false. */
  idp?: boolean | undefined;
  /** The scopes that the query parameter `scope` may name. Default: none, which leaves the choice to the server. */
  scopes?: readonly string[] | undefined;
  /** Called for each login that fails, and for errors of the web app itself. */
  onError?: ((error: unknown) => void) | undefined;
}

const OPTIONS: OptionNames<LoginHandlersOptions> = {
  ...{ agent: true, redirectUri: true, servers: true, idp: true, scopes: true, onError: true },
};

/** The two pages of a login, for GET requests. */
export interface LoginHandlers {
  /**
   * Starts the login at the server of the query parameter `server`, or at the identity provider with the parameter `idp`;
   * `returnTo` and `scope` are optional. Requests that another site caused, also one of the same domain, and scopes that
   * are not in `scopes` get 403.
   */
  start(request: Request): Promise<Response>;
  /** Finishes it, and redirects the browser to `returnTo`, or to `/`. */
  callback(request: Request): Promise<Response>;
}

/**
 * The two pages of a login as fetch-style handlers, for Hono, Next.js or a worker.
 *
 * @example
 * const logins = loginHandlers({ agent: clientOfUser, redirectUri: "https://app.example/oauth/callback", servers });
 * app.get("/oauth/start", (c) => logins.start(c.req.raw));
 * app.get("/oauth/callback", (c) => logins.callback(c.req.raw));
 */
export function loginHandlers(options: LoginHandlersOptions): LoginHandlers {
  checkOptionNames(options, OPTIONS, "loginHandlers");
  checkRedirectUri(options.redirectUri);
  const handler = (page: LoginPage) => (request: Request) => pageResponse(options, page, request, request);
  return { start: handler(startPage), callback: handler(callbackPage) };
}

type PageOptions = Pick<LoginHandlersOptions, "redirectUri" | "servers" | "idp" | "scopes">;

type LoginPage = (agent: AgentClient, request: Request, options: PageOptions) => Promise<Response>;

/** The response of a page to the request of a user, which a framework may have in its own form. */
async function pageResponse<R>(options: LoginHandlersOptions<R>, page: LoginPage, request: Request, original: R) {
  if (request.method !== "GET") return respondPlain(405, "The method is not allowed.", { allow: "GET" });
  try {
    const agent = await options.agent(original);
    return agent === undefined
      ? respondPlain(401, "Log in to this application first.")
      : await page(agent, request, options);
  } catch (error) {
    options.onError?.(error);
    const { status, code } = describeFailure(error);
    return respondPlain(status, `The login failed: ${code}`);
  }
}

/** What a browser learns of an error: the message may have text of a server in it, and is for the operator. */
export function describeFailure(error: unknown): { status: number; code: string } {
  const code = isAgentAuthError(error) && /^[a-z_]{1,40}$/.test(error.code) ? error.code : "internal_error";
  return { status: statusFor(error), code };
}

const startPage: LoginPage = async (agent, request, { redirectUri, servers, idp = false, scopes = [] }) => {
  // Another site must not start logins of its visitors.
  if (comesFromElsewhere(request.headers, redirectUri)) return respondPlain(403, "Start the login on this site.");
  const query = readQueryParameters(request);
  const server = query.get("server") ?? "";
  const isAtIdp = query.has("idp");
  if (!(isAtIdp ? idp : servers.includes(server))) return respondPlain(404, "No login is offered at this server.");
  const [returnTo, scope] = [query.get("returnTo") ?? undefined, query.get("scope") || undefined];
  // A link must not decide how much a user grants.
  if (!isOffered(scope, scopes)) return respondPlain(403, "A scope is not offered.");
  const wanted = { redirectUri, returnTo, scope, signal: request.signal };
  const started = await (isAtIdp ? agent.startIdpLogin(wanted) : agent.startLogin(server, wanted));
  return respondRedirect(started.url, await cookiesOfStart(started, redirectUri, request));
};

/** Whether all scopes of a request, separated by blanks, are in a list; a request may name none. */
export function isOffered(scope: string | undefined, scopes: readonly string[]): boolean {
  return scope?.split(" ").every((one) => scopes.includes(one)) ?? true;
}

/** The cookies to send with the redirect to a login: its own, and none instead of those of logins that were abandoned. */
async function cookiesOfStart(login: StartedLogin, redirectUri: string, request: Request): Promise<string[]> {
  const cookies = await writeCookies(login, redirectUri);
  if (login.saved === undefined) return cookies;
  const abandoned = abandonedCookies(request.headers.get("cookie") ?? "", MAX_SEALED - 1);
  const path = cookiePath(redirectUri);
  const removed = abandoned.flatMap(({ browser, saved }) => [setCookie(browser, "", 0), setCookie(saved, "", 0, path)]);
  return [...removed, ...cookies];
}

/** Whether a page of another origin caused a request: by Fetch Metadata, and in browsers without it by the page it names. */
export function comesFromElsewhere(headers: Headers, redirectUri: string): boolean {
  const site = headers.get("sec-fetch-site");
  // `none`: the user typed the address, or opened a bookmark.
  if (site !== null) return site !== "same-origin" && site !== "none";
  const { origin } = new URL(redirectUri);
  const pages = [headers.get("origin"), headers.get("referer")];
  return pages.some((page) => page !== null && parseUrl(page)?.origin !== origin);
}

/** Finishes a login, or redirects the browser once more if the issuer rejected an optional scope. */
const callbackPage: LoginPage = async (agent, request, { redirectUri }) => {
  const state = readState(readQueryParameters(request));
  const [name, savedName] = [await cookieName(state), await savedCookieName(state)];
  const cookie = request.headers.get("cookie") ?? "";
  const saved = readCookie(cookie, savedName);
  const result = await agent.handleCallback(request, { saved, cookie, signal: request.signal });
  const removed = [setCookie(name, "", 0)];
  if (saved !== undefined) removed.push(setCookie(savedName, "", 0, cookiePath(redirectUri)));
  if (result.done) return respondRedirect(result.done.returnTo ?? new URL("/", redirectUri).href, removed);
  return respondRedirect(result.redirect, [...removed, ...(await writeCookies(result, redirectUri))]);
};

/** Sealed logins of a browser that can wait at once: servers refuse headers of more than 8 or 16 KB. */
const MAX_SEALED = 3;
/** What browsers accept as the name and value of a cookie, in bytes. */
const MAX_COOKIE = 4096;

/** The cookies of a login: a sealed login is in one itself, so that no process has to store it. */
async function writeCookies({ state, saved, cookie }: Omit<StartedLogin, "url">, redirectUri: string) {
  if (saved === undefined) return [cookie];
  const name = await savedCookieName(state);
  if (name.length + saved.length > MAX_COOKIE) {
    const message = `the sealed login has ${saved.length} characters, which is too much for a cookie`;
    const hint = "leave out loginSecret, and use a store that all processes share";
    throw usageError(message, hint);
  }
  return [cookie, setCookie(name, saved, WEB_LOGIN_LIFE_MS / 1000, cookiePath(redirectUri))];
}

const HEADERS = { "cache-control": "no-store", "referrer-policy": "no-referrer" };

function respondRedirect(location: string, cookies: readonly string[]): Response {
  const headers = new Headers({ ...HEADERS, location });
  for (const cookie of cookies) headers.append("set-cookie", cookie);
  return new Response(null, { status: 302, headers });
}

function respondPlain(status: number, text: string, headers: Record<string, string> = {}): Response {
  const type = { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" };
  return new Response(`${text}\n`, { status, headers: { ...HEADERS, ...type, ...headers } });
}

function statusFor(error: unknown): number {
  const errorClass = isAgentAuthError(error) ? error.class : "internal";
  if (errorClass === "unavailable") return 503;
  return ["usage", "refused", "auth", "remote"].includes(errorClass) ? 400 : 500;
}

/** The part of a request of Node's `http` or Express that the pages of a login use. */
export interface LoginNodeRequest {
  /** The HTTP method. */
  method?: string | undefined;
  /** Path and query. */
  url?: string | undefined;
  /** The headers, by their names in lower case. */
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** The part of a response of Node's `http` that the pages of a login use. */
export interface LoginNodeResponse {
  /** The HTTP status to send. */
  statusCode: number;
  /** Sets a header. */
  setHeader(name: string, value: string | readonly string[]): unknown;
  /** Sends the response. */
  end(body?: string): unknown;
}

/** A middleware for Express, or a handler of Node's `http`. */
export type LoginMiddleware<R extends LoginNodeRequest = LoginNodeRequest> = (
  request: R,
  response: LoginNodeResponse,
) => Promise<void>;

/** The two pages of a login, for GET requests. */
export interface LoginMiddlewares<R extends LoginNodeRequest = LoginNodeRequest> {
  /** As `start` of {@link loginHandlers}. */
  start: LoginMiddleware<R>;
  /** As `callback` of {@link loginHandlers}. */
  callback: LoginMiddleware<R>;
}

/**
 * The two pages of a login as handlers for Express, or for Node's `http`.
 *
 * @example
 * const logins = loginMiddlewares({ agent: clientOfUser, redirectUri: "https://app.example/oauth/callback", servers });
 * app.get("/oauth/start", logins.start);
 * app.get("/oauth/callback", logins.callback);
 */
export function loginMiddlewares<R extends LoginNodeRequest = LoginNodeRequest>(
  options: LoginHandlersOptions<R>,
): LoginMiddlewares<R> {
  checkOptionNames(options, OPTIONS, "loginMiddlewares");
  const { origin } = checkRedirectUri(options.redirectUri);
  const middleware = (page: LoginPage): LoginMiddleware<R> => {
    return async (request, response) => {
      const answered = await pageResponse(options, page, buildWebRequest(request, origin), request);
      const { status, headers } = answered;
      response.statusCode = status;
      for (const [name, value] of headers) if (name !== "set-cookie") response.setHeader(name, value);
      const cookies = headers.getSetCookie();
      if (cookies.length > 0) response.setHeader("set-cookie", cookies);
      response.end(await answered.text());
    };
  };
  return { start: middleware(startPage), callback: middleware(callbackPage) };
}

function buildWebRequest({ method = "GET", url = "", headers }: LoginNodeRequest, origin: string): Request {
  const address = new URL(origin);
  address.search = url.split("#")[0]?.split(/\?(.*)/s)[1] ?? "";
  const read = ["cookie", "sec-fetch-site", "origin", "referer"].flatMap((name) => {
    const value = headers[name];
    return value === undefined ? [] : [[name, [value].flat().join("; ")]];
  });
  // Of the other methods, some cannot be in a request of fetch.
  return new Request(address, { method: method === "GET" ? "GET" : "POST", headers: Object.fromEntries(read) });
}
