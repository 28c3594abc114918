import type { Clock } from "../../http/deadline.js";
import { Lru } from "../../http/lru.js";
import { type Grant, isFresh, tokenGeneration } from "../../oauth/model/grant.js";
import type { RecordKey, StoreDriver } from "./driver.js";

/** A cache of living tokens in this process, for {@link grantStore}. */
export interface NearOptions {
  /** Milliseconds for which a token is returned without asking the engine: a logout elsewhere is seen this much later. */
  readonly ttlMs: number;
  /** The number of grants. Default: 1,000. */
  readonly maxEntries?: number | undefined;
}

const MAX_ENTRIES = 1000;

/** The grants with living tokens that this process has read within the last moments. */
export class NearGrants {
  /** Without a grant: until when the engine may have answered with what is no longer stored. */
  readonly #grants: Lru<{ grant: Grant | undefined; at: number }>;
  readonly #ttlMs: number;
  readonly #clock: Clock;
  readonly #driver: StoreDriver;
  /** How many leases are requested or held for a grant. */
  readonly #replacing = new Map<string, number>();
  #isWatching = false;
  #clearedAt = Number.NEGATIVE_INFINITY;

  constructor(driver: StoreDriver, { ttlMs, maxEntries = MAX_ENTRIES }: NearOptions, clock: Clock) {
    this.#grants = new Lru(maxEntries);
    this.#ttlMs = ttlMs;
    this.#clock = clock;
    this.#driver = driver;
  }

  get(id: string): Grant | undefined {
    const entry = this.#grants.get(id);
    if (entry?.grant === undefined || this.#replacing.has(id)) return undefined;
    const isNear = this.#clock.now() - entry.at < this.#ttlMs && isFresh(entry.grant, this.#clock.epoch(), undefined);
    return isNear ? entry.grant : undefined;
  }

  /** @param at monotonic milliseconds, before the request to the engine */
  set(id: string, grant: Grant, at: number): void {
    const changedAt = Math.max(this.#grants.get(id)?.at ?? this.#clearedAt, this.#clearedAt);
    if (this.#replacing.has(id) || changedAt >= at) return;
    this.#watch();
    this.#grants.set(id, { grant, at });
  }

  drop(id: string): void {
    this.#grants.set(id, { grant: undefined, at: this.#clock.now() });
  }

  #clear(): void {
    this.#clearedAt = this.#clock.now();
    this.#grants.clear();
  }

  /** Runs work under a lease for a grant, whose reads must come from the engine. */
  async without<T>(id: string, work: () => Promise<T>): Promise<T> {
    this.#count(id, 1);
    this.drop(id);
    try {
      return await work();
    } finally {
      this.#count(id, -1);
    }
  }

  #count(id: string, by: 1 | -1): void {
    const count = (this.#replacing.get(id) ?? 0) + by;
    if (count === 0) this.#replacing.delete(id);
    else this.#replacing.set(id, count);
  }

  /** Hints make the cache current sooner; without them its time limit does. */
  #watch(): void {
    if (this.#isWatching || this.#driver.watch === undefined) return;
    this.#isWatching = true;
    const onChange = ({ kind, id }: RecordKey) => {
      if (kind === "grant") this.drop(id);
    };
    const clear = () => this.#clear();
    const end = () => {
      clear();
      this.#isWatching = false;
    };
    this.#driver.watch(onChange, clear, new AbortController().signal).then(end, end);
  }
}

const REMEMBERED_MS = 10 * 60_000;
const MAX_GRANTS = 1000;

interface NewestGrant {
  readonly grant: Grant;
  /** The text that it was read from; undefined for one that was saved and not read since. */
  readonly value: string | undefined;
  readonly at: number;
}

/**
 * The newest generations that this process has saved or read. An engine that fails over to a replica, and a backup that is
 * restored, may have lost them; then they are put back.
 */
export class NewestGrants {
  readonly #newest = new Lru<NewestGrant>(MAX_GRANTS);
  readonly #clock: Pick<Clock, "now">;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  remember(id: string, grant: Grant, value?: string): void {
    if (this.#newerThan(id, grant) === undefined) this.#newest.set(id, { grant, value, at: this.#clock.now() });
  }

  /** What was decoded from a text. Not by its version: an engine that lost writes may use one twice. */
  decodedFrom(id: string, value: string): Grant | undefined {
    const newest = this.#newest.get(id);
    return newest?.value === value ? newest.grant : undefined;
  }

  forget(id: string): void {
    this.#newest.delete(id);
  }

  /** A generation that is newer than the stored one of the same login, and not too old to be put back. */
  newerThan(id: string, stored: Grant): Grant | undefined {
    const newer = this.#newerThan(id, stored);
    return newer && this.#clock.now() - newer.at <= REMEMBERED_MS ? newer.grant : undefined;
  }

  /** The newest generation of tokens of a login whose refresh token is used up, as far as this process knows. */
  rotatedGeneration(id: string, grant: Grant): number | undefined {
    const newest = this.#newest.get(id)?.grant;
    if (newest === undefined || newest.signedInAt !== grant.signedInAt) return undefined;
    const isRotated = newest.tokens.refreshToken?.reveal() !== grant.tokens.refreshToken?.reveal();
    return isRotated ? tokenGeneration(newest) - 1 : undefined;
  }

  #newerThan(id: string, stored: Grant): NewestGrant | undefined {
    const newest = this.#newest.get(id);
    if (newest === undefined || newest.grant.generation <= stored.generation) return undefined;
    const { grant } = newest;
    const isSameLogin = grant.signedInAt === stored.signedInAt && grant.issuer === stored.issuer;
    // After a failover another process may have refreshed from the older generation.
    const isLater = grant.tokens.obtainedAt >= stored.tokens.obtainedAt;
    return isSameLogin && isLater ? newest : undefined;
  }
}
