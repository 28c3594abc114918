import { type AgentAuthError, usageError } from "../../errors.js";
import { checkOptionNames, type OptionNames } from "../../http/public-class.js";
import { OneAtATime } from "../../http/single-flight.js";
import { quote } from "../../redact.js";
import type { LeaseClaim, RecordKey, ScanPage, StoreDriver, StoredRecord, Version } from "../driver/driver.js";
import { lateIn, type Row, readClaimResponse, unansweredError, unavailableError, watchBy } from "../driver/engine.js";
import { chooseAdapter, type Parameter, type PostgresAccess } from "./client.js";
import { checkedListen, engineError, engineHealth, notifiedKey, type RunStatement, statementCalls } from "./engine.js";
import { fromHex, statementsFor, tableNames, toHex } from "./store-sql.js";

/** Options of {@link postgresDriver}. */
export interface PostgresDriverOptions {
  /** The table that {@link storeSql} created, optionally with its schema. Default: `agentauth_record`. */
  readonly table?: string | undefined;
  /** Milliseconds after which an operation fails with `store_unavailable`. Default: 3,000. */
  readonly timeoutMs?: number | undefined;
  /**
   * Whether changes are announced with NOTIFY, so that the `near` cache of every process forgets them at once, not only
   * after its time. All processes that write need it. A process with such a cache listens, on one more connection: with a
   * `Pool` of `pg` or `sql` of `postgres`. Through PgBouncer in transaction mode nothing arrives: `health` then reports a
   * risk, and such a cache returns what it has until its time. Transactions that notify commit one after the other.
   * Default: false.
   */
  readonly notify?: boolean | undefined;
}

const OPTIONS: OptionNames<PostgresDriverOptions> = { table: true, timeoutMs: true, notify: true };
const DEFAULT_TIMEOUT_MS = 3000;
const MAX_TIMEOUT_MS = 0x7fffffff;
/** The part of a time limit that a statement waits for a lock: the server answers before this process gives up. */
const LOCK_PART = 2 / 3;
const MAX_CLAIMS = 20;
const QUEUED =
  "heartbeats have waited for a connection of the pool: give the store a pool of its own, of at least 4 connections";
/** More than there are. */
const ALL = 0x7fffffff;
/** What has expired is removed at most this often by one driver. */
const SWEEP_EVERY_MS = 60_000;

/**
 * A store in PostgreSQL 13 or later, in the tables that {@link storeSql} creates. Nothing is kept in a session: a pooler in
 * transaction mode may be in between. The application creates, configures and closes the client; a `Pool` of `pg` needs a
 * listener for `error`, or the loss of an idle connection ends the process.
 *
 * A client has no common way to withdraw a statement: one that had no answer in time may still be carried out.
 *
 * @param access `client`: a `Pool` or a `Client` of `pg`, `sql` of `postgres`, or a PGlite. Or `query`: a function that runs a
 *   statement with the texts for `$1`, `$2`, … and resolves to `{ rows }`, objects with one property a column
 * @throws AgentAuthError `usage` for a client of another shape, or an option that is out of its range
 */
export function postgresDriver(access: PostgresAccess, options: PostgresDriverOptions = {}): StoreDriver {
  checkOptionNames(options, OPTIONS, "postgresDriver");
  const timeoutMs = checkedTimeout(options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
  const names = tableNames(options.table);
  const { query, address, listen, isQueuing } = chooseAdapter(access ?? {}, timeoutMs);
  const location = `PostgreSQL table ${names.plain}${address}`;
  const notify = options.notify === true;
  const sql = statementsFor(names, { notify, lockTimeoutMs: Math.ceil(timeoutMs * LOCK_PART) });
  const call = statementCalls(query, location, timeoutMs);
  const sweep = createSweeper(sql.sweep);
  const send = (message: string) => call(undefined, (run) => run(sql.notify, [message]));
  const puts = new OneAtATime();
  // A save that has no answer yet is not sent again, so that it cannot take one connection after the other.
  const inTurn = <T>(name: string, work: () => Promise<T>) =>
    puts.run(name, () => Promise.race([work(), lateIn(2 * timeoutMs, () => unansweredError(location, 2 * timeoutMs))]));
  let hasQueued = false;
  const listening = notify && listen ? checkedListen(listen, send, timeoutMs) : undefined;
  const problems = () => [listening?.problem(), hasQueued ? QUEUED : undefined];
  const failure = (thrown: unknown) => engineError(thrown, location);
  const readBy =
    (statement: string): StoreDriver["get"] =>
    (key, options) =>
      call(options, async (run) => {
        const [row] = await run(statement, recordName(key));
        return row && toRecord(key, row);
      });
  return {
    system: "postgresql",
    location,
    get: readBy(sql.get),
    touch: readBy(sql.touch),
    put: (key, value, expected, options = {}) =>
      call(options, async (run) => {
        const { expiresInMs, tags = {}, dueAt } = options;
        const expiry = expiresInMs?.toString() ?? null;
        const due = dueAt === null ? "none" : (dueAt?.toString() ?? null);
        const values = [...recordName(key), value, JSON.stringify(tags), expiry, due];
        const [row] = await inTurn(recordName(key).join(" "), () =>
          expected === undefined ? run(sql.insert, values) : run(sql.update, [...values, toVersionText(expected)]),
        );
        if (row && expiresInMs !== undefined) await sweep(run);
        return row && (readText(row[0]) as Version);
      }),
    delete: (key, expected, options) =>
      call(options, async (run) => {
        const version = expected === undefined ? null : toVersionText(expected);
        return (await run(sql.remove, [...recordName(key), version])).length > 0;
      }),
    scan: ({ kind, partition, tags, dueUntil }, { limit, cursor, countTo = ALL }, options) =>
      call(options, async (run) => {
        if (dueUntil !== undefined) {
          const page = [dueUntil, limit, countTo].map(String);
          const rows = await run(sql.due, [kind, toHex(partition ?? ""), ...page]);
          const items = rows.map((row) => scannedRecord(kind, row));
          return { items, cursor: undefined, total: Number(rows[0]?.[5] ?? 0) };
        }
        const filter = [kind, partition === undefined ? null : toHex(partition), tags ? JSON.stringify(tags) : null];
        const rows = await run(sql.scan, [...filter, ...parseCursor(cursor), String(limit)]);
        return toPage(kind, rows, limit);
      }),
    claim: (key, claim, options) =>
      call(options, async (run) => {
        // No row: another claim came in between, which happens hardly often.
        for (let tries = 0; tries < MAX_CLAIMS; tries++) {
          const [row] = await run(sql.claim, claimParameters(key, claim));
          if (row) return readClaimResponse(row);
        }
        throw unavailableError(`${location}: the lease changed during each of ${MAX_CLAIMS} attempts to claim it`);
      }),
    extend: (key, claim, options) =>
      call(options, async (run) => {
        hasQueued ||= isQueuing?.() === true;
        return (await run(sql.extend, claimParameters(key, claim))).length > 0;
      }),
    release: (key, { owner, note }, options) =>
      call(options, async (run) => {
        await run(sql.release, [...recordName(key), owner, note ?? null]);
        await sweep(run);
      }),
    ...(listening && { watch: watchBy(listening.subscribe, names.channel, { keyOf: notifiedKey, failure }) }),
    health: (options) => call(options, (run) => engineHealth(run, names, problems())),
  };
}

/** Removes what has expired, when it is due. It comes after an operation that nothing urgent waits for, and its failure is not that of the operation. */
function createSweeper(statement: string): (run: RunStatement) => Promise<void> {
  let due = 0;
  return async (run) => {
    const now = performance.now();
    if (now < due) return;
    due = now + SWEEP_EVERY_MS;
    await run(statement, []).catch(() => {});
  };
}

function recordName({ kind, partition, id }: RecordKey): string[] {
  return [kind, toHex(partition), toHex(id)];
}

function claimParameters(key: RecordKey, { owner, ttlMs, note }: LeaseClaim): string[] {
  return [...recordName(key), owner, String(ttlMs), note];
}

function toRecord(key: RecordKey, [version, value]: Row): StoredRecord {
  return { key, version: readText(version) as Version, value: readText(value) };
}

function scannedRecord(kind: RecordKey["kind"], [partition, id, version, value, due]: Row): StoredRecord {
  const key = { kind, partition: fromHex(readText(partition)), id: fromHex(readText(id)) };
  return { ...toRecord(key, [version ?? null, value ?? null]), ...(due != null && { dueAt: Number(due) }) };
}

function toPage(kind: RecordKey["kind"], rows: readonly Row[], limit: number): ScanPage {
  const items = rows.map((row) => scannedRecord(kind, row));
  const [partition, id] = rows.at(-1) ?? [];
  return { items, cursor: rows.length < limit ? undefined : `${partition}.${id}` };
}

function parseCursor(cursor: string | undefined): Parameter[] {
  if (cursor === undefined) return [null, null];
  const place = /^((?:[\da-f]{2})+)\.((?:[\da-f]{2})+)$/.exec(cursor);
  if (!place) throw optionError("cursor", cursor, "pass the cursor that the part before returned");
  return [place[1] ?? null, place[2] ?? null];
}

/** A version that is no number is not one of this store, and no record has it: 0 is never drawn from the sequence. */
function toVersionText(version: Version): string {
  return /^\d{1,18}$/.test(version) ? version : "0";
}

function readText(column: Parameter | undefined): string {
  return String(column ?? "");
}

function checkedTimeout(timeoutMs: number): number {
  if (Number.isFinite(timeoutMs) && timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS) return timeoutMs;
  throw optionError("timeoutMs", timeoutMs, "set it to a positive number of milliseconds");
}

function optionError(name: string, value: unknown, hint: string): AgentAuthError {
  return usageError(`${name} is ${quote(value)}, which cannot be used`, hint);
}
