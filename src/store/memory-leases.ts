import { untilAborted } from "../http/deadline.js";

/** "One at a time" inside one process. */
export class MemoryLeases {
  readonly #last = new Map<string, Promise<void>>();

  /**
   * Runs work when all work that was given under the same name before has ended; a signal ends the wait for it. The work
   * gets whether it had to wait.
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
