import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { AgentAuthError, abortedError, isAgentAuthError } from "../errors.js";
import { type Attempt, type Lease, type LeaseOptions, leaseLost } from "../oauth/lease.js";
import { type Claim, claimId } from "./claim.js";
import { Claims, type Latest, type Turn } from "./claims.js";
import { bootClock, fateOf, thisHolder } from "./holder.js";
import { Leases } from "./leases.js";
import { withinLease } from "./send-guard.js";
import { decideTakeover, isTimeOver } from "./takeover.js";

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
    const asked = Date.now();
    return this.#here.run(key, (waited) => this.#hold({ key, waited, asked }, work, options), options.signal);
  }

  async #hold<T>(
    { key, waited, asked }: { key: string; waited: boolean; asked: number },
    work: (lease: Lease) => Promise<T>,
    options: LeaseOptions<T>,
  ): Promise<T> {
    const taken = await this.#take(key, options);
    if ("instead" in taken) return taken.instead;
    // Waiting for somebody who then left without a trace is no waiting for those before them.
    const isOlder = (taken.before?.endedAt ?? asked) < asked;
    const held = new HeldLease(this.#claims, { ...taken, waited: (taken.waited || waited) && !isOlder }, options);
    try {
      const result = await (options.extend ? work(held) : withinLease(held, () => work(held)));
      held.succeed();
      return result;
    } catch (error) {
      held.fail(error);
      throw error;
    } finally {
      held.end();
    }
  }

  async #take<T>(key: string, options: LeaseOptions<T>): Promise<Taken | { instead: T }> {
    const since = bootClock();
    let waited = false;
    const watch = new Watch(this.#claims, key, options.duration);
    for (let pause = POLL_MS.first; ; pause = Math.min(pause * 1.5, POLL_MS.most)) {
      if (options.signal?.aborted) throw abortedError(options.signal);
      const seen = watch.look();
      if (seen.free) {
        const claim = claimFor(options);
        const turn = { name: key, attempt: (seen.latest?.attempt ?? 0) + 1, id: claim.id };
        if (this.#claims.take(turn, claim, seen.latest)) return { turn, claim, before: seen.before, waited };
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
  turn: Turn;
  claim: Claim;
  before: Attempt | undefined;
  waited: boolean;
}

function claimFor({ duration, extend = false }: LeaseOptions<unknown>): Claim {
  return { id: claimId(), holder: thisHolder(), at: Date.now(), deadline: bootClock() + duration, duration, extend };
}

/** What a process that waits has seen of those before it. */
class Watch {
  readonly #claims: Claims;
  readonly #key: string;
  readonly #duration: number;
  #seen = "";
  #seenAt = 0;

  /** @param duration milliseconds after which a claim of which nothing can be read is given up */
  constructor(claims: Claims, key: string, duration: number) {
    this.#claims = claims;
    this.#key = key;
    this.#duration = duration;
  }

  look(): { free: boolean; latest: Latest | undefined; before: Attempt | undefined; claim: Claim | undefined } {
    // The clock before the files: what a holder wrote before its time was over must then be seen.
    const now = bootClock();
    const latest = this.#claims.latest(this.#key);
    if (!latest) return { free: true, latest, before: undefined, claim: undefined };
    const { attempt, committed, claim, done } = latest;
    const beat = this.#follow(latest, now);
    const watched = now - this.#seenAt;
    const clocks = { boot: thisHolder().boot, now, epoch: Date.now(), beat, watched };
    // Of a claim that cannot be read nothing is known: it gets the time that one of ours would have.
    const isOver = claim ? isTimeOver(claim, committed, clocks) : watched > this.#duration;
    const owner = claim && !done ? fateOf(claim.holder) : "unknown";
    const ended = decideTakeover({ done, owner, sent: committed, isOver });
    if (ended === "wait") return { free: false, latest, before: undefined, claim };
    const ending = done && claim ? this.#claims.ending({ name: this.#key, attempt, id: claim.id }) : undefined;
    const before = { at: claim?.at ?? 0, endedAt: ending?.at, ended, committed, failure: ending?.failure };
    return { free: true, latest, before, claim };
  }

  /** An attempt is watched from when it is first seen, or from its last sign of life. */
  #follow({ attempt, claim }: Latest, now: number): number | undefined {
    const beat = this.#claims.lastBeat(this.#key, attempt);
    const seen = `${attempt} ${claim?.id} ${beat}`;
    if (seen !== this.#seen) this.#seenAt = now;
    this.#seen = seen;
    return beat;
  }
}

/** A lease in the hands of this process. */
class HeldLease implements Lease {
  readonly before: Attempt | undefined;
  readonly waited: boolean;
  readonly #claims: Claims;
  readonly #turn: Turn;
  readonly #once: boolean;
  readonly #duration: number;
  readonly #timer: NodeJS.Timeout | undefined;
  #from: { clock: number; epoch: number };
  #isWithdrawn = false;

  constructor(claims: Claims, { turn, claim, before, waited }: Taken, options: LeaseOptions<unknown>) {
    this.#claims = claims;
    this.#turn = turn;
    this.#once = options.once === true;
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
    this.#claims.commit(this.#turn);
    // Only now: whoever takes over after the time is up has seen the mark, and whoever took over before is seen here.
    if (this.left() === 0 || !this.#claims.isNewest(this.#turn)) throw leaseLost();
  }

  withdraw(): void {
    this.#isWithdrawn = true;
  }

  succeed(): void {
    if (!this.#once || !this.#isGone("forget")) this.#end(undefined);
  }

  /** What is not an error of ours is nobody's to be told. */
  fail(error: unknown): void {
    if (!this.#isWithdrawn || !this.#isGone("withdraw")) this.#end(isAgentAuthError(error) ? error : undefined);
  }

  #end(failure: AgentAuthError | undefined): void {
    try {
      this.#claims.finish(this.#turn, { at: Date.now(), failure: failure?.toJSON() });
    } catch {
      // A full disk must not keep others waiting for a claim that nobody needs.
      this.#isGone("withdraw");
    }
  }

  /** The work is done, and what becomes of its claim changes nothing about that. */
  #isGone(how: "forget" | "withdraw"): boolean {
    try {
      return this.#claims[how](this.#turn);
    } catch {
      return false;
    }
  }

  end(): void {
    clearInterval(this.#timer);
  }

  #beat(): void {
    // The clock first: others count from when they see the sign of life, and must not be through with it sooner.
    const from = { clock: bootClock(), epoch: Date.now() };
    try {
      if (this.#claims.beat(this.#turn)) this.#from = from;
      else this.end();
    } catch {
      // Nobody saw it; the time that is left tells it.
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
