import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { isRequest, isResponse } from "../http/own-fetch.js";
import { quote } from "../redact.js";
import type { LoginRemedy } from "../remedy.js";
import { noResourceMetadata } from "./discovery/resource-metadata.js";
import { sendWithToken } from "./dpop/bound-fetch.js";
import { LOGIN_HINT, loginRemedy } from "./grant/login-required.js";
import type { GrantOptions } from "./grant/token-options.js";
import type { Nonces } from "./http/nonces.js";
import { type Replay, replayable } from "./http/replay.js";
import { type BearerChallenge, bearerChallenge } from "./model/challenge.js";
import type { Grant } from "./model/grant.js";
import { splitScope, unionScopes } from "./model/scope.js";

/** What `fetch` needs from its agent. */
export interface FetchContext {
  /** The `fetch` for requests to a server, with the token of a grant if there is one. */
  fetchFor(url: string, grant: Grant | undefined): typeof globalThis.fetch;
  /** The grant for a request; undefined if the server requires no login. */
  grant(url: string, options: Pick<GrantOptions, "scope" | "signal" | "challenge">): Promise<Grant | undefined>;
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
  mayLogin: boolean;
  /** Whether the grant comes from a recent login after a rejection: another login would not help. */
  followsRefusal(grant: Grant): boolean;
  /** DPoP nonces of the servers. */
  nonces: Nonces;
}

/**
 * Sends a request with the token of its server. Each remedy is tried once: a rejected token is refreshed, then replaced
 * by a new login; missing scopes are requested. If the server still rejects the request, its response is returned.
 */
export async function fetchWithToken(
  context: FetchContext,
  input: string | URL | Request,
  init: RequestInit,
): Promise<Response> {
  const signal = init.signal ?? (isRequest(input) ? input.signal : undefined) ?? undefined;
  const replay = replayable(input, init);
  const { url } = replay;
  const first = (await context.grant(url, { signal })) ?? (await sendWithout(context, replay, signal));
  if (isResponse(first)) return first;
  let grant = first;
  const tried = { refresh: false, login: false, stepUp: false };
  for (;;) {
    const response = await sendWithToken(context.fetchFor(url, grant), replay, grant, context.nonces);
    // The response of another server after a redirect says nothing about this server's token.
    if (response.redirected && new URL(response.url).origin !== new URL(url).origin) return response;
    const challenge = bearerChallenge(response.headers);
    const rejection = { status: response.status, challenge, grant, tried };
    const remedy = remedyFor(rejection, context);
    if (remedy === undefined) return response;
    await response.body?.cancel().catch(() => undefined);
    replay.require();
    grant = await applyRemedy(context, remedy, { ...rejection, signal });
  }
}

/** Sends a request without a token. @returns the response, or the grant to send it with if it was rejected */
async function sendWithout(
  context: FetchContext,
  replay: Replay,
  signal: AbortSignal | undefined,
): Promise<Response | Grant> {
  const { url } = replay;
  const response = await sendWithToken(context.fetchFor(url, undefined), replay, undefined, context.nonces);
  const { status } = response;
  const challenge = bearerChallenge(response.headers);
  const isRejected = status === 401 || (status === 403 && challenge !== undefined);
  if (!isRejected || response.redirected) return response;
  context.onRejected(url);
  const grant = await context.grant(url, { signal, challenge }).catch((error: unknown) => {
    throw isLoginUnknown(error) && challenge?.resourceMetadata.length === 0
      ? noResourceMetadata(url, { status, challenge })
      : error;
  });
  if (grant === undefined) return response;
  await response.body?.cancel().catch(() => undefined);
  replay.require();
  return grant;
}

/** Whether a login is required that would find out no more than the request did. */
function isLoginUnknown(error: unknown): boolean {
  return isAgentAuthError(error) && error.code === "login_required" && error.status === undefined;
}

/** The grant that replaces a rejected one: a refreshed one, or that of a login. Notes what it tried. */
export async function applyRemedy(
  context: FetchContext,
  remedy: Remedy,
  { challenge, grant, tried, signal }: RejectedRequest & { signal: AbortSignal | undefined },
): Promise<Grant> {
  tried[remedy] = true;
  const refreshed = remedy === "refresh" ? await tryRefresh(context, grant, signal) : undefined;
  if (refreshed !== undefined) return refreshed;
  if (remedy === "refresh") tried.login = true;
  const scope = remedy === "stepUp" && challenge?.scope !== undefined ? { scope: challenge.scope } : {};
  const previousScope = remedy === "stepUp" ? previousScopes(grant) : undefined;
  return context.replace(grant, { ...scope, previousScope, ...(challenge && { challenge }), signal });
}

/** All scopes requested or granted so far. */
function previousScopes(grant: Grant): string | undefined {
  return unionScopes(grant.requestedScope, grant.tokens.scope);
}

/** A way to replace a rejected token. */
type Remedy = "refresh" | "login" | "stepUp";

/** A request that the server rejected, and the remedies tried so far. */
export interface RejectedRequest {
  status: number;
  challenge: BearerChallenge | undefined;
  grant: Grant;
  tried: Record<Remedy, boolean>;
}

/**
 * The next remedy for a rejected request; undefined if none is left.
 *
 * @throws `AgentAuthError` `insufficient_scope` if the token lacks scopes that no login may request
 */
export function remedyFor(
  { status, challenge, grant, tried }: RejectedRequest,
  { mayLogin, followsRefusal }: Pick<FetchContext, "mayLogin" | "followsRefusal">,
): Remedy | undefined {
  if (status !== 401 && status !== 403) return undefined;
  const isFutile = followsRefusal(grant);
  if (status === 401) {
    if (!tried.refresh && !tried.login && grant.tokens.refreshToken !== undefined) return "refresh";
    return mayLogin && !tried.login && !isFutile ? "login" : undefined;
  }
  if (challenge?.error !== "insufficient_scope" || tried.stepUp) return undefined;
  const isRepeated = wasRequested(grant, challenge.scope);
  if (mayLogin && !(isFutile && isRepeated)) return "stepUp";
  const lacks = isFutile && isRepeated ? "still lacks scopes after a login that requested them" : "lacks scopes";
  const message = `the token for ${quote(grant.server)} ${lacks}: ${quote(challenge.scope ?? "(unspecified)")}`;
  const remedy = stepUp(grant, challenge.scope);
  throw new AgentAuthError("insufficient_scope", message, { class: "auth", status: 403, hint: LOGIN_HINT, remedy });
}

/** Whether the login of this grant already requested the missing scopes. */
export function wasRequested({ requestedScope }: Grant, missing: string | undefined): boolean {
  const requested = new Set(splitScope(requestedScope));
  return splitScope(missing).every((scope) => requested.has(scope));
}

/** The login that requests the previous scopes and the missing ones. */
function stepUp(grant: Grant, missing: string | undefined): LoginRemedy {
  return loginRemedy(grant, { scope: unionScopes(previousScopes(grant), missing) });
}

/** Refreshes; undefined if the issuer refuses, so that the caller tries the next remedy. */
async function tryRefresh(
  context: FetchContext,
  grant: Grant,
  signal: AbortSignal | undefined,
): Promise<Grant | undefined> {
  try {
    return await context.refresh(grant, signal);
  } catch (error) {
    if (isAgentAuthError(error) && error.code === "login_required" && context.mayLogin) return undefined;
    throw error;
  }
}
