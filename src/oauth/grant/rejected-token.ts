import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { parseIfJson, saysJson } from "../../http/buffered-response.js";
import { leavesOrigin } from "../../http/redirect.js";
import { isJsonObject } from "../../http/strict-json.js";
import { quote } from "../../redact.js";
import type { LoginRemedy } from "../../remedy.js";
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

/** All scopes requested or granted so far. */
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
export async function saysTokenRejected(
  response: Response,
  { method, url }: { method: string; url: string },
): Promise<boolean> {
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
export async function tokenTooLarge(
  response: Response,
  { server, tokens }: Grant,
): Promise<AgentAuthError | undefined> {
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
export function redirectedToLogin(grant: Grant, refused: AgentAuthError | undefined): AgentAuthError {
  const message = `${quote(grant.server)} rejected the token: ${refused?.message ?? "it redirects to a login page"}`;
  const about = { status: refused?.status, cause: refused, hint: LOGIN_HINT, remedy: loginRemedy(grant) };
  return new AgentAuthError("login_required", message, { class: "auth", ...about });
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
  const remedy = stepUpRemedy(grant, challenge.scope);
  throw new AgentAuthError("insufficient_scope", message, { class: "auth", status: 403, hint: LOGIN_HINT, remedy });
}

/** Whether the login of this grant already requested the missing scopes. */
export function wasRequested({ requestedScope }: Grant, missing: string | undefined): boolean {
  const requested = new Set(splitScope(requestedScope));
  return splitScope(missing).every((scope) => requested.has(scope));
}

/** The login that requests the previous scopes and the missing ones. */
function stepUpRemedy(grant: Grant, missing: string | undefined): LoginRemedy {
  return loginRemedy(grant, { scope: unionScopes(previousScopes(grant), missing) });
}

/** Refreshes; undefined if the issuer refuses, so that the caller tries the next recovery. */
async function tryRefresh(
  context: ServerTokens,
  grant: Grant,
  signal: AbortSignal | undefined,
): Promise<Grant | undefined> {
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
