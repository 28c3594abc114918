import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import type { Clock } from "../../http/deadline.js";
import { quote } from "../../redact.js";
import { type Events, knownCodeOf, observe, reasonOf, serverOriginOf } from "../../telemetry/emit.js";
import type { EventFields } from "../../telemetry/events.js";
import type { ClientKey } from "../client/client-auth.js";
import type { OAuthHttp } from "../http/http.js";
import { type Grant, type GrantKey, hasExpired, hasSameTokens, tokenGeneration } from "../model/grant.js";
import { type GrantStore, isStoreFailure, type Reservation } from "../model/grant-store.js";
import type { PreviousAttempt } from "../model/lease.js";
import { revokeRecorded, revokeRemotely } from "../token/revocation.js";
import { LOGIN_HINT, loginRemedy, loginRequired } from "./grant-requirements.js";

export interface SaveContext {
  store: GrantStore;
  http: OAuthHttp;
  events: Events;
  clock: Pick<Clock, "sleep">;
  /** What a client of the method `private_key_jwt` signs with. */
  privateKey?: ClientKey | undefined;
  /** Refreshed grants that could not be saved, by the grant before: the only copy of the new tokens. */
  unsaved: Map<string, Grant>;
}

const SAVE_PAUSES_MS = [100, 400, 1500];

/**
 * The refreshed grant that could not be saved, with the generation after the stored one, which may have been marked
 * since.
 */
export function unsavedFor({ unsaved }: Pick<SaveContext, "unsaved">, current: Grant): Grant | undefined {
  const pending = unsaved.get(nameOf(current));
  return pending?.signedInAt === current.signedInAt ? { ...pending, generation: current.generation + 1 } : undefined;
}

/** By the login too: one process serves many users, and nothing says that an issuer never issues a token to two of them. */
function nameOf({ profile, server, account, tokens }: Grant): string {
  return JSON.stringify([profile, server, account, tokens.accessToken.reveal()]);
}

/** Saves the next generation. Until that succeeds it stays in memory: another refresh would end the session. */
export async function saveNext(
  context: SaveContext,
  reservation: Reservation,
  current: Grant,
  next: Grant,
): Promise<Grant> {
  const { store, unsaved } = context;
  const previous = nameOf(current);
  unsaved.set(previous, next);
  const saved = await saveWithRetries(context, reservation, next, current.generation);
  unsaved.delete(previous);
  if (saved) return next;
  const stored = await store.read(current);
  if (!stored) {
    // The process that logged out could revoke only the previous tokens.
    await revokeRecorded(store, next, () => revokeRemotely(next, context));
    throw loginRequired(next, "another process logged out");
  }
  // Another process logged in or refreshed: its tokens are newer.
  if (!stored.retired && !hasSameTokens(stored, current)) return stored;
  // Another process found the grant rejected or the response lost. Its mark is on the tokens that these replace.
  const revived = { ...next, generation: stored.generation + 1 };
  if (stored.signedInAt === next.signedInAt && (await store.save(revived, stored.generation))) return revived;
  throw loginRequired(stored, stored.retired?.reason ?? "another process changed it at the same time");
}

/** The space was reserved, so a failure to save may be temporary. */
async function saveWithRetries(
  { clock, store }: SaveContext,
  reservation: Reservation,
  next: Grant,
  expected: number,
): Promise<boolean> {
  for (const pause of [...SAVE_PAUSES_MS, undefined]) {
    try {
      return await reservation.save(next, expected);
    } catch (error) {
      if (!isStoreFailure(error)) throw error;
      if (pause === undefined) throw grantNotSavedError(next, store.location, error);
      await clock.sleep(pause, new AbortController().signal);
    }
  }
  return false;
}

function grantNotSavedError(grant: Grant, location: string, cause: AgentAuthError): AgentAuthError {
  const message = `the issuer refreshed the token for ${quote(grant.server)}, but the new one cannot be stored in ${quote(location)}: ${cause.message}; the stored refresh token is used up`;
  const { retryable } = cause;
  const advice = retryable
    ? {
        hint: "call again from this process, which saves the token when the store answers",
        remedy: { action: "retry" } as const,
      }
    : cause.hint === undefined
      ? { hint: LOGIN_HINT, remedy: loginRemedy(grant) }
      : { hint: cause.hint };
  return new AgentAuthError("grant_not_saved", message, { class: "store", ...advice, retryable, cause });
}

// The request may have arrived, and the response with the new tokens been lost.
const AMBIGUOUS_CODES = new Set(["timeout", "connection_reset", "bad_json"]);
const LOST_CODES = new Set([...AMBIGUOUS_CODES, "grant_not_saved"]);

/** Whether a token request failed in a way that leaves open whether the issuer has issued new tokens. */
export function isLostResponse(error: AgentAuthError): boolean {
  return AMBIGUOUS_CODES.has(error.code) && error.class === "unavailable";
}

/**
 * The grant with the mark that its refresh token was sent and the response was lost. An issuer that detects reuse ends
 * the session at the second use, so the refresh token is not sent again while the access token is valid.
 */
export function markLost(grant: Grant, code: string, at: number): Grant {
  const lostRefresh = { at, code, generation: tokenGeneration(grant) };
  return { ...grant, generation: grant.generation + 1, lostRefresh };
}

/** Whether the access token is to be used until it expires, because a second refresh could end the session. */
export function isLastToken(grant: Grant, now: number): boolean {
  return grant.lostRefresh !== undefined && !grant.retired && !hasExpired(grant.tokens, now);
}

/** Whether the refresh token was sent before and its response is unknown. */
export function mayHaveBeenUsed(previous: PreviousAttempt | undefined): previous is PreviousAttempt {
  if (!previous?.committed) return false;
  return previous.ended !== "released" || LOST_CODES.has(previous.failure?.code ?? "");
}

/** Why a refresh token may have been used before, for the message of its rejection; empty if it was not. */
export function describeLoss(repeated: boolean, previous: PreviousAttempt | undefined, { lostRefresh }: Grant): string {
  if (repeated) return "; the response to the first attempt was lost";
  if (!mayHaveBeenUsed(previous)) {
    if (lostRefresh === undefined) return "";
    return `; the response to the refresh of ${new Date(lostRefresh.at).toISOString()} was lost (${lostRefresh.code})`;
  }
  const { at, ended } = previous;
  const how = {
    died: "was interrupted when its process ended",
    expired: "did not finish in time",
    released: "got no response that could be stored",
  };
  return `; the refresh that began at ${new Date(at).toISOString()} ${how[ended]}`;
}

type RefreshFields = Omit<EventFields<"refresh">, "durationMs">;

/** A grant with a valid token, and where it came from. */
export interface TokenResult {
  grant: Grant;
  source: EventFields<"token">["source"];
}

/** Gets a grant for a caller, and emits one event for it. */
export async function observeToken(
  events: Events,
  { server }: Pick<GrantKey, "server">,
  serve: () => Promise<TokenResult>,
): Promise<Grant> {
  try {
    const { grant, source } = await serve();
    events.emit("token", () => ({ type: "token", source, issuer: grant.issuer, server: serverOriginOf(server) }));
    return grant;
  } catch (error) {
    events.emit("token", () => ({
      type: "token",
      source: "none",
      code: knownCodeOf(error),
      server: serverOriginOf(server),
    }));
    throw error;
  }
}

export interface ObservedRefresh {
  /** The error of the issuer if the grant is that of another process; undefined if nothing was sent. */
  readonly outcome: "refreshed" | AgentAuthError | undefined;
}

/** Runs a refresh and emits one event for it: none if it sent nothing, because of what another process had done. */
export function observeRefresh<T extends ObservedRefresh>(
  events: Events,
  { issuer, server }: Grant,
  { isRefused, isForced, dueAt }: { isRefused: boolean; isForced: boolean; dueAt?: number },
  work: () => Promise<T>,
): Promise<T> {
  const trigger = dueAt !== undefined ? "keep_alive" : isRefused ? "unauthorized" : isForced ? "requested" : "expired";
  const about = { trigger, grant: "refresh_token", issuer, server: serverOriginOf(server) } as const;
  return observe(events, "refresh", work, (end): RefreshFields | undefined => {
    if ("error" in end) return { ...describeFailure(end.error), ...about };
    const { outcome } = end.result;
    if (outcome === undefined) return undefined;
    return { ...(outcome === "refreshed" ? { outcome: outcome } : describeRejection(outcome)), ...about };
  });
}

function describeRejection(verdict: unknown) {
  return { outcome: "rejected", reason: "issuer", code: knownCodeOf(verdict) } as const;
}

function describeFailure(error: unknown): Pick<RefreshFields, "outcome" | "reason" | "code"> {
  if (!isAgentAuthError(error)) return { outcome: "failed", reason: reasonOf(error), code: knownCodeOf(error) };
  // With a status it is the issuer's own `login_required` (OpenID Connect Core section 3.1.2.6).
  const isLogin = error.code === "login_required" && error.status === undefined;
  // The error for the caller is that a login is required; its cause is what the issuer answered.
  if (isLogin && error.cause !== undefined) return describeRejection(error.cause);
  const isLost = isLostResponse(error) || error.code === "grant_not_saved";
  const reason = isLogin ? "superseded" : reasonOf(error);
  return { outcome: isLost ? "lost" : "failed", reason, code: knownCodeOf(error) };
}
