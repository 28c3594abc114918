import { AgentAuthError, isAgentAuthError, withHint } from "../../errors.js";
import { quote } from "../../redact.js";
import { type Grant, hasExpired, hasSameTokens, mergeResponse, retire, tokenGeneration } from "../model/grant.js";
import { isStoreFailure, type Reservation, withReservation } from "../model/grant-store.js";
import { holderText, type Lease, rethrowRecentFailure } from "../model/lease.js";
import { LOGIN_HINT, loginRemedy, loginRequired, missingParams } from "./grant-requirements.js";
import type { ObservedRefresh, RefreshContext } from "./send-refresh.js";
import {
  describeLoss,
  isLastToken,
  markLost,
  mayHaveBeenUsed,
  observeRefresh,
  refreshDurationMs,
  reportRefresh,
  saveNext,
  sendRefresh,
  unsavedFor,
} from "./send-refresh.js";
import { noteRefusal } from "./token-fetch.js";

/** The pause before a refresh that its issuer refused for the client is confirmed. */
const CONFIRM_AFTER_MS = 500;

export interface RefreshTrigger {
  isRefused: boolean;
  isForced: boolean;
  /** When the login is due again, if it is unused: it is refreshed so that it does not expire, and without a wait. */
  dueAt?: number;
}

/**
 * Refreshes a grant: under the store's lease, from the stored grant, saved before it is used.
 *
 * A second caller gets the result of the first. A rejection by the issuer counts only if the store still holds the same
 * grant, which is then marked and stays stored.
 *
 * @param seen the grant to refresh
 * @param trigger whether its server rejected the token; whether the caller does not accept the current token even if it is
 * valid
 * @throws `AgentAuthError` `login_required` if the grant is rejected, class `store`, or a network error after which the
 * grant is unchanged
 */
export async function refreshGrant(
  context: RefreshContext,
  seen: Grant,
  trigger: RefreshTrigger,
  signal: AbortSignal | undefined,
): Promise<RefreshResult> {
  const startedAt = context.clock.epoch();
  const result = await refreshOrRead(context, seen, trigger, signal);
  const { grant, refreshedHere } = result;
  const { obtainedAt, refreshToken } = grant.tokens;
  // What another process stored long ago is newer than what was seen, and may have expired too: `seen` came from a replica
  // that had lost it, or this process was suspended after it had read `seen`.
  const isOld = !refreshedHere && obtainedAt < startedAt && hasExpired(grant.tokens, context.clock.epoch());
  if (!isOld || refreshToken === undefined || hasSameTokens(grant, seen)) return result;
  return refreshOrRead(context, grant, { isRefused: false, isForced: false }, signal);
}

/**
 * The result of a refresh, by this process (`refreshedHere`) or by another one. One's own may look older than the call: its time is
 * that of the issuer, in whole seconds.
 */
interface RefreshResult {
  grant: Grant;
  refreshedHere: boolean;
}

type RefreshAttempt = RefreshResult & ObservedRefresh;

/** The result of a refresh under the lease of these tokens, or of the process that had the lease. */
async function refreshOrRead(
  context: RefreshContext,
  seen: Grant,
  trigger: RefreshTrigger,
  signal: AbortSignal | undefined,
): Promise<RefreshResult> {
  let refreshedHere = false;
  const durationMs = refreshDurationMs(context.timeoutMs);
  try {
    const grant = await context.store.lease(
      refreshLease(seen),
      async (lease) => {
        const result = await refreshAsHolder(context, seen, lease, trigger);
        ({ refreshedHere } = result);
        return result.grant;
      },
      {
        durationMs,
        refreshes: seen,
        once: true,
        patienceMs: trigger.dueAt === undefined ? 2 * durationMs : 0,
        signal,
        until: () => savePendingOrReadNewer(context, seen),
        save: () => savePending(context, seen),
        onUnsaved: (ended) => context.pending.add(ended),
        onWait: (holder) =>
          reportRefresh(context, `${holderText(holder)} is refreshing this token; waiting for its result`),
      },
    );
    return { grant, refreshedHere };
  } catch (error) {
    throw adviseLogin(error, seen);
  }
}

/**
 * A response of the issuer that rejects the request with the advice to log in: some issuers, such as Metabase, have one
 * response for every failure. It is no word on the refresh token, so that the grant stays.
 */
function adviseLogin(error: unknown, grant: Grant): unknown {
  if (!isAgentAuthError(error) || (error.class !== "remote" && error.class !== "auth")) return error;
  const { code, status = 0, hint, remedy } = error;
  // A login would have to send the same proof of the key.
  if (status < 400 || code.includes("dpop") || hint !== undefined || remedy !== undefined) return error;
  return withHint(error, "the refresh token may not be valid any more; if this repeats, log in", loginRemedy(grant));
}

/**
 * What the holder of the lease does, in this order:
 *
 * | stored grant | result |
 * |---|---|
 * | none | `login_required`: another process logged out |
 * | one whose newer tokens this process has not saved yet | those, saved now |
 * | rejected by its issuer | `login_required` |
 * | other tokens than were seen | those: another process refreshed |
 * | older than tokens that were used up | `record_rolled_back` |
 * | valid until it expires, since the response to its refresh was lost; no refresh is forced | as it is |
 * | without a refresh token | `login_required` |
 * | any other, after a recent failure that a request would only repeat | that failure |
 * | any other | refreshed |
 */
async function refreshAsHolder(
  context: RefreshContext,
  seen: Grant,
  lease: Lease,
  trigger: RefreshTrigger,
): Promise<RefreshResult> {
  const { store, clock } = context;
  const { isRefused, isForced } = trigger;
  const current = await store.read(seen);
  if (!current) throw loginRequired(seen, "another process logged out");
  const saved = await savePending(context, current);
  if (saved) return { grant: saved, refreshedHere: false };
  if (current.retired) throw loginRequired(current, current.retired.reason);
  if (!hasSameTokens(current, seen)) return { grant: current, refreshedHere: false };
  if (tokenGeneration(current) <= (lease.rotatedGeneration ?? -1)) throw rolledBackError(current);
  if (!isForced && isLastToken(current, clock.epoch())) return { grant: current, refreshedHere: false };
  if (current.tokens.refreshToken === undefined) {
    const authorizationParams = missingParams(current);
    throw loginRequired(current, noRefreshTokenText(isForced), { authorizationParams });
  }
  const now = clock.epoch();
  // keepAlive has pauses of its own.
  const insists = isForced || trigger.dueAt !== undefined;
  rethrowRecentFailure(lease, now, insists ? "forced" : hasExpired(current.tokens, now) ? "needed" : "valid");
  const { acceptTokenType: acceptedTokenType = current.acceptedTokenType } = context;
  const known = { ...current, acceptedTokenType };
  const previous = isRefused ? noteRefusal(known, clock.epoch()) : known;
  return observeRefresh(context.events, previous, trigger, () => refreshUnderLease(context, previous, lease, trigger));
}

export function refreshLease(grant: Grant): string {
  const { profile, server, account, signedInAt } = grant;
  return `refresh ${profile} ${server} ${account ?? ""} ${signedInAt} ${tokenGeneration(grant)}`;
}

function rolledBackError(grant: Grant): AgentAuthError {
  const { server, profile } = grant;
  const message = `the stored login for ${quote(server)} (profile ${quote(profile)}) is older than one that was used: an old copy was restored, and its refresh token is used up, so it was not sent`;
  const hint = `put the newest record back, or log in again: ${LOGIN_HINT}`;
  return new AgentAuthError("record_rolled_back", message, { class: "store", hint, remedy: loginRemedy(grant) });
}

/**
 * What the wait for another holder can end with. Tokens that this process could not save are saved without the lease: the
 * other one waits for them, and would send their refresh token again.
 */
async function savePendingOrReadNewer(context: RefreshContext, seen: Grant): Promise<Grant | undefined> {
  const stored = await context.store.read(seen);
  return (await savePending(context, stored ?? seen)) ?? selectNewer(stored, seen);
}

/** Saves what this process could not save after a refresh of a grant; undefined if there is nothing. */
async function savePending(context: RefreshContext, current: Grant): Promise<Grant | undefined> {
  const pendingSave = unsavedFor(context, current);
  return (
    pendingSave && withReservation(context.store, current, (room) => saveNext(context, room, current, pendingSave))
  );
}

function selectNewer(stored: Grant | undefined, seen: Grant): Grant | undefined {
  return stored && !hasSameTokens(stored, seen) && !stored.retired ? stored : undefined;
}

/** Why a grant without a refresh token needs a login. A token whose refresh was requested may still be valid. */
export function noRefreshTokenText(isForced: boolean): string {
  return isForced
    ? "the token cannot be refreshed, because the issuer returned no refresh token"
    : "the token has expired, and there is no refresh token";
}

function refreshUnderLease(
  context: RefreshContext,
  current: Grant,
  lease: Lease,
  trigger: RefreshTrigger,
): Promise<RefreshAttempt> {
  const isValid = () => !trigger.isRefused && !hasExpired(current.tokens, context.clock.epoch());
  // Reserve disk space first: tokens that cannot be stored must not be requested.
  const work = async (reservation: Reservation): Promise<RefreshAttempt> => {
    if (!trigger.isForced && isValid() && mayHaveBeenUsed(lease.previous)) {
      // A process that died or could not save has sent this refresh token: send it again only when no valid token is
      // left.
      const marked = await storeLostMark(context, reservation, current, lease.previous?.failure?.code ?? "interrupted");
      return { grant: marked, refreshedHere: false, outcome: undefined };
    }
    await lease.commit();
    // The previous holder may have been late only, and have saved in the meantime.
    const newer = mayHaveBeenUsed(lease.previous) && selectNewer(await context.store.read(current), current);
    if (newer) return { grant: newer, refreshedHere: false, outcome: undefined };
    let outcome = await sendRefresh(context, current, lease, isValid);
    if ("verdict" in outcome && outcome.verdict.code === "invalid_client") {
      // It may come from a node that does not know the client yet, or from before the stored client has changed: once more.
      await context.clock.sleep(CONFIRM_AFTER_MS, new AbortController().signal);
      const stored = await context.store.read(current);
      if (stored && selectNewer(stored, current))
        return { grant: stored, refreshedHere: false, outcome: outcome.verdict };
      const again = stored ? { ...current, client: stored.client } : current;
      outcome = await sendRefresh(context, again, lease, isValid);
    }
    if ("response" in outcome) {
      const { usedAt = current.tokens.obtainedAt } = current;
      const { client, form } = outcome;
      const use = trigger.dueAt === undefined ? {} : { usedAt };
      const next = { ...mergeResponse(current, outcome.response), client, ...form, ...use };
      if (next.tokens.refreshToken?.reveal() !== current.tokens.refreshToken?.reveal()) lease.markRotated?.();
      const grant = await saveNext(context, reservation, current, next);
      // Not by the generation: after a failover, two processes may have refreshed the same one.
      return { grant, refreshedHere: grant.tokens === next.tokens, outcome: "refreshed" };
    }
    if ("lost" in outcome) {
      await storeLostMark(context, reservation, current, outcome.lost.code);
      throw outcome.lost;
    }
    const lost = describeLoss(outcome.repeated, lease.previous, current);
    const { verdict } = outcome;
    return {
      grant: await handleRefusal(context, reservation, current, verdict, lost),
      refreshedHere: false,
      outcome: verdict,
    };
  };
  return withReservation(context.store, current, work, trigger.dueAt);
}

/** Stores that the response to a refresh was lost. If that fails, the record of the lease still says so. */
async function storeLostMark(context: RefreshContext, reservation: Reservation, current: Grant, code: string) {
  reportRefresh(
    context,
    `the response to the refresh of the token for ${current.server} was lost (${code}): the stored token is used until it expires, then the refresh is tried again`,
  );
  const marked = markLost(current, code, context.clock.epoch());
  try {
    return (await reservation.save(marked, current.generation)) ? marked : current;
  } catch (error) {
    if (isStoreFailure(error)) return current;
    throw error;
  }
}

/** The issuer rejected the grant. If another process has stored newer tokens in the meantime, returns those. */
async function handleRefusal(
  context: RefreshContext,
  reservation: Reservation,
  current: Grant,
  verdict: AgentAuthError,
  lost: string,
): Promise<Grant> {
  const { store, clock } = context;
  const reason = `the issuer refused to refresh it: ${verdict.code}${lost}`;
  if (await reservation.save(retire(current, reason, clock.epoch()), current.generation)) {
    reportRefresh(context, reason);
    throw loginRequired(current, reason, { cause: verdict });
  }
  const stored = await store.read(current);
  if (stored && !stored.retired) {
    if (!hasSameTokens(stored, current)) return stored;
    // Only what is beside the tokens was changed.
    await store.save(retire(stored, reason, clock.epoch()), stored.generation);
  }
  const trigger = stored === undefined ? "another process logged out" : (stored.retired?.reason ?? reason);
  throw loginRequired(current, trigger, { cause: verdict });
}
