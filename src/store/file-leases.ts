import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { AgentAuthError, abortedError, isAgentAuthError } from "../errors.js";
import { type Attempt, type Lease, type LeaseOptions, leaseLost } from "../oauth/lease.js";
import { type Claim, Claims, type Latest } from "./claims.js";
import { bootClock, fateOf, thisHolder } from "./holder.js";
import { Leases } from "./leases.js";
import { withinLease } from "./send-guard.js";

/** Clocks of two machines are taken to agree within this. */
const SKEW_MS = 120_000;
/** How much longer a holder that cannot be seen is waited for when it may have done what must not happen twice. */
const BENEFIT_OF_DOUBT = 3;
const POLL_MS = { first: 10, most: 100 };

/** Leases between all processes that share a folder, on claims in it. */
export class FileLeases {
  readonly #claims: Claims;
  readonly #here = new Leases();

  constructor(folder: string) {
    this.#claims = new Claims(folder);
  }

  /** As `GrantStore.lease`. Those of one process queue up before they look at the files. */
  run<T>(name: string, work: (lease: Lease) => Promise<T>, options: LeaseOptions<T>): Promise<T> {
    const key = createHash("sha256").update(name).digest("hex").slice(0, 40);
    return this.#here.run(key, (waited) => this.#hold({ key, waited }, work, options), options.signal);
  }

  async #hold<T>(
    { key, waited }: { key: string; waited: boolean },
    work: (lease: Lease) => Promise<T>,
    options: LeaseOptions<T>,
  ): Promise<T> {
    const taken = await this.#take(key, options);
    if ("instead" in taken) return taken.instead;
    const held = new HeldLease(this.#claims, key, { ...taken, waited: taken.waited || waited }, options);
    try {
      const result = await (options.extend ? work(held) : withinLease(held, () => work(held)));
      if (options.once) this.#claims.forget(key);
      else held.finish(undefined);
      return result;
    } catch (error) {
      held.finish(isAgentAuthError(error) ? error : undefined);
      throw error;
    } finally {
      held.end();
    }
  }

  async #take<T>(key: string, options: LeaseOptions<T>): Promise<Taken | { instead: T }> {
    const since = bootClock();
    let waited = false;
    const watch = new Watch(this.#claims, key);
    for (let pause = POLL_MS.first; ; pause = Math.min(pause * 1.5, POLL_MS.most)) {
      if (options.signal?.aborted) throw abortedError(options.signal);
      const seen = watch.look();
      if (seen.free) {
        const claim = claimFor(options);
        const attempt = (seen.latest?.attempt ?? 0) + 1;
        if (this.#claims.take(key, attempt, claim)) return { attempt, claim, before: seen.before, waited };
        continue;
      }
      if (!waited) options.onWait?.({ pid: seen.claim?.holder.pid, at: seen.claim?.at ?? Date.now() });
      waited = true;
      const instead = await options.until?.();
      if (instead !== undefined) return { instead };
      if (bootClock() - since > (options.patience ?? Number.POSITIVE_INFINITY)) throw busy(seen.claim);
      // Not all at the same moment.
      await sleep(pause * (0.5 + Math.random()), undefined, options.signal ? { signal: options.signal } : {}).catch(
        () => undefined,
      );
    }
  }
}

interface Taken {
  attempt: number;
  claim: Claim;
  before: Attempt | undefined;
  waited: boolean;
}

function claimFor({ duration, extend = false }: LeaseOptions<unknown>): Claim {
  return { holder: thisHolder(), at: Date.now(), deadline: bootClock() + duration, duration, extend };
}

/** What a process that waits has seen of those before it. */
class Watch {
  readonly #claims: Claims;
  readonly #key: string;
  #attempt: number | undefined;
  #claim: Claim | undefined;
  #seenAt = 0;
  #beat: number | undefined;

  constructor(claims: Claims, key: string) {
    this.#claims = claims;
    this.#key = key;
  }

  look(): { free: boolean; latest: Latest | undefined; before: Attempt | undefined; claim: Claim | undefined } {
    // The clock before the files: what a holder wrote before its time was over must then be seen.
    const now = bootClock();
    const latest = this.#claims.latest(this.#key);
    if (!latest) return { free: true, latest, before: undefined, claim: undefined };
    this.#follow(latest.attempt, now);
    const claim = this.#claim;
    const ended: Attempt["ended"] | undefined = latest.done ? "released" : this.#verdict(latest, claim, now);
    if (ended === undefined) return { free: false, latest, before: undefined, claim };
    const ending = latest.done ? this.#claims.ending(this.#key, latest.attempt) : undefined;
    const { committed } = latest;
    const before = { at: claim?.at ?? 0, endedAt: ending?.at, ended, committed, failure: ending?.failure };
    return { free: true, latest, before, claim };
  }

  /** An attempt is watched from when it is first seen, or from its last sign of life. */
  #follow(attempt: number, now: number): void {
    const beat = this.#claims.lastBeat(this.#key, attempt);
    if (attempt === this.#attempt && beat === this.#beat) return;
    if (attempt !== this.#attempt) this.#claim = this.#claims.read(this.#key, attempt);
    this.#attempt = attempt;
    this.#beat = beat;
    this.#seenAt = now;
  }

  #verdict(latest: Latest, claim: Claim | undefined, now: number): "died" | "expired" | undefined {
    // Nothing can be read of it: it gets the time that a claim of ours would have.
    if (!claim) return now - this.#seenAt > SKEW_MS ? "expired" : undefined;
    const fate = fateOf(claim.holder);
    if (fate === "dead") return "died";
    if (latest.committed && fate === "alive") return undefined;
    const time = claim.duration * (latest.committed ? BENEFIT_OF_DOUBT : 1);
    const isOurClock = claim.holder.boot === thisHolder().boot && !claim.extend;
    const over = isOurClock
      ? now >= claim.deadline + time - claim.duration
      : now - this.#seenAt > time || Date.now() - (this.#beat ?? claim.at) > time + SKEW_MS;
    return over ? "expired" : undefined;
  }
}

/** A lease in the hands of this process. */
class HeldLease implements Lease {
  readonly before: Attempt | undefined;
  readonly waited: boolean;
  readonly #claims: Claims;
  readonly #key: string;
  readonly #attempt: number;
  readonly #duration: number;
  readonly #timer: NodeJS.Timeout | undefined;
  #from: { clock: number; epoch: number };

  constructor(claims: Claims, key: string, { attempt, claim, before, waited }: Taken, options: LeaseOptions<unknown>) {
    this.#claims = claims;
    this.#key = key;
    this.#attempt = attempt;
    this.#duration = claim.duration;
    this.before = before;
    this.waited = waited;
    this.#from = { clock: claim.deadline - claim.duration, epoch: claim.at };
    if (options.extend) this.#timer = setInterval(() => this.#beat(), claim.duration / 5).unref();
  }

  /** The machine's clock too: one that slept counts no time, while others that share the folder do. */
  left(): number {
    const gone = Math.max(bootClock() - this.#from.clock, Date.now() - this.#from.epoch);
    return Math.max(0, this.#duration - gone);
  }

  async commit(): Promise<void> {
    this.#claims.commit(this.#key, this.#attempt);
    // Only now: whoever takes over after the time is up has seen the mark, and whoever took over before is seen here.
    if (this.left() === 0 || this.#claims.latest(this.#key)?.attempt !== this.#attempt) throw leaseLost();
  }

  finish(failure: AgentAuthError | undefined): void {
    try {
      this.#claims.finish(this.#key, this.#attempt, { at: Date.now(), failure: failure?.toJSON() });
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      // A full disk must not hide what the work came to, nor keep others waiting for a claim that nobody needs.
      this.#claims.withdraw(this.#key, this.#attempt);
    }
  }

  end(): void {
    clearInterval(this.#timer);
  }

  #beat(): void {
    try {
      this.#claims.beat(this.#key, this.#attempt);
      this.#from = { clock: bootClock(), epoch: Date.now() };
    } catch {
      // A claim that is gone was given up by everybody; the time that is left tells it.
    }
  }
}

function busy(claim: Claim | undefined): AgentAuthError {
  const who = claim
    ? `process ${claim.holder.pid}, which began ${new Date(claim.at).toISOString()},`
    : "another process";
  return new AgentAuthError("lease_busy", `${who} is at work on this and does not end`, {
    class: "unavailable",
    hint: claim ? `if it is stopped, let it go on: kill -CONT ${claim.holder.pid}` : undefined,
  });
}
