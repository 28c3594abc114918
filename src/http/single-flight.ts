import { untilAborted } from "./deadline.js";

interface Flight<T> {
  result: Promise<T>;
  waiting: number;
  abort(reason: unknown): void;
}

/** Shares work between concurrent callers: at most one promise per key is in flight. */
export class SingleFlight<T> {
  readonly #inFlight = new Map<string, Flight<T>>();

  /**
   * Joins the work in flight, or starts it. A signal ends only its caller's wait. When the last caller leaves, the work's
   * signal fires, and that caller returns once the work has settled, because the work may have to clean up.
   */
  async run(name: string, work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    const flight = this.#inFlight.get(name) ?? this.#start(name, work);
    flight.waiting++;
    try {
      return await (signal ? untilAborted(flight.result, signal) : flight.result);
    } catch (error) {
      if (signal?.aborted && flight.waiting === 1) {
        this.#settle(name, flight);
        flight.abort(signal.reason);
        await flight.result.catch(() => undefined);
      }
      throw error;
    } finally {
      flight.waiting--;
    }
  }

  #start(name: string, work: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const controller = new AbortController();
    const result = work(controller.signal).finally(() => this.#settle(name, flight));
    const flight: Flight<T> = { result, waiting: 0, abort: (reason) => controller.abort(reason) };
    this.#inFlight.set(name, flight);
    return flight;
  }

  /** Later callers start the work again. */
  #settle(name: string, flight: Flight<T>): void {
    if (this.#inFlight.get(name) === flight) this.#inFlight.delete(name);
  }
}

/** "One at a time" inside one process. */
export class OneAtATime {
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
