import type { Clock } from "../http/deadline.js";
import { Lru } from "../http/lru.js";

/** Subjects whose requests are counted at once. */
const MAX_SUBJECTS = 10_000;
const MINUTE_MS = 60_000;

/** A bucket of tokens for each subject, in this process: full at first, and refilled within a minute. */
export class RateLimit {
  readonly #perMinute: number;
  readonly #clock: Pick<Clock, "now">;
  readonly #buckets = new Lru<{ left: number; at: number }>(MAX_SUBJECTS);

  constructor(perMinute: number, clock: Pick<Clock, "now">) {
    this.#perMinute = perMinute;
    this.#clock = clock;
  }

  /** Counts a request. @returns the seconds to wait if it is one too many */
  secondsToWait(subject: string): number | undefined {
    const now = this.#clock.now();
    const { left, at } = this.#buckets.get(subject) ?? { left: this.#perMinute, at: now };
    const refilled = Math.min(this.#perMinute, left + ((now - at) * this.#perMinute) / MINUTE_MS);
    const isAllowed = refilled >= 1;
    this.#buckets.set(subject, { left: isAllowed ? refilled - 1 : refilled, at: now });
    return isAllowed ? undefined : Math.ceil(((1 - refilled) * MINUTE_MS) / this.#perMinute / 1000);
  }
}
