import { type AgentAuthError, usageError } from "../../errors.js";
import { checkOptionNames, type OptionNames } from "../../http/public-class.js";
import { quote } from "../../redact.js";
import type {
  DriverCallOptions,
  LeaseClaim,
  RecordKey,
  RecordKind,
  ScanFilter,
  ScanPage,
  StoreDriver,
  StoredRecord,
  Version,
} from "../driver/driver.js";
import { type Row, readClaimResponse, watchBy } from "../driver/engine.js";
import { chooseLink, type RedisConnection } from "./connection.js";
import { describeHealth, leaseScriptCalls, redisError, type Session, scriptCalls, weakestSync } from "./engine.js";
import * as scripts from "./scripts.js";
import { DUE, decodeKey, encodeKey, type Names, namesWith, PARTITIONS, SCAN } from "./scripts.js";

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

const OPTIONS: OptionNames<RedisDriverOptions> = { prefix: true, timeoutMs: true, wait: true, allowEviction: true };
const WAIT: OptionNames<ReplicaWait> = { replicas: true, timeoutMs: true };
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
  checkOptionNames(options, OPTIONS, "redisDriver");
  if (options.wait) checkOptionNames(options.wait, WAIT, "wait");
  const { prefix = "aa", timeoutMs = 2000, wait = DEFAULT_WAIT, allowEviction = false } = options;
  if (!/^[\w.:-]{1,64}$/.test(prefix)) throw optionError("prefix", prefix, "1 to 64 letters, digits and _.:-");
  positive("timeoutMs", timeoutMs);
  if (wait) for (const name of ["replicas", "timeoutMs"] as const) positive(`wait.${name}`, wait[name]);
  const link = chooseLink(connection ?? {});
  const { location, isCluster, subscribe } = link;
  const names = namesWith(prefix);
  const [call, leaseCall] = [scriptCalls(link, timeoutMs), leaseScriptCalls(link, timeoutMs)];
  const channel = isCluster ? "" : names.channel;
  const failure = (thrown: unknown) => redisError(thrown, location);
  const runOne = (options: DriverCallOptions | undefined, ...script: Parameters<Run>) =>
    call(options, ({ run }) => run(...script));
  return {
    system: "redis",
    location,
    get: async (key, options) => toRecord(key, await runOne(options, scripts.GET, [names.record(key)])),
    touch: async (key, options) => {
      const keys = [names.record(key), names.index(key.kind, key.partition), names.state(key.partition)];
      return toRecord(key, await runOne(options, scripts.TOUCH, keys, [encodeURIComponent(key.id)]));
    },
    put: (key, value, expected, options = {}) =>
      call(options, async ({ run, tryKeyless }) => {
        const { kind, partition, id } = key;
        const { tags, expiresInMs = Number.POSITIVE_INFINITY, dueAt } = options;
        const keys = [names.record(key), names.state(partition), names.records(kind, partition)];
        keys.push(names.due(kind, partition), names.index(kind, partition), ...names.tags(kind, partition, tags));
        const expiry = Number.isFinite(expiresInMs) ? Math.ceil(expiresInMs) : "";
        const due = dueAt === null ? "none" : (dueAt ?? "");
        const isAwaited = wait && kind === "grant";
        // Each time: a failover may have lost it.
        await run(scripts.REGISTER, [names.partitions(kind)], [encodeURIComponent(partition)]);
        const record = [encodeURIComponent(id), expected ?? "", value, expiry];
        const args = [...record, channel, encodeKey(key), due, isAwaited ? "1" : ""];
        const [version, replicas] = await run(scripts.PUT, keys, args);
        if (version == null) return undefined;
        // The record is stored whatever the answer is: replicas only make it safer.
        if (isAwaited && replicas !== "0") await tryKeyless(["WAIT", wait.replicas, wait.timeoutMs], names.record(key));
        return version as Version;
      }),
    delete: async (key, expected, options) => {
      const { kind, partition } = key;
      const keys = [names.record(key), names.index(kind, partition), names.due(kind, partition)];
      const args = [encodeURIComponent(key.id), expected ?? "", channel, encodeKey(key)];
      return isOne(await runOne(options, scripts.DELETE, keys, args));
    },
    scan: (filter, page, options) =>
      call(options, ({ run }) => {
        const { kind, partition } = filter;
        if (partition === undefined) return scanAll(run, names, kind, page);
        return scanPartition(run, names, { ...filter, partition }, page);
      }),
    claim: (key, claim, options) =>
      leaseCall(options, async ({ run }) => {
        const keys = [names.lease(key), names.state(key.partition), names.leases(key.partition)];
        return readClaimResponse(await run(scripts.CLAIM, keys, claimArgs(claim)));
      }),
    extend: (key, claim, options) =>
      leaseCall(options, async ({ run }) => isOne(await run(scripts.EXTEND, [names.lease(key)], claimArgs(claim)))),
    release: async (key, { owner, note }, options) => {
      const keys = [names.lease(key), names.leases(key.partition)];
      const args = [owner, note === undefined ? "" : "1", note ?? ""];
      await runOne(options, scripts.RELEASE, keys, args);
    },
    ...(subscribe && { watch: watchBy(subscribe, names.channel, { keyOf: decodeKey, failure }) }),
    health: (options) =>
      call(options, async ({ run, tryKeyless }) => {
        const requestedAt = Date.now();
        const [now, info, ...refused] = await run(scripts.HEALTH, [names.probe]);
        const clockAheadMs = Math.floor((requestedAt + Date.now()) / 2) - Number(now);
        // A script must not run CONFIG.
        const appendfsync = weakestSync((await tryKeyless(["CONFIG", "GET", "appendfsync"], names.probe)) ?? []);
        const known = { info: info ?? undefined, appendfsync, refused: refused.map(String) };
        return describeHealth(known, clockAheadMs, allowEviction);
      }),
  };
}

function toRecord(key: RecordKey, [version, value]: Row): StoredRecord | undefined {
  return version == null ? undefined : { key, version: version as Version, value: value ?? "" };
}

function claimArgs({ owner, ttlMs, note }: LeaseClaim): (string | number)[] {
  return [owner, Math.ceil(ttlMs), note];
}

function isOne([reply]: Row): boolean {
  return reply === "1";
}

function positive(name: string, value: number): void {
  if (!(Number.isInteger(value) && value > 0)) throw optionError(name, value, "a whole number above 0");
}

function optionError(name: string, value: unknown, rule: string): AgentAuthError {
  return usageError(`${name} of redisDriver must be ${rule}, not ${quote(value)}`);
}

type Part = Parameters<StoreDriver["scan"]>[1];
type Run = Session["run"];

/** A scan of all partitions asks for this many at a time. */
const PARTITIONS_AT_ONCE = 16;

/**
 * A part of the records of one partition. The index is sorted by id, and the cursor is the last id: a record has one place
 * there, whatever others write.
 */
async function scanPartition(
  run: Run,
  names: Names,
  { kind, partition, tags, dueUntil }: ScanFilter & { readonly partition: string },
  { limit, cursor }: Part,
): Promise<ScanPage> {
  const keys = [names.records(kind, partition), names.index(kind, partition), ...names.tags(kind, partition, tags)];
  if (dueUntil === undefined) {
    const [last = "", ...parts] = (await run(SCAN, keys, [after(cursor), limit])).map(String);
    return { items: toRecords(parts, 3, { kind, partition }), cursor: last === "" ? undefined : last };
  }
  const dueKeys = [names.records(kind, partition), names.due(kind, partition)];
  const [total, ...parts] = (await run(DUE, dueKeys, [dueUntil, limit])).map(String);
  return { items: toRecords(parts, 4, { kind, partition }), cursor: undefined, total: Number(total) };
}

/** The records that a script returned, each as so many texts. */
function toRecords(parts: readonly string[], each: number, place: Omit<RecordKey, "id">): StoredRecord[] {
  const items: StoredRecord[] = [];
  for (let at = 0; at < parts.length; at += each) {
    const [id = "", version, value = "", due] = parts.slice(at, at + each);
    const record = { key: { ...place, id: decodeURIComponent(id) }, version: version as Version, value };
    items.push(due === undefined ? record : { ...record, dueAt: Number(due) });
  }
  return items;
}

/**
 * A part of the records of all partitions. The cursor is the partition, and the last id in it unless the partition is
 * complete.
 */
async function scanAll(run: Run, names: Names, kind: RecordKind, page: Part): Promise<ScanPage> {
  const { limit, cursor } = page;
  const scanOne = (encoded: string, part: Part) =>
    scanPartition(run, names, { kind, partition: decodeURIComponent(encoded) }, part);
  const [name = "", id] = cursor?.split(" ") ?? [];
  if (id !== undefined) {
    const page = await scanOne(name, { limit, cursor: id });
    return { items: page.items, cursor: page.cursor === undefined ? name : `${name} ${page.cursor}` };
  }
  const wanted = Math.min(limit, PARTITIONS_AT_ONCE);
  const partitions = (await run(PARTITIONS, [names.partitions(kind)], [after(cursor), wanted])).map(String);
  const share = Math.floor(limit / Math.max(1, partitions.length));
  const pages = await Promise.all(partitions.map((each) => scanOne(each, { limit: share })));
  // What follows a partition that is not complete would be returned again.
  const isPartial = pages.findIndex((page) => page.cursor !== undefined);
  const items = pages.slice(0, isPartial === -1 ? undefined : isPartial + 1).flatMap((page) => page.items);
  if (isPartial !== -1) return { items, cursor: `${partitions[isPartial]} ${pages[isPartial]?.cursor}` };
  return { items, cursor: partitions.length < wanted ? undefined : partitions.at(-1) };
}

/** The begin of a range of ids; the cursor comes from outside, so it must not change what kind of a range it is. */
function after(cursor: string | undefined): string {
  return cursor === undefined ? "-" : `(${cursor}`;
}
