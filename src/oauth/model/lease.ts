import { AgentAuthError, type AgentAuthErrorJson, isAgentAuthError } from "../../errors.js";
import { isJsonObject } from "../../http/strict-json.js";
import { quote } from "../../redact.js";
import type { Grant, GrantKey } from "./grant.js";

/** The exclusive right to do some work, held for a limited time. */
export interface Lease {
  /** Milliseconds left; 0 if it has expired, even if this process was suspended in between. */
  left(): number;
  /**
   * Whether a request that must not be sent twice may leave now. Enough time must be left that a holder which is suspended
   * for a moment keeps the lease. Default: whether any is left.
   */
  maySend?(): boolean;
  /** The error for work that found the lease expired, with the reason. Default: a general one. */
  lost?(): AgentAuthError;
  /**
   * Declares that the work that follows must not happen twice. From here on no other process takes over the lease while
   * this process is alive, even after it expires: the work may have been done.
   *
   * @throws `AgentAuthError` `lease_lost` if the lease has expired
   */
  commit(): Promise<void>;
  /**
   * Records nothing about this attempt if the work fails, so that the next holder gets the attempt before it: for work
   * that ends without having tried.
   */
  rollback(): void;
  /** The previous attempt under the same name, if it is recorded. */
  readonly previous: PreviousAttempt | undefined;
  /**
   * Records, if the work succeeds, that the refresh token of {@link LeaseOptions.refreshes} is used up: an older record
   * that is put back is recognized by that. A store that does not implement it recognizes none.
   */
  markRotated?(): void;
  /** The newest generation of tokens whose refresh token is used up, if the store knows that. */
  readonly rotatedGeneration?: number | undefined;
  /** Whether another holder had the lease at first, so that {@link previous} is the attempt that was waited for. */
  readonly waited: boolean;
}

/** The record of an earlier attempt under a lease. */
export interface PreviousAttempt {
  /** Unix milliseconds at which it began. */
  readonly at: number;
  /** Unix milliseconds at which it ended, if its holder recorded that. */
  readonly endedAt: number | undefined;
  /** `released` by its holder, `died` with its process, or `expired`. */
  readonly ended: "released" | "died" | "expired";
  /** Whether it had begun work that must not happen twice. */
  readonly committed: boolean;
  /** The error that it ended with. */
  readonly failure: RecordedFailure | undefined;
}

/** A failure as a store records it. */
export interface RecordedFailure extends AgentAuthErrorJson {
  /** How many attempts before it failed too, one after the other. */
  readonly repeats?: number | undefined;
}

/** What a store records of a failure: the next holder sees only errors of this package. */
export function recordFailure(error: unknown, previous: PreviousAttempt | undefined): RecordedFailure | undefined {
  if (!isAgentAuthError(error)) return undefined;
  return { ...error.toJSON(), repeats: previous?.failure === undefined ? 0 : (previous.failure.repeats ?? 0) + 1 };
}

/** Whether a stored value is a failure of this form. */
export function isRecordedFailure(value: unknown): value is RecordedFailure {
  if (!isJsonObject(value)) return false;
  if (!["code", "class", "message"].every((name) => typeof value[name] === "string")) return false;
  const { remedy = { action: "" } } = value;
  return isJsonObject(remedy) && typeof remedy["action"] === "string";
}

/** Options of a lease. */
export interface LeaseOptions<T> {
  /** Milliseconds that the work may take. After that, a holder of unknown liveness loses the lease. */
  durationMs: number;
  /** Extends the lease as long as its holder sends heartbeats: for work that waits for the user. */
  extend?: boolean;
  /** The grant that the work reads and replaces, which must not come from a cache while the lease is requested or held. */
  grant?: GrantKey | undefined;
  /** The grant whose tokens the work replaces, in place of {@link grant}: the attempts at others are not those before. */
  refreshes?: Grant | undefined;
  /** Whether the work concerns all tenants of the store, as a registered client does. */
  shared?: boolean;
  /** Whether the name is not used again once the work has succeeded, so that no record is needed. */
  once?: boolean;
  /** Aborts the wait for the lease, not the work. */
  signal?: AbortSignal | undefined;
  /** Maximum milliseconds to wait for the lease. Default: no limit. */
  patienceMs?: number;
  /** Polled while another holder has the lease; a result replaces that of the work. */
  until?: () => Promise<T | undefined>;
  /**
   * Saves what only this process has after the work failed with `grant_not_saved`, and resolves when nothing is left to be
   * saved. A store whose engine may be back soon calls it in the background, and holds the lease until then.
   */
  save?: () => Promise<unknown>;
  /** Called when a store begins to call {@link save}, with the end of that: it was saved, or given up. */
  onUnsaved?: ((ended: Promise<void>) => void) | undefined;
  /** Called once if another holder has the lease. */
  onWait?: ((holder: LeaseHolder) => void) | undefined;
}

/** Another holder of a lease. */
export interface LeaseHolder {
  /** Its process, where that is on this machine. */
  readonly pid: number | undefined;
  /** What it calls itself, where it may be on another machine. */
  readonly label?: string | undefined;
  /** Unix milliseconds when it took the lease. */
  readonly at: number;
}

/** A holder as the subject of a sentence. */
export function holderText({ pid, label }: LeaseHolder): string {
  if (label !== undefined) return quote(label, 100);
  return pid === undefined ? "another process" : `process ${pid}`;
}

/**
 * Milliseconds without a heartbeat after which a holder that extends its lease loses it; it sends five in this time.
 */
export const HEARTBEAT_MS = 15_000;

export function restoreFailure({ repeats: _, ...json }: RecordedFailure): AgentAuthError {
  const { code, message, request_id: requestId, retry_after: retryAfter, ...options } = json;
  return new AgentAuthError(code, message, { ...options, requestId, retryAfter });
}

const PEER_CLASSES: ReadonlySet<string> = new Set(["unavailable", "remote", "refused", "auth", "store"]);

/**
 * Whether a refresh failed because of the issuer, a proxy before it, or a read-only store: none of these invalidates a
 * token that has not expired.
 */
export function isPeerFailure(error: AgentAuthError): boolean {
  return PEER_CLASSES.has(error.class);
}

/** Upper bound for the `Retry-After` of an issuer. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;
/** Pause after an issuer did not respond, if the caller has a usable token. */
const RETRY_PAUSE_MS = 10_000;
/** The same for a caller without one, doubled with each failure: all callers share the failure for that time. */
const [FIRST_SHARED_MS, LONGEST_SHARED_MS] = [1000, 5000];

/**
 * Rethrows the failure of the previous attempt if another request would only add to the load: if this attempt waited
 * for that one, if the `Retry-After` of the issuer has not passed, or, unless the caller insists, within a short pause.
 *
 * @param now Unix milliseconds
 * @param why `valid` if the caller has a usable token, `needed` if it has none, `forced` if it insists on a new one
 */
export function rethrowRecentFailure(lease: Lease, now: number, why: "valid" | "needed" | "forced"): void {
  const { failure, endedAt } = lease.previous ?? {};
  if (failure?.class !== "unavailable" || failure.code === "lease_lost") return;
  const retryAfterMs = Math.min((failure.retry_after ?? 0) * 1000, MAX_RETRY_AFTER_MS);
  const sharedMs = Math.min(FIRST_SHARED_MS * 2 ** (failure.repeats ?? 0), LONGEST_SHARED_MS);
  const pauseMs = { valid: RETRY_PAUSE_MS, needed: sharedMs, forced: 0 }[why];
  const isEarly = endedAt !== undefined && now >= endedAt && now < endedAt + Math.max(retryAfterMs, pauseMs);
  if (!lease.waited && !isEarly) return;
  // The failure stays that of the attempt that sent a request, and so does its time.
  lease.rollback();
  throw restoreFailure(failure);
}

/** Whether a request may leave now. */
export function maySend(lease: Pick<Lease, "left" | "maySend">): boolean {
  return lease.left() > 0 && lease.maySend?.() !== false;
}

/** The error for a lease that expired before its work began. */
export function leaseLost(message = "this process was suspended for so long that another one may have taken over") {
  return new AgentAuthError("lease_lost", message, { class: "unavailable" });
}
