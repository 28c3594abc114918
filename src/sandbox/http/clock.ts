/** A clock that can be moved forward. */
export interface SandboxClock {
  /** The time, in milliseconds since 1970. */
  now(): number;
  /**
   * Moves the clock forward, for everything that the sandbox does.
   *
   * @param ms milliseconds, not negative
   * @returns the new time
   * @throws TypeError for any other value
   */
  advance(ms: number): number;
}

/** The sandbox's clock, with its distance from the machine's clock. */
export class MovableClock implements SandboxClock {
  readonly #base: () => number;
  #offset = 0;

  constructor(base: () => number) {
    this.#base = base;
  }

  now(): number {
    return this.#base() + this.#offset;
  }

  advance(ms: number): number {
    if (!Number.isSafeInteger(ms) || ms < 0)
      throw new TypeError("clock.advance: ms must be whole milliseconds, 0 or more");
    this.#offset += ms;
    return this.now();
  }

  /**
   * How many whole seconds this clock is ahead of the machine's. oidc-provider reads the machine's clock alone: times
   * that it stores and signs are shifted by the skew on their way out and in.
   */
  get skew(): number {
    const machine = Date.now();
    // Two readings of one clock would differ by the time between them.
    const own = this.#base === Date.now ? machine + this.#offset : this.now();
    return Math.floor(own / 1000) - Math.floor(machine / 1000);
  }
}
