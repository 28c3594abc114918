import type { LeaseBusy, LeaseClaim, LeaseHeld, LeaseTrace } from "./driver.js";

/** The newest claim under a key, as a driver that compares it itself stores it. Times are Unix milliseconds. */
export interface LeaseEntry extends Omit<LeaseTrace, "owner" | "now"> {
  /** Undefined for a claim that was released without a trace: only its number is left. */
  readonly owner: string | undefined;
  /** When the lease is free, unless it is extended. */
  readonly until: number;
}

/** The answer to a claim, and what is stored from then on if it takes the lease. */
export function claimOver(
  newest: LeaseEntry | undefined,
  { owner, ttlMs, note }: LeaseClaim,
  { attempt, now }: { attempt: number; now: number },
): { answer: LeaseHeld | LeaseBusy; entry?: LeaseEntry } {
  const before = traceOf(newest, now);
  if (newest && before && isHeld(newest, now))
    return { answer: { held: false, by: before, leftMs: newest.until - now } };
  const entry = { attempt, owner, at: now, until: now + ttlMs, releasedAt: undefined, note };
  return { answer: { held: true, attempt, before }, entry };
}

/** What is stored after an extension; undefined if this owner does not hold the lease. */
export function extended(
  entry: LeaseEntry | undefined,
  { owner, ttlMs, note }: LeaseClaim,
  now: number,
): LeaseEntry | undefined {
  return isHeldBy(owner, entry, now) ? { ...entry, until: now + ttlMs, note } : undefined;
}

/** What is stored after a release; undefined if this owner does not hold the lease. */
export function releaseEntry(
  entry: LeaseEntry | undefined,
  { owner, note }: { readonly owner: string; readonly note: string | undefined },
  now: number,
): LeaseEntry | undefined {
  if (!isHeldBy(owner, entry, now)) return undefined;
  return note === undefined ? { ...entry, owner: undefined, note: "" } : { ...entry, releasedAt: now, note };
}

function isHeldBy(owner: string, entry: LeaseEntry | undefined, now: number): entry is LeaseEntry {
  return entry?.owner === owner && isHeld(entry, now);
}

function isHeld({ owner, releasedAt, until }: LeaseEntry, now: number): boolean {
  return owner !== undefined && releasedAt === undefined && now < until;
}

function traceOf(entry: LeaseEntry | undefined, now: number): LeaseTrace | undefined {
  if (entry?.owner === undefined) return undefined;
  const { attempt, owner, at, releasedAt, note } = entry;
  return { attempt, owner, at, now, releasedAt, note };
}
