import { untilAborted } from "../http/deadline.js";

interface Flight<T> {
  result: Promise<T>;
  /** How many still wait for it. */
  waiting: number;
  abandon(reason: unknown): void;
}

/** Any number of callers, one flight: work under a name is done once for all who ask for it while it is on its way. */
export class Flights<T> {
  readonly #flying = new Map<string, Flight<T>>();

  /**
   * Joins the work under way, or begins it. A caller's signal ends that caller's wait; the work itself is ended when
   * nobody waits for it any more.
   */
  async join(name: string, work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    const flight = this.#flying.get(name) ?? this.#begin(name, work);
    flight.waiting++;
    try {
      return await (signal ? untilAborted(flight.result, signal) : flight.result);
    } finally {
      if (--flight.waiting === 0) {
        // Whoever comes from now on finds nothing to join that is about to end.
        if (this.#flying.get(name) === flight) this.#flying.delete(name);
        flight.abandon(signal?.reason);
      }
    }
  }

  #begin(name: string, work: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const controller = new AbortController();
    const flight = { result: work(controller.signal), waiting: 0, abandon: (reason: unknown) => controller.abort(reason) };
    this.#flying.set(name, flight);
    // Nobody may be left to hear of a failure.
    flight.result.catch(() => undefined);
    return flight;
  }
}
