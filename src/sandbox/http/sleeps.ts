/** Cancellable sleeps: all of them end when the sandbox closes, so that no slow response delays it. */
export class Sleeps {
  readonly #pending = new Map<NodeJS.Timeout, () => void>();
  #ended = false;

  /** Sleeps; returns at once after {@link Sleeps.end}. */
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

  /** Ends every sleep, including later ones. */
  end(): void {
    this.#ended = true;
    for (const [timer, resolve] of this.#pending) {
      clearTimeout(timer);
      resolve();
    }
    this.#pending.clear();
  }
}
