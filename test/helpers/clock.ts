import { abortedError } from "../../src/errors.js";
import type { Clock } from "../../src/http/deadline.js";

/** A clock whose time passes when nothing else happens: those that sleep at once wake in the order of their times. */
export class VirtualClock implements Clock {
  #time = 0;
  #isTurning = false;
  readonly #sleeping: { at: number; wake: () => void }[] = [];

  now(): number {
    return this.#time;
  }

  epoch(): number {
    return Date.UTC(2030, 0, 1) + this.#time;
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw abortedError(signal);
    await new Promise<void>((wake) => {
      this.#sleeping.push({ at: this.#time + ms, wake });
      void this.#turn();
    });
    if (signal.aborted) throw abortedError(signal);
  }

  async #turn(): Promise<void> {
    if (this.#isTurning) return;
    this.#isTurning = true;
    while (this.#sleeping.length > 0) {
      // What is ready to run comes before time passes.
      for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setImmediate(resolve));
      const at = Math.min(...this.#sleeping.map((one) => one.at));
      const next = this.#sleeping.findIndex((one) => one.at === at);
      this.#time = at;
      for (const { wake } of this.#sleeping.splice(next, 1)) wake();
    }
    this.#isTurning = false;
  }
}

/** A clock on which waiting takes no time: `sleep` moves it forward and records the wait. */
export class FakeClock implements Clock {
  /** Milliseconds of every wait, in order. */
  readonly waits: number[] = [];
  #time = 1000;
  readonly #start: number;

  /** @param start milliseconds since the Unix epoch at which it begins */
  constructor(start = Date.UTC(2030, 0, 1)) {
    this.#start = start;
  }

  now(): number {
    return this.#time;
  }

  epoch(): number {
    return this.#start + this.#time - 1000;
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw abortedError(signal);
    this.waits.push(ms);
    this.#time += ms;
  }
}
