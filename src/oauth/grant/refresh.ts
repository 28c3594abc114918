import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { type Clock, follow } from "../../http/deadline.js";
import { quote } from "../../redact.js";
import type { Progress } from "../agent-progress.js";
import type { ClientKey } from "../client/client-auth.js";
import { proverFor } from "../dpop/dpop.js";
import type { Nonces } from "../dpop/nonces.js";
import type { OAuthHttp } from "../http/http.js";
import { loginCommand, loginRequired } from "../login/login-command.js";
import { revokeRemotely } from "../token/revocation.js";
import { refreshTokens } from "../token/token.js";
import {
  type Grant,
  hasExpired,
  hasSameTokens,
  mergeAnswer,
  noteRefusal,
  retire,
  type TokenAnswer,
  tokenGeneration,
} from "./grant.js";
import type { GrantStore, Reservation } from "./grant-store.js";
import { type Lease, leaseLost, rethrowRecentFailure } from "./lease.js";
import { describeLoss, isLastToken, isLostAnswer, markLost, mayHaveBeenUsed } from "./lost-refresh.js";
import { withReservation } from "./reservation.js";

/** What a refresh depends on. */
export interface RefreshContext {
  store: GrantStore;
  http: OAuthHttp;
  clock: Pick<Clock, "epoch" | "sleep">;
  /** Milliseconds for a token request. */
  timeoutMs: number;
  /** What a client of the method `private_key_jwt` signs with. */
  privateKey?: ClientKey | undefined;
  /** What issuers want to see in proofs, for grants that are bound to a key. */
  nonces: Nonces;
  /**
   * Grants that were refreshed but could not be saved, by the token before them: the only copy of what the issuer gave.
   */
  unsaved: Map<string, Grant>;
  /** Hears what becomes of the refresh. */
  onProgress?: ((progress: Progress) => void) | undefined;
}

// The issuer's word that the grant itself is over. Everything else may pass, and loses nobody a session.
const REFUSAL_CODES = new Set(["invalid_grant", "invalid_client"]);
const RETRY_TIMEOUT_MS = 5000;
/** What is left of a lease for saving; nothing is sent any more within it. */
const SAVING_MS = 5000;
const SAVE_PAUSES_MS = [100, 400, 1500];

/** Why a grant is to be refreshed. */
export interface RefreshReason {
  isRefused: boolean;
  isForced: boolean;
}

/**
 * Gets the next generation of a grant: under the store's lease, from what is stored by then, saved before it is used.
 *
 * Whoever comes second finds the work done and takes its result. A refusal counts only when the store still holds the
 * grant that was refused; then it is marked as over, and kept.
 *
 * @param seen the grant that is no longer good enough
 * @param why whether its server has refused it, rather than its time being over; whether it is of no use to the caller,
 * however long it still lives
 * @throws `AgentAuthError` `login_required` where the grant is over, class `store`, or a network error that loses nothing
 */
export async function refreshGrant(
  context: RefreshContext,
  seen: Grant,
  { isRefused, isForced: isUrgent }: RefreshReason,
  signal: AbortSignal | undefined,
): Promise<Grant> {
  const { store, clock } = context;
  const newer = async () => {
    const stored = await store.read(seen);
    return stored && !hasSameTokens(stored, seen) && !stored.retired ? stored : undefined;
  };
  const duration = context.timeoutMs + RETRY_TIMEOUT_MS + SAVING_MS;
  return store.lease(
    `refresh ${seen.profile} ${seen.server} ${seen.account ?? ""} ${seen.signedInAt} ${tokenGeneration(seen)}`,
    async (lease) => {
      const current = await store.read(seen);
      if (!current) throw loginRequired(seen, "it was signed out meanwhile");
      const held = unsavedFor(context, current);
      if (held) return withReservation(store, current, (room) => saveNext(context, room, current, held));
      if (current.retired) throw loginRequired(current, current.retired.reason);
      if (!hasSameTokens(current, seen)) return current;
      if (!isUrgent && isLastToken(current, clock.epoch())) return current;
      if (current.tokens.refreshToken === undefined)
        throw loginRequired(current, "the token has expired, and there is no refresh token");
      rethrowRecentFailure(lease, clock.epoch(), isUrgent || hasExpired(current.tokens, clock.epoch()));
      const before = isRefused ? noteRefusal(current, clock.epoch()) : current;
      return refreshUnderLease(context, before, lease, { isRefused, isForced: isUrgent });
    },
    {
      duration,
      once: true,
      patience: 2 * duration,
      signal,
      until: newer,
      onWait: ({ pid }) => report(context, `process ${pid ?? "?"} is renewing this token; waiting for its result`),
    },
  );
}

function refreshUnderLease(context: RefreshContext, current: Grant, lease: Lease, why: RefreshReason): Promise<Grant> {
  const lives = () => !why.isRefused && !hasExpired(current.tokens, context.clock.epoch());
  // Room on the disk comes first: tokens that cannot be kept must not be fetched.
  return withReservation(context.store, current, async (room) => {
    if (!why.isForced && lives() && mayHaveBeenUsed(lease.before)) {
      // Sent by a process that died or could not save: the second send waits until it is the only way left.
      return storeLostMark(context, room, current, lease.before?.failure?.code ?? "interrupted");
    }
    await lease.commit();
    const asked = await sendRefresh(context, current, lease, lives);
    if ("answer" in asked) return saveNext(context, room, current, mergeAnswer(current, asked.answer));
    if ("lost" in asked) {
      await storeLostMark(context, room, current, asked.lost.code);
      throw asked.lost;
    }
    return handleRefusal(context, room, current, asked.verdict, describeLoss(asked.repeated, lease.before, current));
  });
}

/** Stores that the answer to a refresh was lost. Where that fails, the trace of the lease still says so. */
async function storeLostMark(context: RefreshContext, room: Reservation, current: Grant, code: string): Promise<Grant> {
  report(
    context,
    `the answer to the refresh of the token for ${current.server} was lost (${code}): the stored token is used until it expires, then the refresh is tried again`,
  );
  const marked = markLost(current, code, context.clock.epoch());
  try {
    return (await room.save(marked, current.generation)) ? marked : current;
  } catch (error) {
    if (isAgentAuthError(error) && error.class === "store") return current;
    throw error;
  }
}

/**
 * What the issuer gave for a grant and could not be saved; in its place by now, if that was marked as over in the
 * meantime.
 */
export function unsavedFor({ unsaved }: Pick<RefreshContext, "unsaved">, current: Grant): Grant | undefined {
  const held = unsaved.get(current.tokens.accessToken.reveal());
  return held?.signedInAt === current.signedInAt ? { ...held, generation: current.generation + 1 } : undefined;
}

type RefreshOutcome =
  | { answer: TokenAnswer }
  | { verdict: AgentAuthError; repeated: boolean }
  | { lost: AgentAuthError };

/**
 * Sends the refresh token. Where the answer was lost on the way and the access token is of no use any more, sends it
 * once more, at once: an issuer that allows for that (a grace period, or a retry of the same client) returns the tokens
 * again, and with any other one nothing is lost by it that was not lost already. While the access token lives there is
 * something to lose: an issuer that detects reuse ends the session, and the access token with it.
 */
async function sendRefresh(
  context: RefreshContext,
  current: Grant,
  lease: Lease,
  lives: () => boolean,
): Promise<RefreshOutcome> {
  let repeated = false;
  for (;;) {
    try {
      return { answer: await sendOnce(context, current, lease, repeated ? RETRY_TIMEOUT_MS : context.timeoutMs) };
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      if (REFUSAL_CODES.has(error.code) && error.class === "auth") return { verdict: error, repeated };
      const isLost = isLostAnswer(error);
      if (isLost && lives()) return { lost: error };
      if (!isLost || repeated || lease.left() <= SAVING_MS) throw error;
      report(context, `the answer to the renewal was lost (${error.code}); asking once more`);
      repeated = true;
    }
  }
}

/** One token request, sent only while the lease is ours and answered before it ends. */
async function sendOnce(context: RefreshContext, current: Grant, lease: Lease, time: number): Promise<TokenAnswer> {
  const { issuer, client, endpoints } = current;
  const url = endpoints.token;
  const limit = Math.min(time, lease.left() - SAVING_MS);
  // Without the caller's signal: a request that was sent may have been obeyed, and its answer is then the session.
  const call = follow(undefined, Math.max(1, limit), () => {
    return new AgentAuthError("timeout", `${url} gave no answer in ${Math.round(limit / 100) / 10} s`, {
      class: "unavailable",
      url,
    });
  });
  const beforeSend = () => {
    if (lease.left() <= SAVING_MS) throw leaseLost();
  };
  report(context, `renewing the token of ${current.server} at ${url}`);
  try {
    const { http, clock, privateKey } = context;
    const prover = proverFor(current, context.nonces);
    const by = { http, clock, client, privateKey, prover };
    return await refreshTokens({ ...by, issuer, tokenEndpoint: url, signal: call.signal, beforeSend }, current);
  } finally {
    call.release();
  }
}

/** The issuer said no. That counts unless somebody else was given newer tokens; then theirs are taken. */
async function handleRefusal(
  context: RefreshContext,
  room: Reservation,
  current: Grant,
  verdict: AgentAuthError,
  lost: string,
): Promise<Grant> {
  const { store, clock } = context;
  const reason = `the issuer refused to renew it: ${verdict.code}${lost}`;
  if (await room.save(retire(current, reason, clock.epoch()), current.generation)) {
    report(context, reason);
    throw loginRequired(current, reason, { cause: verdict });
  }
  const stored = await store.read(current);
  if (stored && !stored.retired) return stored;
  throw loginRequired(current, stored?.retired?.reason ?? "it was signed out meanwhile", { cause: verdict });
}

function report({ onProgress }: RefreshContext, text: string): void {
  onProgress?.({ about: "renewal", text });
}

/** Saves the next generation. Until that worked it is held here: asking the issuer again would end the session. */
async function saveNext(context: RefreshContext, room: Reservation, current: Grant, next: Grant): Promise<Grant> {
  const { store, unsaved } = context;
  const before = current.tokens.accessToken.reveal();
  unsaved.set(before, next);
  const saved = await saveWithRetries(context, room, next, current.generation);
  unsaved.delete(before);
  if (saved) return next;
  const stored = await store.read(current);
  if (!stored) {
    // Whoever logged out could only revoke the tokens before these ones.
    await revokeRemotely(next, context.http, undefined, context.privateKey);
    throw loginRequired(next, "it was signed out meanwhile");
  }
  // Somebody logged in, or refreshed it too: theirs is the newer word.
  if (!stored.retired && !hasSameTokens(stored, current)) return stored;
  // Another process took our silence for the end, or the answer for lost. Its mark is on the tokens that these replace.
  const revived = { ...next, generation: stored.generation + 1 };
  if (stored.signedInAt === next.signedInAt && (await store.save(revived, stored.generation))) return revived;
  throw loginRequired(stored, stored.retired?.reason ?? "another process changed it at the same time");
}

/** The room was there a moment ago, so that what stands in the way of the save may go away again. */
async function saveWithRetries(
  { clock, store }: RefreshContext,
  room: Reservation,
  next: Grant,
  expected: number,
): Promise<boolean> {
  for (const pause of [...SAVE_PAUSES_MS, undefined]) {
    try {
      return await room.save(next, expected);
    } catch (error) {
      if (!isAgentAuthError(error) || error.class !== "store") throw error;
      if (pause === undefined) throw notSaved(next, store.location, error);
      await clock.sleep(pause, new AbortController().signal);
    }
  }
  return false;
}

function notSaved(grant: Grant, location: string, cause: AgentAuthError): AgentAuthError {
  return new AgentAuthError(
    "grant_not_saved",
    `the issuer renewed the token for ${quote(grant.server)}, and it cannot be kept in ${quote(location)}: ${cause.message}; the stored one is used up`,
    { class: "store", hint: cause.hint ?? loginCommand(grant), cause },
  );
}
