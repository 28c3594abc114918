/** Waits that all end at once when the sandbox closes, so that no slow answer keeps it alive. */
export class Sleeps {
  readonly #pending = new Map<NodeJS.Timeout, () => void>();
  #ended = false;

  /** Waits, or returns at once after {@link Sleeps.end}. */
  sleep(ms: number): Promise<void> {
    if (ms <= 0 || this.#ended) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#pending.delete(timer);
        resolve();
      }, ms);
      this.#pending.set(timer, resolve);
    });
  }

  /** Ends every wait, those to come included. */
  end(): void {
    this.#ended = true;
    for (const [timer, resolve] of this.#pending) {
      clearTimeout(timer);
      resolve();
    }
    this.#pending.clear();
  }
}
