import type { Liveness, LockRecord } from "./lock-owner.js";

/** The clocks of two machines are assumed to differ by at most this. */
const SKEW_MS = 120_000;
/** How much later the lock of an invisible holder expires when it may have done what must not happen twice. */
const COMMITTED_FACTOR = 3;

/** What a process that waits for a lease observes of the newest attempt. */
export interface Observation {
  /** Whether the attempt has the mark "done". */
  readonly done: boolean;
  /** Whether it has the mark "sent": it may have done what must not happen twice. */
  readonly sent: boolean;
  /** Whether its process is alive; `unknown` also where its lock file cannot be read. */
  readonly owner: Liveness;
  /** Whether its lock has expired: by {@link isLockOver}, where its lock file can be read. */
  readonly isExpired: boolean;
}

/**
 * Decides whether to wait for an attempt, or to take over from it because of how it ended.
 *
 *     done  owner    sent  expired  decision
 *     yes   any      any   any      released
 *     no    dead     any   any      died
 *     no    alive    yes   any      wait      it may be about to store the response
 *     no    alive    no    no       wait
 *     no    alive    no    yes      expired   it is stopped or stuck, and commits no more
 *     no    unknown  any   no       wait
 *     no    unknown  any   yes      expired   the mark "sent" triples the duration
 */
export function decideTakeover({
  done,
  owner,
  sent,
  isExpired,
}: Observation): "wait" | "released" | "died" | "expired" {
  if (done) return "released";
  if (owner === "dead") return "died";
  if (owner === "alive" && sent) return "wait";
  return isExpired ? "expired" : "wait";
}

/** What the clocks show when a lock file is read. */
export interface Clocks {
  /** The boot of this machine, and its monotonic clock in milliseconds. */
  readonly boot: string;
  readonly now: number;
  /** Unix milliseconds. */
  readonly epoch: number;
  /** The last heartbeat of the holder, in Unix milliseconds; undefined where none can be read. */
  readonly beat: number | undefined;
  /** Milliseconds since this process first saw the lock, or its last heartbeat. */
  readonly watched: number;
}

/**
 * Whether a lock has expired by a clock that counts for it.
 *
 *     clock         counts for                      from
 *     this process  every lock                      the moment when it first saw the lock, or its last heartbeat
 *     this boot     locks of it without heartbeats  their start
 *     epoch         locks of another boot           their last heartbeat; two minutes are allowed for the difference
 *
 * The epoch does not count for locks of this boot, because it jumps when the machine wakes, and a holder that slept as
 * well has yet to send its next heartbeat. The clock of another boot does not count, because it may be far ahead.
 */
export function isLockOver(record: LockRecord, sent: boolean, { boot, now, epoch, beat, watched }: Clocks): boolean {
  const time = record.duration * (sent ? COMMITTED_FACTOR : 1);
  if (watched > time) return true;
  if (record.holder.boot === boot) return !record.extend && now >= record.deadline + time - record.duration;
  return epoch - (beat ?? record.at) > time + SKEW_MS;
}
