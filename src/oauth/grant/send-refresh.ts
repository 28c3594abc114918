import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { type Clock, followSignal } from "../../http/deadline.js";
import { quote } from "../../redact.js";
import { type Events, observe, readKnownCode, readOrigin, readReason } from "../../telemetry/emit.js";
import type { EventFields } from "../../telemetry/events.js";
import type { ClientKey } from "../client/client-auth.js";
import { proverFor } from "../dpop/dpop.js";
import type { Nonces, OAuthHttp, Progress, TraceEntry } from "../http/http.js";
import { withResourceHint } from "../http/oauth-error.js";
import type { ClientRecord, Grant, GrantKey, TokenResponse } from "../model/grant.js";
import { hasExpired, hasSameTokens, tokenGeneration } from "../model/grant.js";
import { type GrantStore, isStoreFailure, type Reservation } from "../model/grant-store.js";
import { type Lease, leaseLost, maySend, type PreviousAttempt } from "../model/lease.js";
import { revokeRecorded, revokeRemotely } from "../token/revocation.js";
import { type RefreshForm, refreshTokens } from "../token/token.js";
import { LOGIN_HINT, loginRemedy, loginRequired } from "./grant-requirements.js";

export interface RefreshContext {
  store: GrantStore;
  http: OAuthHttp;
  events: Events;
  clock: Pick<Clock, "epoch" | "sleep">;
  timeoutMs: number;
  nonces: Nonces;
  privateKey?: ClientKey | undefined;
  /** The token type that the caller accepts beside the one that is stored with the grant. */
  acceptTokenType?: string | undefined;
  /** Refreshed grants that could not be saved, by the grant before: the only copy of the new tokens. */
  unsaved: Map<string, Grant>;
  /** Where what cannot be saved yet is added. */
  pending: Pick<PendingRefreshes, "add">;
  onProgress?: ((progress: Progress) => void) | undefined;
}

const SAVE_PAUSES_MS = [100, 400, 1500];

/**
 * The refreshed grant that could not be saved, with the generation after the stored one, which may have been marked
 * since.
 */
export function unsavedFor({ unsaved }: Pick<RefreshContext, "unsaved">, current: Grant): Grant | undefined {
  const pending = unsaved.get(refreshName(current));
  return pending?.signedInAt === current.signedInAt ? { ...pending, generation: current.generation + 1 } : undefined;
}

/** By the login too: one process serves many users, and nothing says that an issuer never issues a token to two of them. */
function refreshName({ profile, server, account, tokens }: Grant): string {
  return JSON.stringify([profile, server, account, tokens.accessToken.reveal()]);
}

/** Saves the next generation. Until that succeeds it stays in memory: another refresh would end the session. */
export async function saveNext(context: RefreshContext, reservation: Reservation, current: Grant, next: Grant) {
  const { store, unsaved } = context;
  const previous = refreshName(current);
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
  { clock, store }: RefreshContext,
  reservation: Reservation,
  next: Grant,
  expected: number,
) {
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
    events.emit("token", () => ({ type: "token", source, issuer: grant.issuer, server: readOrigin(server) }));
    return grant;
  } catch (error) {
    const failure = { source: "none", code: readKnownCode(error) } as const;
    events.emit("token", () => ({ type: "token", ...failure, server: readOrigin(server) }));
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
  const details = { trigger, grant: "refresh_token", issuer, server: readOrigin(server) } as const;
  return observe(events, "refresh", work, (end): RefreshFields | undefined => {
    if ("error" in end) return { ...describeFailure(end.error), ...details };
    const { outcome } = end.result;
    if (outcome === undefined) return undefined;
    return { ...(outcome === "refreshed" ? { outcome: outcome } : describeRejection(outcome)), ...details };
  });
}

function describeRejection(verdict: unknown) {
  return { outcome: "rejected", reason: "issuer", code: readKnownCode(verdict) } as const;
}

function describeFailure(error: unknown): Pick<RefreshFields, "outcome" | "reason" | "code"> {
  if (!isAgentAuthError(error)) return { outcome: "failed", reason: readReason(error), code: readKnownCode(error) };
  // With a status it is the issuer's own `login_required` (OpenID Connect Core section 3.1.2.6).
  const isLogin = error.code === "login_required" && error.status === undefined;
  // The error for the caller is that a login is required; its cause is what the issuer answered.
  if (isLogin && error.cause !== undefined) return describeRejection(error.cause);
  const isLost = isLostResponse(error) || error.code === "grant_not_saved";
  const reason = isLogin ? "superseded" : readReason(error);
  return { outcome: isLost ? "lost" : "failed", reason, code: readKnownCode(error) };
}

/** The issuer's codes that reject the grant itself: those of the specification, GitHub's and Slack's. */
const REFUSAL_CODES = new Set(["invalid_grant", "invalid_client", "bad_refresh_token", "invalid_refresh_token"]);
/** Codes for requests of any kind, with which Atlassian and releases of Authlib reject a refresh token: their text says so. */
const GENERAL_CODES = new Set(["invalid_request", "unauthorized_client"]);
/** What they say of it. That a client may not refresh is no word on the token: an administrator can undo it. */
const REJECTED = /\b(?:invalid|expired|revoked|unknown|incorrect|not found)\b/i;
const RETRY_TIMEOUT_MS = 5000;
/** The part of a lease that is reserved for saving; no request is sent in it. */
const SAVING_MS = 5000;

/** Milliseconds that a refresh may take, with its second request and the save. */
export function refreshDurationMs(timeoutMs: number): number {
  return timeoutMs + RETRY_TIMEOUT_MS + SAVING_MS;
}

/** The new tokens, and the client with the authentication method that worked. */
interface RefreshedTokens {
  response: TokenResponse;
  client: ClientRecord;
  form: RefreshForm;
}

export type RefreshOutcome =
  | RefreshedTokens
  | { verdict: AgentAuthError; repeated: boolean }
  | { lost: AgentAuthError };

/**
 * Sends the refresh token. If the response was lost and the access token is not valid any more, sends it once more, at
 * once: an issuer that tolerates this (a grace period, or a retry of the same client) returns the tokens again, and
 * with any other issuer the session is lost already. While the access token is valid there is something to lose: an
 * issuer that detects reuse ends the session, and the access token with it.
 */
export async function sendRefresh(
  context: RefreshContext,
  current: Grant,
  lease: Lease,
  isValid: () => boolean,
): Promise<RefreshOutcome> {
  let repeated = false;
  let wasBlocked = false;
  for (;;) {
    try {
      return await sendOnce(context, current, lease, repeated ? RETRY_TIMEOUT_MS : context.timeoutMs);
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      if (rejectsGrant(error)) return { verdict: error, repeated };
      if (error.code === "lease_lost") {
        if (!wasBlocked && lease.left() > SAVING_MS) {
          // The heartbeats are late, but no other process has taken over; nothing was sent.
          wasBlocked = true;
          await lease.commit();
          continue;
        }
        if (!repeated) lease.rollback();
        throw error;
      }
      const isLost = isLostResponse(error);
      if (isLost && isValid()) return { lost: error };
      if (!isLost || repeated || lease.left() <= SAVING_MS) throw error;
      reportRefresh(context, `the response to the refresh was lost (${error.code}); trying once more`);
      repeated = true;
    }
  }
}

/** Whether the issuer has rejected the grant itself. Any other failure may be temporary, and does not end the session. */
function rejectsGrant({ code, class: errorClass, message, url = "" }: AgentAuthError): boolean {
  if (errorClass !== "auth" && errorClass !== "remote") return false;
  if (!GENERAL_CODES.has(code)) return REFUSAL_CODES.has(code);
  // The address of an endpoint may name the token, too.
  const text = message.replace(url, "");
  return /\brefresh[ _-]?token\b/i.test(text) && REJECTED.test(text) && !/\bgrant[ _]?type\b/i.test(text);
}

/** One token request, sent only while the lease is held and bounded by its end. */
async function sendOnce(context: RefreshContext, current: Grant, lease: Lease, time: number): Promise<RefreshedTokens> {
  const { issuer, endpoints } = current;
  let { client } = current;
  const url = endpoints.token;
  const limit = Math.min(time, lease.left() - SAVING_MS);
  // Without the caller's signal: the issuer may have processed the request, and then its response holds the only valid
  // tokens.
  const call = followSignal(undefined, Math.max(1, limit), () => {
    const message = `${url} did not answer in ${Math.round(limit / 100) / 10} s`;
    return new AgentAuthError("timeout", message, { class: "unavailable", url });
  });
  const beforeSend = () => {
    if (lease.left() <= SAVING_MS || !maySend(lease)) throw lease.lost?.() ?? leaseLost();
  };
  reportRefresh(context, `refreshing the token for ${current.server} at ${url}`);
  try {
    const { http, clock, privateKey } = context;
    const prover = proverFor(current, context.nonces);
    const trace = ({ why }: TraceEntry) => reportRefresh(context, why);
    const { acceptedTokenType } = current;
    const request = { http, clock, client, privateKey, prover, acceptedTokenType, trace };
    const onClient = (accepted: ClientRecord) => {
      client = accepted;
    };
    const tokenCall = { ...request, issuer, tokenEndpoint: url, signal: call.signal, beforeSend, onClient };
    const { response, form } = await withSendDeadline(lease, () => refreshTokens(tokenCall, current));
    return { response, client, form };
  } catch (error) {
    throw withResourceHint(error, current.resource);
  } finally {
    call.release();
  }
}

export function reportRefresh({ onProgress }: RefreshContext, text: string): void {
  onProgress?.({ subject: "refresh", text });
}

type Timed = Pick<Lease, "left" | "maySend" | "lost">;

/** Work under a lease, and whether one of its requests was held back. */
interface DeadlineGuard {
  readonly lease: Timed;
  blocked: boolean;
}

type RunInContext = <T>(lease: Timed, work: () => Promise<T>) => Promise<T>;

let run: RunInContext | undefined;

/**
 * Runs work whose requests must not be sent after its lease has expired. Between the last check of the clock and the first
 * byte, a name is resolved, a connection opened and a handshake made, and the process can be stopped in any of them.
 * Node's fetch and our transport over `node:http` publish an event right before they write; a connection that is closed
 * then has sent nothing. Other runtimes have no such event, and there the last check of the clock decides.
 *
 * @throws `AgentAuthError` `lease_lost` for a request that was not sent
 */
export function withSendDeadline<T>(lease: Timed, work: () => Promise<T>): Promise<T> {
  run ??= installHooks() ?? ((_lease, pending) => pending());
  return run(lease, work);
}

/** Published when a request is made, and right before its first byte is written. */
const CHANNELS = [
  ["undici:request:create", "undici:client:sendHeaders"],
  ["agentauth:request:create", "agentauth:request:write"],
] as const;

/** Undefined where the runtime is not Node: the library imports no module of it. */
function installHooks(): RunInContext | undefined {
  const { process } = globalThis as { process?: Partial<NodeJS.Process> };
  const hooks = process?.getBuiltinModule?.("node:async_hooks");
  const channels = process?.getBuiltinModule?.("node:diagnostics_channel");
  if (!hooks || !channels) return undefined;
  const current = new hooks.AsyncLocalStorage<DeadlineGuard>();
  const guards = new WeakMap<object, DeadlineGuard>();
  for (const [created, written] of CHANNELS) {
    channels.subscribe(created, (message) => {
      const guard = current.getStore();
      if (guard) guards.set((message as { request: object }).request, guard);
    });
    channels.subscribe(written, (message) => {
      const { request, socket } = message as { request: object; socket: { destroy(): void } };
      const guard = guards.get(request);
      if (guard === undefined || maySend(guard.lease)) return;
      guard.blocked = true;
      socket.destroy();
    });
  }
  return async (lease, work) => {
    const guard = { lease, blocked: false };
    try {
      return await current.run(guard, work);
    } catch (error) {
      throw guard.blocked ? (lease.lost?.() ?? leaseLost()) : error;
    }
  };
}

/** The refreshes of a client that have begun and not ended: the issuer may have obeyed each of them. */
export class PendingRefreshes {
  readonly #pending = new Set<Promise<unknown>>();
  #isClosed = false;

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Begins a refresh. @throws `AgentAuthError` `aborted` once the client is closed */
  async run<T>(refresh: () => Promise<T>): Promise<T> {
    if (this.#isClosed) {
      const message = "the client is closed: it refreshes no token any more";
      throw new AgentAuthError("aborted", message, { class: "aborted" });
    }
    const work = refresh();
    this.add(work);
    return work;
  }

  /** Adds what remains to be done of a refresh. */
  add(work: Promise<unknown>): void {
    this.#pending.add(work);
    const end = () => void this.#pending.delete(work);
    work.then(end, end);
  }

  /** Lets no other one begin. @returns whether those that have begun ended in time */
  async close(graceMs: number, clock: Pick<Clock, "sleep">): Promise<boolean> {
    this.#isClosed = true;
    const over = new AbortController();
    const late = clock.sleep(graceMs, over.signal).then(
      () => false,
      () => true,
    );
    const ended = async () => {
      while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
      return true;
    };
    const isDone = await Promise.race([ended(), late]);
    over.abort();
    return isDone;
  }
}
