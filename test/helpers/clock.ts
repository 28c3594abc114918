import { abortedError } from "../../src/errors.js";
import type { Clock } from "../../src/http/deadline.js";

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
