import { type AbortSource, type Clock, untilAborted } from "./deadline.js";

/**
 * Slows the requests of one client down together, once the service says that there are too many: all wait as long as it
 * asks, then one is sent at a time, and one more at once after each success.
 */
export class Throttle {
  /** How many requests the service has answered as they wanted. */
  successes = 0;
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  /** Requests that may be in flight at once. */
  #width = Number.POSITIVE_INFINITY;
  #inFlight = 0;
  /** When the next request may be sent. */
  #resumesAt = Number.NEGATIVE_INFINITY;
  #pauses = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Sends one request as soon as it may be sent.
   *
   * @param isSuccess whether one more may be in flight after this result
   * @throws the reason of the signal, also while it waits
   */
  async run<T>(
    send: () => Promise<T>,
    isSuccess: (result: T) => boolean,
    limit: AbortSource & { readonly signal: AbortSignal },
  ): Promise<T> {
    while (this.#inFlight >= this.#width) {
      await untilAborted(new Promise<void>((resolve) => this.#waiting.push(resolve)), limit);
    }
    this.#inFlight++;
    try {
      await this.#pause(limit.signal);
      const pauses = this.#pauses;
      const result = await send();
      if (isSuccess(result)) {
        this.successes++;
        // What was sent before a pause says nothing about the time after it.
        if (pauses === this.#pauses) this.#width++;
      }
      return result;
    } finally {
      this.#inFlight--;
      this.#wake();
    }
  }

  /** Nothing is sent for a time. */
  pause(ms: number): void {
    this.#resumesAt = Math.max(this.#resumesAt, this.#clock.now() + ms);
    this.#width = 1;
    this.#pauses++;
  }

  /** Only the next requests wait on the clock: all others wait for these. */
  async #pause(signal: AbortSignal): Promise<void> {
    for (let until = Number.NEGATIVE_INFINITY; until < this.#resumesAt; ) {
      until = this.#resumesAt;
      const left = until - this.#clock.now();
      if (left > 0) await this.#clock.sleep(left, signal);
    }
  }

  /** Lets all look again: one that was aborted would not pass its turn on. */
  #wake(): void {
    for (const look of this.#waiting.splice(0)) look();
  }
}
