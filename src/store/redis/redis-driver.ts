import { AgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import type {
  DriverCallOptions,
  DriverHealth,
  LeaseBusy,
  LeaseClaim,
  LeaseHeld,
  LeaseTrace,
  PutOptions,
  RecordKey,
  ScanFilter,
  ScanPage,
  StoreDriver,
  StoredRecord,
  Version,
} from "../driver/driver.js";
import { type Link, linkOf, type RedisConnection } from "./connection.js";
import { Engine, type Session } from "./engine.js";
import { healthOf, weakestSync } from "./health.js";
import { encodeKey, encodeName, Names } from "./names.js";
import { scanAll, scanPartition } from "./scan.js";
import * as scripts from "./scripts.js";
import { watchBy } from "./watch.js";

/** A wait for replicas of the engine. */
export interface ReplicaWait {
  /** How many replicas. */
  readonly replicas: number;
  /** Milliseconds to wait at most. Other commands of the same connection wait too. */
  readonly timeoutMs: number;
}

/** Options of {@link redisDriver}. */
export interface RedisDriverOptions {
  /** What all keys begin with: 1 to 64 letters, digits and `_.:-`. Default: `aa`. */
  readonly prefix?: string | undefined;
  /** Milliseconds that an operation waits for the engine. Default: 2,000. */
  readonly timeoutMs?: number | undefined;
  /**
   * After a grant is stored, wait until so many replicas have it, so that a failover does not lose it. Not reaching them is
   * no error, because the grant is stored; a server without replicas is not waited for. Default: 1 replica, 100 ms.
   */
  readonly wait?: false | ReplicaWait | undefined;
  /** Use an engine that may evict logins; `health` reports that as a risk then. Default: false. */
  readonly allowEviction?: boolean | undefined;
}

const DEFAULT_WAIT = { replicas: 1, timeoutMs: 100 };

/**
 * A driver that stores the records in Redis 6.2 or later, or in Valkey, by itself or as a cluster.
 *
 * The connection stays the application's: the driver neither connects nor closes it. Commands must reach the primary.
 * Every operation is one script, so that it happens completely or not at all, and reads the clock of the engine.
 *
 * @throws AgentAuthError `usage` for a client of an unknown shape, and for an option with a wrong value
 * @example
 * ```ts
 * const client = await createClient({ url: process.env.REDIS_URL }).connect();
 * const driver = redisDriver({ client });
 * ```
 */
export function redisDriver(connection: RedisConnection, options: RedisDriverOptions = {}): StoreDriver {
  const { prefix = "aa", timeoutMs = 2000, wait = DEFAULT_WAIT, allowEviction = false } = options;
  if (!/^[\w.:-]{1,64}$/.test(prefix)) throw usage("prefix", prefix, "1 to 64 letters, digits and _.:-");
  positive("timeoutMs", timeoutMs);
  if (wait) for (const name of ["replicas", "timeoutMs"] as const) positive(`wait.${name}`, wait[name]);
  return new RedisDriver(linkOf(connection), new Names(prefix), { timeoutMs, wait, allowEviction });
}

/** The options with their defaults. */
interface Settings {
  readonly timeoutMs: number;
  readonly wait: NonNullable<RedisDriverOptions["wait"]>;
  readonly allowEviction: boolean;
}

class RedisDriver implements StoreDriver {
  readonly system = "redis";
  readonly location: string;
  readonly watch?: NonNullable<StoreDriver["watch"]>;
  readonly #engine: Engine;
  readonly #channel: string;
  readonly #names: Names;
  readonly #wait: Settings["wait"];
  readonly #allowEviction: boolean;

  constructor(link: Link, names: Names, { timeoutMs, wait, allowEviction }: Settings) {
    this.location = link.location;
    this.#engine = new Engine(link, timeoutMs);
    this.#names = names;
    this.#wait = wait;
    this.#allowEviction = allowEviction;
    this.#channel = link.isCluster ? "" : names.channel;
    const { subscribe } = link;
    if (subscribe) this.watch = watchBy(subscribe, names.channel, link.location);
  }

  get(key: RecordKey, options?: DriverCallOptions): Promise<StoredRecord | undefined> {
    return this.#engine.call(options, async ({ run }) => {
      const [version, value] = (await run(scripts.GET, [this.#names.record(key)])) as unknown[];
      if (version === null || version === undefined) return undefined;
      return { key, version: String(version) as Version, value: String(value) };
    });
  }

  touch(key: RecordKey, options?: DriverCallOptions): Promise<StoredRecord | undefined> {
    const { kind, partition, id } = key;
    const names = this.#names;
    const keys = [names.record(key), names.index(kind, partition), names.state(partition)];
    return this.#engine.call(options, async ({ run }) => {
      const [version, value] = texts(await run(scripts.TOUCH, keys, [encodeName(id)]));
      return version === undefined ? undefined : { key, version: version as Version, value: String(value) };
    });
  }

  put(key: RecordKey, value: string, expected: Version | undefined, options: PutOptions = {}) {
    return this.#engine.call(options, async (session) => {
      // No version is empty.
      if (expected === "") return undefined;
      let reply = await this.#put(session, key, value, expected, options, false);
      if (reply[0] === "register") {
        await session.run(scripts.REGISTER, [this.#names.partitions(key.kind)], [encodeName(key.partition)]);
        reply = await this.#put(session, key, value, expected, options, true);
      }
      const [outcome, version, replicas] = reply;
      if (outcome !== "stored") return undefined;
      if (this.#wait && key.kind === "grant" && replicas !== "0") {
        // The record is stored whatever the answer is: replicas only make it safer.
        await session.tryKeyless(["WAIT", this.#wait.replicas, this.#wait.timeoutMs], this.#names.record(key));
      }
      return version as Version;
    });
  }

  delete(key: RecordKey, expected?: Version, options?: DriverCallOptions): Promise<boolean> {
    const keys = [this.#names.record(key), this.#names.index(key.kind, key.partition)];
    return this.#engine.call(options, async ({ run }) => {
      if (expected === "") return false;
      return isOne(
        await run(scripts.DELETE, keys, [encodeName(key.id), expected ?? "", this.#channel, encodeKey(key)]),
      );
    });
  }

  scan(
    filter: ScanFilter,
    page: { readonly limit: number; readonly cursor?: string | undefined },
    options?: DriverCallOptions,
  ): Promise<ScanPage> {
    return this.#engine.call(options, ({ run }) => {
      const { partition } = filter;
      if (partition === undefined) return scanAll(run, this.#names, filter.kind, page);
      return scanPartition(run, this.#names, { ...filter, partition }, page);
    });
  }

  claim(key: RecordKey, claim: LeaseClaim, options?: DriverCallOptions): Promise<LeaseHeld | LeaseBusy> {
    const { lease, state, leases } = this.#leaseKeys(key);
    return this.#engine.callForLease(options, async ({ run }) => {
      const args = [claim.owner, Math.ceil(claim.ttlMs), claim.note];
      const [held, attempt, now, leftMs, ...trace] = texts(await run(scripts.CLAIM, [lease, state, leases], args));
      const newest = trace.length > 0 ? traceOf(trace, Number(now)) : undefined;
      if (held === "1" || newest === undefined) return { held: true, attempt: Number(attempt), before: newest };
      return { held: false, by: newest, leftMs: Number(leftMs) };
    });
  }

  extend(key: RecordKey, claim: LeaseClaim, options?: DriverCallOptions): Promise<boolean> {
    const args = [claim.owner, Math.ceil(claim.ttlMs), claim.note];
    const { lease } = this.#leaseKeys(key);
    return this.#engine.callForLease(options, async ({ run }) => isOne(await run(scripts.EXTEND, [lease], args)));
  }

  async release(
    key: RecordKey,
    { owner, note }: { readonly owner: string; readonly note: string | undefined },
    options?: DriverCallOptions,
  ): Promise<void> {
    const { lease, leases } = this.#leaseKeys(key);
    const args = [owner, note === undefined ? "" : "1", note ?? "", this.#channel, encodeKey(key)];
    await this.#engine.call(options, ({ run }) => run(scripts.RELEASE, [lease, leases], args));
  }

  health(options?: DriverCallOptions): Promise<DriverHealth> {
    return this.#engine.call(options, async ({ run, tryKeyless }) => {
      const key = this.#names.probe;
      const askedAt = Date.now();
      const [now, info, ...refused] = (await run(scripts.HEALTH, [key])) as unknown[];
      const clockAheadMs = Math.floor((askedAt + Date.now()) / 2) - Number(now);
      // A script must not run CONFIG.
      const appendfsync = weakestSync((await tryKeyless(["CONFIG", "GET", "appendfsync"], key)) ?? []);
      const known = { info: info ? String(info) : undefined, appendfsync, refused: refused.map(String) };
      return healthOf(known, clockAheadMs, this.#allowEviction);
    });
  }

  async #put(
    { run }: Session,
    key: RecordKey,
    value: string,
    expected: Version | undefined,
    { tags, expiresInMs }: PutOptions,
    isRegistered: boolean,
  ): Promise<string[]> {
    const { kind, partition, id } = key;
    const names = this.#names;
    const keys = [
      names.record(key),
      names.state(partition),
      names.records(kind, partition),
      names.index(kind, partition),
    ];
    const expiry = expiresInMs === undefined || !Number.isFinite(expiresInMs) ? "" : Math.ceil(expiresInMs);
    const args = [encodeName(id), expected ?? "", value, expiry, kind, isRegistered ? "1" : ""];
    args.push(this.#channel, encodeKey(key));
    return texts(await run(scripts.PUT, [...keys, ...names.tags(kind, partition, tags)], args));
  }

  #leaseKeys(key: RecordKey): { lease: string; state: string; leases: string } {
    const { partition } = key;
    return {
      lease: this.#names.lease(key),
      state: this.#names.state(partition),
      leases: this.#names.leases(partition),
    };
  }
}

function traceOf([attempt, owner = "", at, releasedAt, note = ""]: readonly string[], now: number): LeaseTrace {
  const released = releasedAt ? Number(releasedAt) : undefined;
  return { attempt: Number(attempt), owner, at: Number(at), now, releasedAt: released, note };
}

/** A client may be set to return numbers as texts, and texts as buffers. */
function texts(reply: unknown): string[] {
  return (reply as unknown[]).map(String);
}

function isOne(reply: unknown): boolean {
  return Number(reply) === 1;
}

function positive(name: string, value: number): void {
  if (!(Number.isInteger(value) && value > 0)) throw usage(name, value, "a whole number above 0");
}

function usage(name: string, value: unknown, rule: string): AgentAuthError {
  return new AgentAuthError("usage", `${name} of redisDriver must be ${rule}, not ${quote(value)}`, { class: "usage" });
}
