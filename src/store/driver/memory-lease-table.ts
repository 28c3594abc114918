import type { LeaseBusy, LeaseClaim, LeaseHeld, LeaseTrace } from "./driver.js";

const REMEMBERED_MS = 30 * 86_400_000;

/** The newest claim under a name. */
interface Entry {
  readonly attempt: number;
  readonly owner: string;
  readonly at: number;
  until: number;
  releasedAt: number | undefined;
  note: string;
}

/** The leases of a {@link memoryDriver}. The caller passes the time, in Unix milliseconds. */
export class MemoryLeaseTable {
  /** In the order of their claims. */
  readonly #entries = new Map<string, Entry>();
  /** One number for all names: it rises under a name that was forgotten, too. */
  #attempts = 0;

  claim(name: string, { owner, ttlMs, note }: LeaseClaim, now: number): LeaseHeld | LeaseBusy {
    const newest = this.#entries.get(name);
    const before = newest && traceOf(newest, now);
    if (newest && before && isHeld(newest, now)) return { held: false, by: before, leftMs: newest.until - now };
    this.#attempts += 1;
    const entry = { attempt: this.#attempts, owner, at: now, until: now + ttlMs, releasedAt: undefined, note };
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    this.#forgetOld(now);
    return { held: true, attempt: entry.attempt, before };
  }

  extend(name: string, { owner, ttlMs, note }: LeaseClaim, now: number): boolean {
    const entry = this.#heldBy(name, owner, now);
    if (entry === undefined) return false;
    entry.until = now + ttlMs;
    entry.note = note;
    return true;
  }

  /** @returns whether it released a lease */
  release(name: string, { owner, note }: { owner: string; note: string | undefined }, now: number): boolean {
    const entry = this.#heldBy(name, owner, now);
    if (entry === undefined) return false;
    if (note === undefined) this.#entries.delete(name);
    else Object.assign(entry, { releasedAt: now, note });
    return true;
  }

  #heldBy(name: string, owner: string, now: number): Entry | undefined {
    const entry = this.#entries.get(name);
    return entry && entry.owner === owner && isHeld(entry, now) ? entry : undefined;
  }

  /** Stops at the first claim that is not old: a look at all of them for each claim would be slow. */
  #forgetOld(now: number): void {
    for (const [name, entry] of this.#entries) {
      if ((entry.releasedAt ?? entry.until) + REMEMBERED_MS > now) return;
      this.#entries.delete(name);
    }
  }
}

function isHeld({ releasedAt, until }: Entry, now: number): boolean {
  return releasedAt === undefined && now < until;
}

function traceOf({ attempt, owner, at, releasedAt, note }: Entry, now: number): LeaseTrace {
  return { attempt, owner, at, now, releasedAt, note };
}
