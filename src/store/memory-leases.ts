import { untilAborted } from "../http/deadline.js";

/** "One at a time" inside one process. */
export class MemoryLeases {
  readonly #last = new Map<string, Promise<void>>();

  /**
   * Runs work after all earlier work under the same name; a signal aborts the wait. The work learns whether it had to wait.
   */
  async run<T>(name: string, work: (waited: boolean) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const last = this.#last.get(name);
    const before = last ?? Promise.resolve();
    let done = () => {};
    const mine = new Promise<void>((resolve) => {
      done = resolve;
    });
    const chained = before.then(() => mine);
    this.#last.set(name, chained);
    try {
      await (signal ? untilAborted(before, signal) : before);
      return await work(last !== undefined);
    } finally {
      done();
      if (this.#last.get(name) === chained) this.#last.delete(name);
    }
  }
}
