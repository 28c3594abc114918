import type { AgentAuthError } from "../errors.js";
import { isAgentAuthError } from "../errors.js";
import type { Clock } from "../http/deadline.js";
import { SingleFlight } from "../http/single-flight.js";

/** How a {@link RefreshingCache} value is read and for how long it is good. */
export interface RefreshingCacheOptions<T> {
  read: (signal: AbortSignal) => Promise<T>;
  /** Milliseconds. */
  ttl: number;
  clock: Pick<Clock, "now">;
}

/** A failure is not tried anew by each of the requests that wait for it to pass. */
const FAILURE_MS = 5000;
const AGAIN_MS = 60_000;

/** Something that is read from elsewhere and used for a while: read once for all who want it, and renewed before it ends. */
export class RefreshingCache<T> {
  readonly #options: RefreshingCacheOptions<T>;
  readonly #flights = new SingleFlight<T>();
  #value: { value: T; readAt: number } | undefined;
  #failure: { error: AgentAuthError; at: number } | undefined;

  constructor(options: RefreshingCacheOptions<T>) {
    this.#options = options;
  }

  /** The value that is there, however old; undefined before the first was read. */
  get current(): T | undefined {
    return this.#value?.value;
  }

  /** Seconds until {@link refresh} reads again, at least one. */
  get cooldown(): number {
    return Math.max(1, Math.ceil((this.#lastAt + AGAIN_MS - this.#options.clock.now()) / 1000));
  }

  /** The value while it is good, else read. @throws what reading it threw, for five seconds without reading it anew */
  async get(signal: AbortSignal | undefined): Promise<T> {
    const { ttl, clock } = this.#options;
    const now = clock.now();
    const kept = this.#value;
    if (kept && now - kept.readAt < ttl) {
      // In the second half of its life it is renewed aside, so that nobody has to wait, and a short failure goes unnoticed.
      if (now - kept.readAt > ttl / 2 && this.#mayReadAgain(now)) void this.#read(undefined).catch(() => undefined);
      return kept.value;
    }
    if (this.#failure && now - this.#failure.at < FAILURE_MS) throw this.#failure.error;
    return this.#read(signal);
  }

  /**
   * The value read anew, once a minute at most: in between, the one that is there.
   *
   * @throws what reading it threw, for a minute
   */
  async refresh(signal: AbortSignal | undefined): Promise<T> {
    const now = this.#options.clock.now();
    if (this.#value === undefined || this.#mayReadAgain(now)) return this.#read(signal);
    if (this.#failure) throw this.#failure.error;
    return this.#value.value;
  }

  #mayReadAgain(now: number): boolean {
    return now - this.#lastAt >= AGAIN_MS;
  }

  get #lastAt(): number {
    return Math.max(this.#value?.readAt ?? -Infinity, this.#failure?.at ?? -Infinity);
  }

  #read(signal: AbortSignal | undefined): Promise<T> {
    return this.#flights.run("read", (own) => this.#readOnce(own), signal);
  }

  async #readOnce(signal: AbortSignal): Promise<T> {
    const { read, clock } = this.#options;
    try {
      const value = await read(signal);
      this.#value = { value, readAt: clock.now() };
      this.#failure = undefined;
      return value;
    } catch (error) {
      if (isAgentAuthError(error) && error.class !== "aborted") this.#failure = { error, at: clock.now() };
      throw error;
    }
  }
}
