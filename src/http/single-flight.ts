import { untilAborted } from "./deadline.js";

interface Flight<T> {
  result: Promise<T>;
  /** How many still wait for it. */
  waiting: number;
  abort(reason: unknown): void;
}

/** Any number of callers, one flight: work under a name is done once for all who ask for it while it is on its way. */
export class SingleFlight<T> {
  readonly #flying = new Map<string, Flight<T>>();

  /**
   * Joins the work under way, or begins it. A signal ends its own caller's wait. When the last one leaves, the work's
   * signal fires, and that caller is let go when the work has ended: it may have something to put in order.
   */
  async run(name: string, work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    const flight = this.#flying.get(name) ?? this.#begin(name, work);
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

  #begin(name: string, work: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const controller = new AbortController();
    const result = work(controller.signal).finally(() => this.#settle(name, flight));
    const flight: Flight<T> = { result, waiting: 0, abort: (reason) => controller.abort(reason) };
    this.#flying.set(name, flight);
    return flight;
  }

  /** Whoever comes from now on begins anew. */
  #settle(name: string, flight: Flight<T>): void {
    if (this.#flying.get(name) === flight) this.#flying.delete(name);
  }
}
