import { AgentAuthError, abortedError } from "../../../src/errors.js";
import type { StoreDriver } from "../../../src/store/driver/driver.js";
import type { StoreClock } from "../../../src/store/driver/engine.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";

/** Lets what was answered go on. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

interface Timer {
  due: number;
  every: number | undefined;
  fire(): void;
}

/** The time of an engine and of the processes that use it. Nothing waits: {@link advance} moves it. */
export class TestTime {
  #now = Date.UTC(2030, 0, 1);
  readonly #timers = new Set<Timer>();

  epoch = () => this.#now;

  /** How many timers are set. */
  get timers(): number {
    return this.#timers.size;
  }

  /** The clock of a process. While it is stalled, its timers do not fire. */
  process(): StoreClock & { isStalled: boolean } {
    const clock = {
      isStalled: false,
      now: this.epoch,
      epoch: this.epoch,
      sleep: (ms: number, signal: AbortSignal) =>
        new Promise<void>((resolve, reject) => {
          const onAbort = () => {
            this.#timers.delete(timer);
            reject(abortedError(signal));
          };
          const timer = this.#add(ms, undefined, () => {
            signal.removeEventListener("abort", onAbort);
            resolve();
          });
          signal.addEventListener("abort", onAbort);
        }),
      every: (ms: number, beat: () => void) => {
        const timer = this.#add(ms, ms, () => {
          if (!clock.isStalled) beat();
        });
        return () => this.#timers.delete(timer);
      },
    };
    return clock;
  }

  #add(ms: number, every: number | undefined, fire: () => void): Timer {
    const timer = { due: this.#now + ms, every, fire };
    this.#timers.add(timer);
    return timer;
  }

  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await settle();
      const next = [...this.#timers].filter(({ due }) => due <= end).sort((a, b) => a.due - b.due)[0];
      if (next === undefined) break;
      this.#now = Math.max(this.#now, next.due);
      if (next.every === undefined) this.#timers.delete(next);
      else next.due += next.every;
      next.fire();
    }
    this.#now = end;
    await settle();
  }
}

type Operation = "get" | "put" | "delete" | "claim" | "extend" | "release";

/** A driver over another one whose operations fail as a test wants. */
export interface FaultyDriver extends StoreDriver {
  /** How often each operation was asked for. */
  readonly calls: Record<Operation, number>;
  /** Before the operation: what it throws, or waits for. */
  before: Partial<Record<Operation, () => unknown>>;
  /** After it has happened: the same. */
  after: Partial<Record<Operation, () => unknown>>;
}

/** An answer that does not arrive. */
export function lost(): never {
  throw new AgentAuthError("store_unavailable", "the engine did not answer", { class: "unavailable" });
}

export function faulty(driver: StoreDriver = memoryDriver()): FaultyDriver {
  const calls = { get: 0, put: 0, delete: 0, claim: 0, extend: 0, release: 0 };
  const faults: Pick<FaultyDriver, "before" | "after"> = { before: {}, after: {} };
  const on = async <T>(operation: Operation, work: () => Promise<T>): Promise<T> => {
    calls[operation]++;
    await faults.before[operation]?.();
    const result = await work();
    await faults.after[operation]?.();
    return result;
  };
  return Object.assign(faults, {
    calls,
    system: driver.system,
    location: driver.location,
    get: (...args: Parameters<StoreDriver["get"]>) => on("get", () => driver.get(...args)),
    put: (...args: Parameters<StoreDriver["put"]>) => on("put", () => driver.put(...args)),
    delete: (...args: Parameters<StoreDriver["delete"]>) => on("delete", () => driver.delete(...args)),
    scan: (...args: Parameters<StoreDriver["scan"]>) => driver.scan(...args),
    claim: (...args: Parameters<StoreDriver["claim"]>) => on("claim", () => driver.claim(...args)),
    extend: (...args: Parameters<StoreDriver["extend"]>) => on("extend", () => driver.extend(...args)),
    release: (...args: Parameters<StoreDriver["release"]>) => on("release", () => driver.release(...args)),
    watch: driver.watch?.bind(driver) as NonNullable<StoreDriver["watch"]>,
  });
}

/** Puts the record of a kind back to what it was, as a failover to a replica does that is behind. */
export async function failover(driver: StoreDriver, kind: "grant"): Promise<() => Promise<void>> {
  const [before] = (await driver.scan({ kind }, { limit: 10 })).items;
  if (before === undefined) throw new Error("there is no record");
  return async () => {
    const now = await driver.get(before.key);
    await driver.put(before.key, before.value, now?.version);
  };
}
