/** Lets work wait for what other work brings about. */
export class Condition {
  readonly #checks = new Set<() => void>();

  /** Has every condition looked at again. */
  changed(): void {
    for (const check of [...this.#checks]) check();
  }

  /** Resolves when the condition holds, or the signal fires. */
  until(holds: () => boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const check = () => {
        if (!holds() && !signal.aborted) return;
        this.#checks.delete(check);
        signal.removeEventListener("abort", check);
        resolve();
      };
      this.#checks.add(check);
      signal.addEventListener("abort", check);
      check();
    });
  }
}

/** Resolves when the work has ended, well or not, or after a time. */
export function settledWithin(work: Promise<unknown>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const done = () => {
      clearTimeout(timer);
      resolve();
    };
    work.then(done, done);
  });
}
