import type { Liveness } from "./lock-owner.js";
import type { LockRecord } from "./lock-record.js";

/** Clocks of two machines are taken to agree within this. */
const SKEW_MS = 120_000;
/** How much longer a holder that cannot be seen is waited for when it may have done what must not happen twice. */
const BENEFIT_OF_DOUBT = 3;

/** What a process that waits for a lease sees of the newest attempt. */
export interface Observation {
  /** Whether the attempt has the mark "done". */
  readonly done: boolean;
  /** Whether it has the mark "sent": it may have done what must not happen twice. */
  readonly sent: boolean;
  /** Whether its process lives; `unknown` also where its claim cannot be read. */
  readonly owner: Liveness;
  /** Whether its time is over: by {@link isTimeOver}, where its claim can be read. */
  readonly isOver: boolean;
}

/**
 * Decides whether to wait for an attempt, or to take over from it, and how it ended then.
 *
 *     done  owner    sent  over  decision
 *     yes   any      any   any   released
 *     no    dead     any   any   died
 *     no    alive    yes   any   wait      it may be about to store the answer
 *     no    alive    no    no    wait
 *     no    alive    no    yes   expired   it is stopped or stuck, and may not begin any more
 *     no    unknown  any   no    wait
 *     no    unknown  any   yes   expired   the mark "sent" trebles its time
 */
export function decideTakeover({ done, owner, sent, isOver }: Observation): "wait" | "released" | "died" | "expired" {
  if (done) return "released";
  if (owner === "dead") return "died";
  if (owner === "alive" && sent) return "wait";
  return isOver ? "expired" : "wait";
}

/** What the clocks show when a claim is looked at. */
export interface Clocks {
  /** The run of this machine, and its clock in milliseconds. */
  readonly boot: string;
  readonly now: number;
  /** Unix milliseconds. */
  readonly epoch: number;
  /** The last heartbeat of the holder, in Unix milliseconds; undefined where none can be read. */
  readonly beat: number | undefined;
  /** Milliseconds since this process first saw the claim, or its last heartbeat. */
  readonly watched: number;
}

/**
 * Whether the time of a claim is over by a clock that counts for it.
 *
 *     clock         counts for                       from
 *     this process  every claim                      the moment when it first saw the claim, or its last heartbeat
 *     this boot     claims of it without heartbeats  their beginning
 *     epoch         claims of another boot           their last heartbeat; two minutes are allowed for the difference
 *
 * The epoch does not count for claims of this boot, because it jumps when the machine wakes, and a holder that slept as
 * well has yet to send its next heartbeat. The clock of another boot does not count, because it may be far ahead.
 */
export function isTimeOver(claim: LockRecord, sent: boolean, { boot, now, epoch, beat, watched }: Clocks): boolean {
  const time = claim.duration * (sent ? BENEFIT_OF_DOUBT : 1);
  if (watched > time) return true;
  if (claim.holder.boot === boot) return !claim.extend && now >= claim.deadline + time - claim.duration;
  return epoch - (beat ?? claim.at) > time + SKEW_MS;
}
