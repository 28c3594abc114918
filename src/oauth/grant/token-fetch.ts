import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { isPathWithin } from "../../http/address.js";
import { discardBody, parseIfJson, saysJson } from "../../http/buffered-response.js";
import type { Cookies } from "../../http/cookies.js";
import {
  HttpHeaders,
  HttpRequest,
  isRepeatable,
  isRequest,
  isResponse,
  normalizeMethod,
} from "../../http/http-message.js";
import { isSessionUnknown } from "../../http/lost-session.js";
import { leavesOrigin, type OriginReply, sendWithinOrigin } from "../../http/redirect.js";
import { isJsonObject } from "../../http/strict-json.js";
import { quote, type Secret } from "../../redact.js";
import { noResourceMetadata } from "../discovery/resource-metadata.js";
import { proverFor } from "../dpop/dpop.js";
import type { Nonces, Prover } from "../http/http.js";
import { type BearerChallenge, bearerChallenge } from "../model/challenge.js";
import type { Grant } from "../model/grant.js";
import { splitScope, unionScopes } from "../model/scope.js";
import { type GrantOptions, LOGIN_HINT, loginRemedy } from "./grant-requirements.js";

/** The tokens of an agent client for MCP servers: gets one, and replaces one that its server rejected. */
export interface ServerTokens {
  /** The grant for a request; undefined if the server requires no login. */
  grant(
    url: string,
    options: Pick<GrantOptions, "scope" | "signal" | "challenge" | "login">,
  ): Promise<Grant | undefined>;
  /** Called if a server that required no login rejects a request without a token. */
  onRejected(url: string): void;
  refresh(grant: Grant, signal: AbortSignal | undefined): Promise<Grant>;
  /** Logs in again after the server rejected a grant; concurrent callers share the result. */
  replace(
    refused: Grant,
    request: {
      scope?: string;
      previousScope?: string | undefined;
      challenge?: BearerChallenge;
      signal?: AbortSignal | undefined;
    },
  ): Promise<Grant>;
  /**
   * Whether a new grant can replace this one: the user may be asked to log in, or need not be asked.
   *
   * @param login the option of the request
   */
  mayLogin(grant: Grant, login?: boolean): boolean;
  /** Whether the grant comes from a recent login after a rejection: another login would not help. */
  followsRefusal(grant: Grant): boolean;
}

/** The grant that replaces a rejected one: a refreshed one, or that of a login. Notes what it tried. */
export async function recoverToken(
  context: ServerTokens,
  recovery: Recovery,
  { challenge, grant, tried, signal }: RejectedRequest & { signal: AbortSignal | undefined },
): Promise<Grant> {
  tried[recovery] = true;
  const refreshed = recovery === "refresh" ? await tryRefresh(context, grant, signal) : undefined;
  if (refreshed !== undefined) return refreshed;
  if (recovery === "refresh") tried.login = true;
  const scope = recovery === "stepUp" && challenge?.scope !== undefined ? { scope: challenge.scope } : {};
  const previousScope = recovery === "stepUp" ? previousScopes(grant) : undefined;
  return context.replace(grant, { ...scope, previousScope, ...(challenge && { challenge }), signal });
}

function previousScopes(grant: Grant): string | undefined {
  return unionScopes(grant.requestedScope, grant.tokens.scope);
}

/** Longer bodies say something else. */
const MAX_BODY = 1024;
/** The redirects that send a user to a login page, and do not say that the server has moved. */
const TO_LOGIN = new Set([302, 303, 307]);

/**
 * Whether a response says that the server rejected the token, which not every server does with 401: some send the error of
 * RFC 6750 with 400, and some redirect to the login page of their web site, on another origin.
 *
 * @param request the one that had the token
 */
export async function saysTokenRejected(response: Response, { method, url }: { method: string; url: string }) {
  const { status, headers } = response;
  if (status === 401) return true;
  if (TO_LOGIN.has(status)) return method !== "GET" && method !== "HEAD" && leavesOrigin(response, url);
  if (status !== 400) return false;
  if (bearerChallenge(headers)?.error === "invalid_token") return true;
  if (!saysJson(headers) || !isShort(headers)) return false;
  const body = parseIfJson(await response.clone().text());
  return isJsonObject(body) && body["error"] === "invalid_token";
}

function isShort(headers: Headers): boolean {
  return Number(headers.get("content-length") ?? Number.NaN) <= MAX_BODY;
}

/** A shorter one fits into every header. */
const LARGE_TOKEN = 2048;
/** What nginx, Apache and others say with 400 or 413, where RFC 6585 has 431. */
const HEADERS_TOO_LARGE = /\bheaders?\b[^.]*\b(?:too (?:large|long|big)|exceeds?)\b/i;

/** The error for a token that is too large for the headers that a server, or a proxy in front of it, accepts. */
async function tokenTooLarge(response: Response, { server, tokens }: Grant): Promise<AgentAuthError | undefined> {
  const { status, headers } = response;
  const { length } = tokens.accessToken.reveal();
  if (length < LARGE_TOKEN || ![400, 413, 431].includes(status)) return undefined;
  const isSaid = status === 431 || (isShort(headers) && HEADERS_TOO_LARGE.test(await response.clone().text()));
  if (!isSaid) return undefined;
  const message = `${quote(server)}, or a proxy in front of it, refuses headers of this size (HTTP ${status}): the token alone has ${length} characters`;
  const hint =
    "request fewer scopes, have the issuer put fewer claims into the token, or raise the limit for headers there";
  return new AgentAuthError("http_error", message, { class: "remote", status, hint });
}

/** The error for a server that redirects requests with a token to a login page. */
function redirectedToLogin(grant: Grant, refused: AgentAuthError | undefined): AgentAuthError {
  const message = `${quote(grant.server)} rejected the token: ${refused?.message ?? "it redirects to a login page"}`;
  const details = { status: refused?.status, cause: refused, hint: LOGIN_HINT, remedy: loginRemedy(grant) };
  return new AgentAuthError("login_required", message, { class: "auth", ...details });
}

type Recovery = "refresh" | "login" | "stepUp";

/** A request that the server rejected, and the recoveries tried so far. */
export interface RejectedRequest {
  status: number;
  challenge: BearerChallenge | undefined;
  grant: Grant;
  tried: Record<Recovery, boolean>;
}

/**
 * The next recovery of a rejected request; undefined if none is left.
 *
 * @throws `AgentAuthError` `insufficient_scope` if the token lacks scopes that no login may request
 */
export function chooseRecovery(
  { status, challenge, grant, tried }: RejectedRequest,
  { mayLogin, followsRefusal }: Pick<ServerTokens, "mayLogin" | "followsRefusal">,
): Recovery | undefined {
  if (status !== 401 && status !== 403) return undefined;
  const isFutile = followsRefusal(grant);
  if (status === 401) {
    if (!tried.refresh && !tried.login && grant.tokens.refreshToken !== undefined) return "refresh";
    return mayLogin(grant) && !tried.login && !isFutile ? "login" : undefined;
  }
  if (challenge?.error !== "insufficient_scope" || tried.stepUp) return undefined;
  const isRepeated = wasRequested(grant, challenge.scope);
  if (mayLogin(grant) && !(isFutile && isRepeated)) return "stepUp";
  const lacks = isFutile && isRepeated ? "still lacks scopes after a login that requested them" : "lacks scopes";
  const message = `the token for ${quote(grant.server)} ${lacks}: ${quote(challenge.scope ?? "(unspecified)")}`;
  const remedy = loginRemedy(grant, { scope: unionScopes(previousScopes(grant), challenge.scope) });
  throw new AgentAuthError("insufficient_scope", message, { class: "auth", status: 403, hint: LOGIN_HINT, remedy });
}

/** Whether the login of this grant already requested the missing scopes. */
export function wasRequested({ requestedScope }: Grant, missing: string | undefined): boolean {
  const requested = new Set(splitScope(requestedScope));
  return splitScope(missing).every((scope) => requested.has(scope));
}

/** Refreshes; undefined if the issuer refuses, so that the caller tries the next recovery. */
async function tryRefresh(context: ServerTokens, grant: Grant, signal: AbortSignal | undefined) {
  try {
    return await context.refresh(grant, signal);
  } catch (error) {
    if (isAgentAuthError(error, "login_required") && context.mayLogin(grant)) return undefined;
    throw error;
  }
}

const MINUTE_MS = 60_000;
const MAX_REFUSALS_PER_MINUTE = 3;

/** The grant with one more refresh after a rejection; entries older than a minute are dropped. */
export function noteRefusal(grant: Grant, now: number): Grant {
  return { ...grant, refusals: [...grant.refusals.filter((at) => now - at < MINUTE_MS && at <= now), now] };
}

/**
 * Whether a server rejects the tokens of a grant as fast as the issuer refreshes them, so that another refresh would not
 * help. Each login counts by itself: many users may get a 401 within one minute, for example after a server has lost
 * its keys.
 */
export function isStorm({ refusals }: Grant, now: number): boolean {
  const recent = refusals.filter((at) => now - at < MINUTE_MS && at <= now);
  return recent.length >= MAX_REFUSALS_PER_MINUTE;
}

/** What `AgentClient.fetch` takes beside the options of `fetch`. */
export interface AgentRequestInit extends RequestInit {
  /** The MCP server whose token the request carries, if the address is below that of the server. Default: the address. */
  server?: string | undefined;
  /** The scopes that the token must have, separated by blanks. */
  scope?: string | undefined;
  /** Whether to log in if needed. Default: true if the client has a `login` method. */
  login?: boolean | undefined;
  /** Gets each token right before it is sent, such as to mask it in what the server answers. */
  onToken?: ((token: Secret) => void) | undefined;
  /** With the `redirect` mode `manual`: whether a redirect to an address of the origin is followed. Default: none is. */
  mayFollow?: ((target: string) => boolean) | undefined;
}

export interface FetchContext extends ServerTokens {
  /** The `fetch` for requests to a server, with the token of a grant if there is one. */
  fetchFor(url: string, grant: Grant | undefined): typeof globalThis.fetch;
  /** The cookies of the server for a grant, or for requests without one. */
  cookiesFor(url: string, grant: Grant | undefined): Cookies;
  nonces: Nonces;
  userAgent: string;
}

/**
 * Sends a request with the token of its server. Each recovery is tried once: a rejected token is refreshed, then replaced
 * by a new login; missing scopes are requested. If the server still rejects the request, its response is returned.
 */
export async function fetchWithToken(
  tokens: FetchContext,
  input: string | URL | Request,
  { server: named, scope, login, onToken, mayFollow, ...init }: AgentRequestInit,
): Promise<Response> {
  const context = { ...tokens, mayLogin: (grant: Grant) => tokens.mayLogin(grant, login) };
  const signal = init.signal ?? (isRequest(input) ? input.signal : undefined) ?? undefined;
  const replay = toReplay(input, { init, mayFollow, userAgent: context.userAgent });
  const { url } = replay;
  const server = named === undefined ? url : resolveServer(named, url);
  const options = { signal, login, ...(scope !== undefined && { scope }) };
  const first = (await context.grant(server, options)) ?? (await sendWithout(context, replay, server, options));
  if (isResponse(first)) return first;
  let grant = first;
  const tried = { refresh: false, login: false, stepUp: false };
  for (;;) {
    onToken?.(grant.tokens.accessToken);
    const { response, refused } = await sendWithToken(context, replay, grant);
    // The response of another server after a redirect says nothing about this server's token.
    if (response.redirected && new URL(response.url).origin !== new URL(url).origin) return response;
    if (response.status === 401 && (await isSessionUnknown(response, replay.headers()))) return response;
    const tooLarge = await tokenTooLarge(response, grant);
    if (tooLarge !== undefined) await discardBody(response);
    if (tooLarge !== undefined) throw tooLarge;
    const challenge = bearerChallenge(response.headers);
    const isRejected = await saysTokenRejected(response, replay);
    const rejection = { status: isRejected ? 401 : response.status, challenge, grant, tried };
    const recovery = await orDiscard(response, () => chooseRecovery(rejection, context));
    if (recovery === undefined && refused === undefined) return response;
    await discardBody(response);
    if (recovery === undefined) throw isRejected ? redirectedToLogin(grant, refused) : refused;
    replay.require();
    grant = await recoverToken(context, recovery, { ...rejection, signal });
  }
}

/** Sends a request without a token. @returns the response, or the grant to send it with if it was rejected */
async function sendWithout(
  context: FetchContext,
  replay: Replay,
  server: string,
  options: { signal: AbortSignal | undefined; login: boolean | undefined; scope?: string },
): Promise<Response | Grant> {
  const { response, refused } = await sendWithToken(context, replay, undefined);
  const { status } = response;
  const challenge = bearerChallenge(response.headers);
  const isNamed = status >= 300 && (challenge?.resourceMetadata.length ?? 0) > 0;
  const isRejected = status === 401 || (status === 403 && challenge !== undefined) || isNamed;
  if (refused !== undefined && !isRejected) await discardBody(response);
  if (refused !== undefined && !isRejected) throw refused;
  if (!isRejected || response.redirected) return response;
  context.onRejected(server);
  return orDiscard(response, async () => {
    const grant = await context.grant(server, { ...options, challenge }).catch((error: unknown) => {
      // A login is required that would find out no more than the request did.
      const isUnknown = isAgentAuthError(error, "login_required") && error.status === undefined;
      if (!isUnknown || challenge?.resourceMetadata.length !== 0) throw error;
      throw noResourceMetadata(server, { status, challenge });
    });
    if (grant === undefined) return response;
    await discardBody(response);
    replay.require();
    return grant;
  });
}

/** Runs what decides about a response; if that throws, nobody reads the body, which would occupy its connection. */
async function orDiscard<T>(response: Response, decide: () => T | Promise<T>): Promise<T> {
  try {
    return await decide();
  } catch (error) {
    await discardBody(response);
    throw error;
  }
}

/** The server whose token a request carries. @throws `TypeError` if the address is not below it */
function resolveServer(server: string, url: string): string {
  const [base, target] = [new URL(server), new URL(url)];
  if (base.origin === target.origin && isPathWithin(target.pathname, base.pathname)) return server;
  throw new TypeError(`the option server is ${quote(server)}, and the address ${quote(url)} is not below it`);
}

/** A response to a request with a token, and why a redirect in it was not followed. */
type SentReply = Pick<OriginReply<unknown>, "refused"> & { response: Response };

/**
 * Sends a request with a grant's token: as a bearer token, or with a DPoP proof if the token is bound to a key; without
 * a grant, without a token. Redirects are followed within the origin only, because the request is for its server.
 */
async function sendWithToken(context: FetchContext, replay: Replay, grant: Grant | undefined): Promise<SentReply> {
  const { method, url, mayFollow = () => false } = replay;
  const send = context.fetchFor(url, grant);
  const token = grant?.tokens.accessToken.reveal();
  const prover = grant && proverFor(grant, context.nonces);
  // fetch sends the Authorization header to the same origin only.
  if (!prover && replay.mayFollow === undefined && hasOnlyPublicHeaders(replay))
    return { response: await send(...replay.next(buildBearerHeaders(token))), refused: undefined };
  const cookies = context.cookiesFor(url, grant);
  // A browser does not show the target of a redirect.
  const redirect = replay.redirect === "follow" ? "manual" : replay.redirect;
  const sendTo = async (target: string, hop: number, more: Record<string, string>) => {
    for (let isRetry = false; ; isRetry = true) {
      if (hop > 0 || isRetry) replay.require();
      const previousNonce = prover?.nonces.get(target);
      // A proof is for one address, so every hop needs its own.
      const headers = { ...more, ...(await buildTokenHeaders(token, prover, { method, url: target })) };
      const response = await send(...replay.next(headers, { redirect }, hop === 0 ? undefined : target));
      prover?.nonces.learn(target, response.headers);
      // If the server requires a nonce in the proof (RFC 9449 section 9), the request is repeated once. Another request
      // may have received the nonce in the meantime.
      const isNew = prover !== undefined && prover.nonces.get(target) !== previousNonce;
      if (isRetry || !isNew || !isNonceChallenge(response)) return { response };
      await discardBody(response);
    }
  };
  const follows = replay.redirect === "follow";
  const ownCookie = replay.headers().get("cookie");
  const request = { method, url, mayRepeat: true, mayFollow: follows ? undefined : mayFollow, cookies, ownCookie };
  const { reply, refused } = await sendWithinOrigin(request, sendTo);
  return { ...reply, refused: follows ? refused : undefined };
}

const PUBLIC_HEADERS = new Set([
  ...["accept", "accept-encoding", "accept-language", "cache-control", "if-modified-since", "if-none-match"],
  ...["pragma", "range", "user-agent"],
]);

/** Whether any server that this one redirects to may see the request without its token. */
function hasOnlyPublicHeaders(replay: Replay): boolean {
  if (replay.method !== "GET" && replay.method !== "HEAD") return false;
  return [...replay.headers().keys()].every((name) => name === "authorization" || PUBLIC_HEADERS.has(name));
}

function buildBearerHeaders(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

async function buildTokenHeaders(
  token: string | undefined,
  prover: Prover | undefined,
  request: { method: string; url: string },
): Promise<Record<string, string>> {
  if (!prover || token === undefined) return buildBearerHeaders(token);
  return { authorization: `DPoP ${token}`, dpop: await prover.proof(request, token) };
}

function isNonceChallenge(response: Response): boolean {
  return response.status === 401 && bearerChallenge(response.headers)?.error === "use_dpop_nonce";
}

/** A request that can be sent several times, if its body allows. */
interface Replay {
  readonly url: string;
  readonly method: string;
  /** Which redirects inside the origin are followed although the mode is manual. */
  readonly mayFollow: AgentRequestInit["mayFollow"];
  readonly redirect: NonNullable<RequestInit["redirect"]>;
  headers(): HttpHeaders;
  /** The arguments for `fetch`, with additional headers, options and another address. */
  next(headers: Record<string, string>, over?: RequestInit, url?: string): [string | URL | Request, RequestInit];
  /** @throws `AgentAuthError` `body_not_replayable` if it cannot be sent again */
  require(): void;
}

function toReplay(
  input: string | URL | Request,
  { init, mayFollow, userAgent }: { init: RequestInit; userAgent: string } & Pick<Replay, "mayFollow">,
): Replay {
  const { body } = init;
  const isStream =
    typeof body === "object" && body !== null && (body instanceof ReadableStream || Symbol.asyncIterator in body);
  const request = isRequest(input) ? input : undefined;
  // Whatever else has a body can be read once. To ask for the stream of a text would make one.
  const isUsedUp = request instanceof HttpRequest ? !isRepeatable(request.payload) : Boolean(request?.body);
  const redirect = init.redirect ?? request?.redirect ?? "follow";
  const ownHeaders = () => {
    const headers = new HttpHeaders(init.headers ?? request?.headers);
    if (!headers.has("user-agent")) headers.set("user-agent", userAgent);
    return headers;
  };
  return {
    url: request?.url ?? String(input),
    method: normalizeMethod(init.method ?? request?.method ?? "GET"),
    mayFollow,
    redirect,
    headers: ownHeaders,
    next(more, over = {}, url) {
      const headers = ownHeaders();
      for (const [name, value] of Object.entries(more)) headers.set(name, value);
      const fresh = isUsedUp && request ? request.clone() : input;
      return [url === undefined ? fresh : movedTo(url, fresh), { ...init, redirect, headers, ...over }];
    },
    require() {
      if (!isStream) return;
      const message =
        "the server requires the request again, with another proof or token, but its body is a stream that can be sent only once";
      const hint = "give the body as a string, bytes or a form";
      throw new AgentAuthError("body_not_replayable", message, { class: "auth", hint });
    },
  };
}

function movedTo(url: string, input: string | URL | Request): string | Request {
  if (input instanceof HttpRequest) return input.movedTo(url);
  return isRequest(input) ? new Request(url, input) : url;
}
