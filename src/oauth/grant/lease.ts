import { AgentAuthError, type AgentAuthErrorJson } from "../../errors.js";

/** The right to do something that must not be done twice at once, held for a time. */
export interface Lease {
  /** Milliseconds that are left; 0 when it is over, whatever stopped the clock of this process in the meantime. */
  left(): number;
  /**
   * Says that what follows must not happen twice. From here on nobody takes the lease over while this process is known
   * to live, also when the time is over: it may have done what it set out to do.
   *
   * @throws `AgentAuthError` `lease_lost` when the lease is over
   */
  commit(): Promise<void>;
  /**
   * Leaves no trace of this attempt if the work fails, so that the one before it is what the next holder hears of: for
   * work that ends without having tried.
   */
  rollback(): void;
  /** The attempt before this one under the same name, if there is a trace of it. */
  readonly before: PreviousAttempt | undefined;
  /** Whether somebody else held the lease when this one asked for it, so that {@link before} is what was waited for. */
  readonly waited: boolean;
}

/** What is known of work under a lease that has ended. */
export interface PreviousAttempt {
  /** Unix milliseconds at which it began. */
  readonly at: number;
  /** Unix milliseconds at which it ended, where it said so itself. */
  readonly endedAt: number | undefined;
  /** `released` when it ended by itself, `died` with its process, `expired` when its time was over. */
  readonly ended: "released" | "died" | "expired";
  /** Whether it had begun what must not happen twice. */
  readonly committed: boolean;
  /** The failure that it ended with. */
  readonly failure: AgentAuthErrorJson | undefined;
}

/** How a lease is taken. */
export interface LeaseOptions<T> {
  /** Milliseconds that the work may take. A holder of which nothing else is known is given up after that. */
  duration: number;
  /** Lets the lease last as long as its holder goes on saying that it lives: for work that waits for the user. */
  extend?: boolean;
  /** The name is of no use once the work has succeeded, so that no trace need be kept. */
  once?: boolean;
  /** Ends the wait for the lease, not the work. */
  signal?: AbortSignal | undefined;
  /** Milliseconds to wait for the lease at most. Default: no limit. */
  patience?: number;
  /** Asked again and again while somebody else holds the lease; what it gives is taken in place of the work. */
  until?: () => Promise<T | undefined>;
  /** Hears once that somebody else holds the lease. */
  onWait?: ((holder: { pid: number | undefined; at: number }) => void) | undefined;
}

/** Milliseconds after which a holder that can extend its lease is given up: it shows five times in this span that it lives. */
export const HEARTBEAT_MS = 15_000;

/** The error that another process's work ended with, as it was written down. */
export function failureOf(json: AgentAuthErrorJson): AgentAuthError {
  const { code, message, request_id: requestId, retry_after: retryAfter, ...options } = json;
  return new AgentAuthError(code, message, { ...options, requestId, retryAfter });
}

const PEER_CLASSES: ReadonlySet<string> = new Set(["unavailable", "remote", "refused", "auth", "store"]);

/**
 * Whether asking for a newer token failed by the issuer, by what stands before it, or by a store that can only be read:
 * none of these ends a token that still lives.
 */
export function isPeerFailure(error: AgentAuthError): boolean {
  return PEER_CLASSES.has(error.class);
}

/** How long an issuer may keep us from asking again. */
const MAX_RETRY_AFTER_MS = 5 * 60_000;
/** How long an issuer that did not answer is left alone where there is no hurry. */
const RETRY_PAUSE_MS = 10_000;

/**
 * Ends this attempt with the failure of the one before it where asking again would only add to the load: whoever waited
 * for an attempt that got no answer has asked too, an issuer may have said when it wants to be asked again, and where
 * there is no hurry it is left alone for a while in any case.
 *
 * @param now Unix milliseconds
 * @param isUrgent whether nothing can be done without an answer
 */
export function rethrowRecentFailure(lease: Lease, now: number, isUrgent: boolean): void {
  const { failure, endedAt } = lease.before ?? {};
  if (failure?.class !== "unavailable" || failure.code === "lease_lost") return;
  const asked = Math.min((failure.retry_after ?? 0) * 1000, MAX_RETRY_AFTER_MS);
  const isEarly =
    endedAt !== undefined && now >= endedAt && now < endedAt + Math.max(asked, isUrgent ? 0 : RETRY_PAUSE_MS);
  if (!lease.waited && !isEarly) return;
  // It stays the failure of the attempt that did ask, and the time since then is what counts.
  lease.rollback();
  throw failureOf(failure);
}

/** The error for a lease that ran out before what it was taken for was begun. */
export function leaseLost(): AgentAuthError {
  return new AgentAuthError("lease_lost", "this process was held up for so long that another one may have taken over", {
    class: "unavailable",
  });
}
