import { setMaxListeners } from "node:events";
import { setTimeout } from "node:timers/promises";

/** Cancellable sleeps: all of them end when the sandbox closes, so that no slow response delays it. */
export class Sleeps {
  readonly #ended = new AbortController();

  constructor() {
    // One listener for each sleep: many slow responses are no leak.
    setMaxListeners(0, this.#ended.signal);
  }

  /** Sleeps; returns at once after {@link Sleeps.end}. */
  async sleep(ms: number): Promise<void> {
    if (ms > 0) await setTimeout(ms, undefined, { signal: this.#ended.signal }).catch(() => {});
  }

  /** Ends every sleep, including later ones. */
  end(): void {
    this.#ended.abort();
  }
}
