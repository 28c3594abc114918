/** A clock that can be put forward. */
export interface SandboxClock {
  /** The time, in milliseconds since 1970. */
  now(): number;
  /**
   * Puts the clock forward, for everything that the sandbox does.
   *
   * @param ms milliseconds, not negative
   * @returns the time after it
   * @throws TypeError for anything else
   */
  advance(ms: number): number;
}

/** The sandbox's clock, which also knows how far it is from the machine's. */
export class Clock implements SandboxClock {
  readonly #base: () => number;
  #offset = 0;

  constructor(base: () => number) {
    this.#base = base;
  }

  now(): number {
    return this.#base() + this.#offset;
  }

  advance(ms: number): number {
    if (!Number.isSafeInteger(ms) || ms < 0) throw new TypeError("clock.advance: give whole milliseconds, 0 or more");
    this.#offset += ms;
    return this.now();
  }

  /**
   * How many whole seconds it is ahead of the machine's clock. oidc-provider only knows the machine's: what it stores
   * and signs is shifted by this on the way out and in.
   */
  get skew(): number {
    const machine = Date.now();
    // Two readings of one clock would differ by the time between them.
    const own = this.#base === Date.now ? machine + this.#offset : this.now();
    return Math.floor(own / 1000) - Math.floor(machine / 1000);
  }
}
