import { AsyncLocalStorage } from "node:async_hooks";
import { type Clock, systemClock } from "../../src/http/deadline.js";

const factors = new AsyncLocalStorage<number>();
/** How many pieces of work are under way. */
let running = 0;
let restore = () => {};

/**
 * Runs work on a clock that is `factor` times as fast: its timers of a second or more fire `factor` times as early.
 * Shorter timers, and those of other tests at the same time, stay as they are. For limits whose timers take no clock.
 */
export async function withFastClock<T>(factor: number, work: () => Promise<T>): Promise<T> {
  if (running++ === 0) restore = speedUpTimers();
  try {
    return await factors.run(factor, work);
  } finally {
    if (--running === 0) restore();
  }
}

/** The factor of the work that calls; 1 outside of {@link withFastClock}. */
export const clockFactor = () => factors.getStore() ?? 1;

/** The clock of the work that calls; undefined outside of {@link withFastClock}. */
export function clockOfWork(): Clock | undefined {
  const factor = factors.getStore();
  return factor === undefined ? undefined : fastClock(factor);
}

/** A clock on which time passes `factor` times as fast as on that of the machine. */
export function fastClock(factor: number): Clock {
  const [start, epoch] = [systemClock.now(), systemClock.epoch()];
  const passed = () => (systemClock.now() - start) * factor;
  return {
    now: () => start + passed(),
    epoch: () => Math.round(epoch + passed()),
    sleep: (ms, signal) => systemClock.sleep(ms / factor, signal),
  };
}

function speedUpTimers(): () => void {
  const original = { setTimeout, setInterval };
  const wrap = (set: typeof setTimeout | typeof setInterval) =>
    Object.assign((run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => {
      return set(run, ms < 1000 ? ms : ms / clockFactor(), ...args);
    }, set);
  Object.assign(globalThis, { setTimeout: wrap(setTimeout), setInterval: wrap(setInterval) });
  return () => void Object.assign(globalThis, original);
}
