import { setImmediate } from "node:timers/promises";
import { AgentAuthError } from "../../../src/errors.js";
import type { StoreDriver } from "../../../src/store/driver/driver.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";
import { changed, type TestClock } from "./mutant.js";

/** What a faulty engine does when it is killed. */
export interface Fault {
  readonly mistake: string;
  readonly caseName: string;
  /** The engine after its restart. */
  restarted?(before: StoreDriver, clock: TestClock): StoreDriver;
  /** How an operation ends while the engine is down. */
  down?(): Promise<never>;
  readonly isSilentAboutGaps?: boolean;
}

/** An engine that a test kills and starts again. */
export function killable(clock: TestClock, fault: Partial<Fault> = {}) {
  let engine = memoryDriver({ clock });
  let isDown = false;
  const gaps = new Set<() => void>();
  const call = async (name: string, args: unknown[]): Promise<unknown> => {
    // An engine answers later: without a pause, a loop of operations would let no timer fire.
    await setImmediate();
    if (isDown) await (fault.down ?? unavailable)();
    return Reflect.apply(Reflect.get(engine, name), engine, args);
  };
  const watch: StoreDriver["watch"] = async (onChange, onGap, signal) => {
    gaps.add(onGap);
    await engine.watch?.(onChange, onGap, signal);
  };
  const open = () =>
    new Proxy(engine, {
      get: (_target, name: string) => {
        if (name === "watch") return watch;
        const value: unknown = Reflect.get(engine, name, engine);
        return typeof value === "function" ? (...args: unknown[]) => call(name, args) : value;
      },
    });
  return {
    open,
    kill: async () => {
      isDown = true;
    },
    restart: async () => {
      engine = fault.restarted?.(engine, clock) ?? engine;
      isDown = false;
      if (!fault.isSilentAboutGaps) for (const onGap of gaps) onGap();
    },
  };
}

export async function unavailable(): Promise<never> {
  throw new AgentAuthError("store_unavailable", "the engine does not answer", { class: "unavailable" });
}

export const faults: readonly Fault[] = [
  {
    mistake: "loses its records when it is killed",
    caseName: "an acknowledged put is there after the engine was killed",
    restarted: (_before, clock) => memoryDriver({ clock }),
  },
  {
    mistake: "loses its leases when it is killed",
    caseName: "versions and attempts go on after the engine was killed",
    restarted: (before, clock) => {
      const other = memoryDriver({ clock });
      return changed(before, { claim: other.claim.bind(other) });
    },
  },
  {
    mistake: "fails with another error while it is down",
    caseName: "an engine that was killed is store_unavailable until it is back",
    down: () => Promise.reject(new Error("read ECONNRESET")),
  },
  {
    mistake: "waits for ever while it is down",
    caseName: "an engine that was killed is store_unavailable until it is back",
    down: () => new Promise(() => {}),
  },
  {
    mistake: "does not say that changes may be missing",
    caseName: "a watch says when changes may be missing",
    isSilentAboutGaps: true,
  },
];
