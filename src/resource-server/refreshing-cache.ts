import type { AgentAuthError } from "../errors.js";
import { isAgentAuthError } from "../errors.js";
import type { Clock } from "../http/deadline.js";
import { SingleFlight } from "../http/single-flight.js";

/** How a {@link RefreshingCache} value is read, and for how long it is valid. */
export interface RefreshingCacheOptions<T> {
  read: (signal: AbortSignal) => Promise<T>;
  /** Milliseconds. */
  ttl: number;
  /** Milliseconds for which a value is used beyond `ttl` while it cannot be read again. Default 0. */
  staleMs?: number;
  clock: Pick<Clock, "now">;
}

/** For this long after a failure, requests get its error without another attempt. */
const FAILURE_MS = 5000;
const REFRESH_INTERVAL_MS = 60_000;

/** A remote value with a time to live: concurrent reads are shared, and it is refreshed before it expires. */
export class RefreshingCache<T> {
  readonly #options: RefreshingCacheOptions<T>;
  readonly #flights = new SingleFlight<T>();
  #value: { value: T; readAt: number } | undefined;
  #failure: { error: AgentAuthError; at: number } | undefined;

  constructor(options: RefreshingCacheOptions<T>) {
    this.#options = options;
  }

  /** The cached value, however old; undefined before the first read. */
  get current(): T | undefined {
    return this.#value?.value;
  }

  /** When the cached value was read, on the clock's `now()`; undefined before the first read. */
  get readAt(): number | undefined {
    return this.#value?.readAt;
  }

  /** Seconds until {@link refresh} reads again, at least one. */
  get cooldown(): number {
    return Math.max(1, Math.ceil((this.#lastAt + REFRESH_INTERVAL_MS - this.#options.clock.now()) / 1000));
  }

  /** The cached value while it is valid, else a new one. @throws the error of reading it, which is cached for five seconds */
  async get(signal: AbortSignal | undefined): Promise<T> {
    const { ttl, staleMs = 0, clock } = this.#options;
    const now = clock.now();
    const cached = this.#value;
    if (cached && now - cached.readAt < ttl) {
      // Refreshed in the background in the second half of its life, so that no request waits, and a short failure has no effect.
      if (now - cached.readAt > ttl / 2 && this.#mayReadAgain(now)) void this.#read(undefined).catch(() => undefined);
      return cached.value;
    }
    const stale = cached && now - cached.readAt < ttl + staleMs ? cached : undefined;
    if (this.#failure && now - this.#failure.at < FAILURE_MS) {
      if (stale) return stale.value;
      throw this.#failure.error;
    }
    if (!stale) return this.#read(signal);
    // Only a failure of the issuer: who aborted gets no value.
    return this.#read(signal).catch((error: unknown) => {
      if (this.#failure?.error !== error) throw error;
      return stale.value;
    });
  }

  /**
   * Reads the value again, once a minute at most: in between, returns the cached one.
   *
   * @throws the error of reading it, for a minute
   */
  async refresh(signal: AbortSignal | undefined): Promise<T> {
    const now = this.#options.clock.now();
    if (this.#value === undefined || this.#mayReadAgain(now)) return this.#read(signal);
    if (this.#failure) throw this.#failure.error;
    return this.#value.value;
  }

  #mayReadAgain(now: number): boolean {
    return now - this.#lastAt >= REFRESH_INTERVAL_MS;
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
