import { createHash } from "node:crypto";
import { renameSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AgentAuthError, type AgentAuthErrorJson, abortedError, orUndefined } from "../../errors.js";
import { OneAtATime } from "../../http/single-flight.js";
import { isJsonObject } from "../../http/strict-json.js";
import type { Lease, LeaseOptions, PreviousAttempt, RecordedFailure } from "../../oauth/model/lease.js";
import { leaseLost, recordFailure } from "../../oauth/model/lease.js";
import { errorCode, retryWhileBusy, wakingUp } from "../../platform.js";
import {
  checkPrivateFolder,
  discardFile,
  listFolder,
  makePrivateFolder,
  nameOnce,
  readPublishedFile,
  temporaryPath,
} from "../private/private-file.js";
import { storeError } from "../store-error.js";
import {
  bootClock,
  checkLiveness,
  type LeaseOutcome,
  type Liveness,
  type LockRecord,
  lockId,
  parseLeaseOutcome,
  parseLockRecord,
  thisProcess,
  wasReused,
} from "./lock-owner.js";

/** One attempt to do the work of a lease: its lock file and its marks carry the name, the number and the id. */
export interface Attempt {
  readonly name: string;
  readonly number: number;
  readonly id: string;
}

/** The newest attempt under a name. */
export interface Latest {
  readonly number: number;
  /** The content of its lock file; undefined when it was swept in between, or another version wrote it. */
  readonly record: LockRecord | undefined;
  readonly committed: boolean;
  readonly done: boolean;
}

interface LeaseFile {
  readonly file: string;
  readonly number: number;
  /** The attempt that a mark belongs to, and its kind; undefined for the lock file itself. */
  readonly mark: { readonly id: string; readonly kind: "sent" | "done" } | undefined;
}

const OLD_MS = 24 * 3600 * 1000;
const SWEEP_THRESHOLD = 200;

/**
 * The lock files of leases in a folder: one for each attempt, `<name>.<number>.claim`, with marks beside it,
 * `<name>.<number>.<id>.sent` and `.done`. Only one process gets a number, because a name is given once. No holder
 * ever loses its lock file; the next attempt has the next number. Numbers start at 1 again when all files of a name are
 * removed, so the id identifies the attempt that a file belongs to.
 */
export class LockFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * The newest attempt; undefined when there is no trace of one.
   *
   * @param below only attempts with smaller numbers than this
   */
  latest(name: string, below = Number.POSITIVE_INFINITY): Latest | undefined {
    const traces = this.#traces(name).filter((trace) => trace.number < below);
    const numbers = traces.flatMap(({ number, mark }) => (mark ? [] : [number]));
    if (numbers.length === 0) return undefined;
    const number = Math.max(...numbers);
    const record = parseLockRecord(this.#json(`${name}.${number}.claim`));
    const has = (kind: string) =>
      traces.some(({ number: of, mark }) => {
        return of === number && mark?.kind === kind && (record === undefined || mark.id === record.id);
      });
    return { number, record, committed: has("sent"), done: has("done") };
  }

  /**
   * Starts an attempt: publishes its lock file, checks then that nothing has changed, and removes it if something has.
   *
   * @param observed the previous attempt, from which the caller takes over; undefined when there was none
   * @returns false when another process has its number, or the newest attempt is no longer the observed one
   */
  take(attempt: Attempt, record: LockRecord, observed: Latest | undefined): boolean {
    const { name, number } = attempt;
    makePrivateFolder(this.#folder);
    checkPrivateFolder(this.#folder);
    const path = this.#path(`${name}.${number}.claim`);
    if (!this.#publish(name, path, record)) return false;
    try {
      if (this.#follows(attempt, observed)) {
        this.#sweep(name, number);
        return true;
      }
    } catch (error) {
      discardFile(path);
      throw error;
    }
    discardFile(path);
    return false;
  }

  /** Gives a lock file its name; false when that is taken. */
  #publish(name: string, path: string, record: LockRecord): boolean {
    const temporary = temporaryPath(this.#path(name));
    try {
      writeFileSync(temporary, JSON.stringify(record), { mode: 0o600, flag: "wx" });
      nameOnce(temporary, path);
      return true;
    } catch (cause) {
      if (errorCode(cause) === "EEXIST") return false;
      throw storeError(`the file ${path} cannot be created`, cause);
    } finally {
      discardFile(temporary);
    }
  }

  /**
   * Whether an attempt that was published is the newest, and follows the observed one. A process that read the folder
   * long ago may have got a number that has ended, or one that is in use again; and a holder may have written its mark
   * and died between the reading of the folder and the question whether it is alive.
   */
  #follows(attempt: Attempt, observed: Latest | undefined): boolean {
    return isSame(this.latest(attempt.name, attempt.number), observed) && this.isNewest(attempt);
  }

  isNewest({ name, number, id }: Attempt): boolean {
    const latest = this.latest(name);
    return latest?.number === number && latest.record?.id === id;
  }

  ending({ name, number, id }: Attempt): LeaseOutcome | undefined {
    return parseLeaseOutcome(this.#json(`${name}.${number}.${id}.done`));
  }

  /** Marks an attempt as having begun what must not happen twice. */
  commit(attempt: Attempt): void {
    this.#mark(attempt, "sent", "");
  }

  /** Records the end of an attempt. */
  finish(attempt: Attempt, ending: { at: number; failure: AgentAuthErrorJson | undefined }): void {
    this.#mark(attempt, "done", JSON.stringify(ending));
  }

  /** Removes an attempt, so that the one before it is the newest again; false when that failed. */
  rollback(attempt: Attempt): boolean {
    return this.#forget(attempt, ({ number }) => number === attempt.number);
  }

  /** Removes all files of a name up to this attempt; false when that failed. */
  forget(attempt: Attempt): boolean {
    return this.#forget(attempt, ({ number }) => number <= attempt.number);
  }

  /** The heartbeat of the holder of an attempt; false when another process has taken over. */
  heartbeat(attempt: Attempt): boolean {
    if (!this.isNewest(attempt)) return false;
    const now = new Date();
    utimesSync(this.#path(`${attempt.name}.${attempt.number}.claim`), now, now);
    return true;
  }

  /** The last heartbeat of the holder, by the clock of the file system; undefined when the lock file is gone. */
  lastHeartbeat(name: string, number: number): number | undefined {
    return this.#touched(`${name}.${number}.claim`);
  }

  /** Where the lock file belongs to another attempt by now, so do the chosen files: only marks with our id are removed. */
  #forget(attempt: Attempt, chosen: (trace: LeaseFile) => boolean): boolean {
    const { name, number, id } = attempt;
    const owner = parseLockRecord(this.#json(`${name}.${number}.claim`))?.id;
    if (owner === undefined && this.lastHeartbeat(name, number) !== undefined) return false;
    const traces = this.#traces(name).filter((trace) => trace.mark?.id === id || (owner === id && chosen(trace)));
    // The lock files last: without its marks a lock file is at worst waited for; a mark without its lock file is useless.
    const lockFiles = traces.filter(({ mark }) => !mark).sort((a, b) => a.number - b.number);
    const inOrder = [...traces.filter(({ mark }) => mark), ...lockFiles];
    return inOrder.map(({ file }) => discardFile(this.#path(file))).every(Boolean);
  }

  #mark({ name, number, id }: Attempt, kind: "sent" | "done", text: string): void {
    const path = this.#path(`${name}.${number}.${id}.${kind}`);
    const temporary = temporaryPath(this.#path(name));
    try {
      writeFileSync(temporary, text, { mode: 0o600, flag: "wx" });
      retryWhileBusy(() => renameSync(temporary, path));
    } catch (cause) {
      discardFile(temporary);
      throw storeError(`the file ${path} cannot be written`, cause);
    }
  }

  #json(file: string): Record<string, unknown> | undefined {
    const value = orUndefined((): unknown => JSON.parse(readPublishedFile(this.#path(file)) ?? ""));
    return isJsonObject(value) ? value : undefined;
  }

  #path(file: string): string {
    return join(this.#folder, file);
  }

  #traces(name: string): LeaseFile[] {
    return listFolder(this.#folder).flatMap((file) => {
      if (!file.startsWith(`${name}.`)) return [];
      const parts = /^(\d{1,12})\.(?:claim|([0-9a-f]{12})\.(sent|done))$/.exec(file.slice(name.length + 1));
      if (!parts) return [];
      const [, number, id, kind] = parts;
      return [{ file, number: Number(number), mark: id ? { id, kind: kind as "sent" | "done" } : undefined }];
    });
  }

  /** Removes the attempts that no process reads any more, those before the previous one, and old files of other names. */
  #sweep(name: string, number: number): void {
    for (const { file, number: other } of this.#traces(name)) {
      if (other < number - 1) discardFile(this.#path(file));
    }
    const all = listFolder(this.#folder);
    if (all.length < SWEEP_THRESHOLD) return;
    const before = Date.now() - OLD_MS;
    for (const file of all.filter((one) => !one.startsWith(`${name}.`))) {
      if ((this.#touched(file) ?? before) < before) discardFile(this.#path(file));
    }
  }

  /** When a file was last written or touched; undefined where that is unknown. */
  #touched(file: string): number | undefined {
    return orUndefined(() => statSync(this.#path(file)).mtimeMs);
  }
}

function isSame(one: Latest | undefined, other: Latest | undefined): boolean {
  const isSameAttempt = one?.number === other?.number && one?.record?.id === other?.record?.id;
  return isSameAttempt && one?.committed === other?.committed && one?.done === other?.done;
}

const POLL_MS = { first: 10, most: 100 };

/** Leases between all processes that share a folder, by lock files in it. */
export class FileLeases {
  readonly #files: LockFiles;
  readonly #here = new OneAtATime();

  constructor(folder: string) {
    this.#files = new LockFiles(folder);
  }

  /** As `GrantStore.lease`. The callers in one process queue up before they read the files. */
  run<T>(name: string, work: (lease: Lease) => Promise<T>, options: LeaseOptions<T>): Promise<T> {
    const key = createHash("sha256").update(name).digest("hex").slice(0, 40);
    const requestedAt = Date.now();
    return this.#here.run(key, (waited) => this.#hold({ key, waited, requestedAt }, work, options), options.signal);
  }

  async #hold<T>(
    { key, waited, requestedAt }: { key: string; waited: boolean; requestedAt: number },
    work: (lease: Lease) => Promise<T>,
    options: LeaseOptions<T>,
  ): Promise<T> {
    const acquired = await this.#acquire(key, options);
    if ("instead" in acquired) return acquired.instead;
    // Waiting for an attempt that was rolled back is not waiting for the one before it.
    const isOlder = (acquired.previous?.endedAt ?? requestedAt) < requestedAt;
    const lease = new FileLease(this.#files, { ...acquired, waited: (acquired.waited || waited) && !isOlder }, options);
    try {
      const result = await work(lease);
      lease.succeed();
      return result;
    } catch (error) {
      lease.fail(error);
      throw error;
    } finally {
      lease.end();
    }
  }

  async #acquire<T>(key: string, options: LeaseOptions<T>): Promise<Acquisition | { instead: T }> {
    const since = bootClock();
    let waited = false;
    const watch = new Watch(this.#files, key, options.durationMs);
    for (let pause = POLL_MS.first; ; pause = Math.min(pause * 1.5, POLL_MS.most)) {
      if (options.signal?.aborted) throw abortedError(options.signal);
      const seen = watch.observe();
      if (seen.free) {
        const record = recordFor(options);
        const attempt = { name: key, number: (seen.latest?.number ?? 0) + 1, id: record.id };
        if (this.#files.take(attempt, record, seen.latest)) return { attempt, record, previous: seen.previous, waited };
        // Another process was faster. It has the lease next time, or its files could not be read back: both take a pause.
      } else {
        if (!waited) options.onWait?.({ pid: seen.record?.holder.pid, at: seen.record?.at ?? Date.now() });
        waited = true;
        const instead = await options.until?.();
        if (instead !== undefined) return { instead };
      }
      if (bootClock() - since > (options.patienceMs ?? Number.POSITIVE_INFINITY)) throw busy(seen.record);
      // Not all at the same moment.
      const how = options.signal ? { signal: options.signal } : {};
      await sleep(pause * (0.5 + Math.random()), undefined, how).catch(() => undefined);
    }
  }
}

interface Acquisition {
  attempt: Attempt;
  record: LockRecord;
  previous: PreviousAttempt | undefined;
  waited: boolean;
}

function recordFor({ durationMs: duration, extend = false }: LeaseOptions<unknown>): LockRecord {
  return { id: lockId(), holder: thisProcess(), at: Date.now(), deadline: bootClock() + duration, duration, extend };
}

/** What a waiting process observes of the attempts before its own. */
class Watch {
  readonly #files: LockFiles;
  readonly #key: string;
  readonly #duration: number;
  #seen = "";
  #seenAt = 0;
  /** The attempt whose process was last looked up, and whether another one has its number. */
  #lastOwner: { id: string; wasReused: boolean } | undefined;

  /** @param duration milliseconds after which an unreadable lock expires */
  constructor(files: LockFiles, key: string, duration: number) {
    this.#files = files;
    this.#key = key;
    this.#duration = duration;
  }

  observe(): {
    free: boolean;
    latest: Latest | undefined;
    previous: PreviousAttempt | undefined;
    record: LockRecord | undefined;
  } {
    // The clock before the files: what a holder wrote before its lock expired must be seen.
    const now = bootClock();
    const latest = this.#files.latest(this.#key);
    if (!latest) return { free: true, latest, previous: undefined, record: undefined };
    const { number, committed, record, done } = latest;
    const heartbeat = this.#follow(latest, now);
    const watched = now - this.#seenAt;
    const clocks = { boot: thisProcess().boot, now, epoch: Date.now(), heartbeat, watched };
    // An unreadable lock gets the duration of one of this process.
    const isExpired = record ? isLockOver(record, committed, clocks) : watched > this.#duration;
    const owner = record && !done ? this.#ownerOf(record, committed && isExpired) : "unknown";
    const ended = decideTakeover({ done, owner, sent: committed, isExpired });
    if (ended === "wait") return { free: false, latest, previous: undefined, record };
    const ending = done && record ? this.#files.ending({ name: this.#key, number, id: record.id }) : undefined;
    const previous = { at: record?.at ?? 0, endedAt: ending?.at, ended, committed, failure: ending?.failure };
    return { free: true, latest, previous, record };
  }

  /** @param isOverdue whether the attempt would be waited for as long as its process lives */
  #ownerOf({ id, holder }: LockRecord, isOverdue: boolean): Liveness {
    const owner = checkLiveness(holder);
    if (owner !== "alive" || !isOverdue) return owner;
    if (this.#lastOwner?.id !== id) this.#lastOwner = { id, wasReused: wasReused(holder) };
    return this.#lastOwner.wasReused ? "dead" : "alive";
  }

  /** An attempt is watched from when it is first seen, or from its last heartbeat. */
  #follow({ number, record }: Latest, now: number): number | undefined {
    const heartbeat = this.#files.lastHeartbeat(this.#key, number);
    const seen = `${number} ${record?.id} ${heartbeat}`;
    if (seen !== this.#seen) this.#seenAt = now;
    this.#seen = seen;
    return heartbeat;
  }
}

class FileLease implements Lease {
  readonly previous: PreviousAttempt | undefined;
  readonly waited: boolean;
  readonly #files: LockFiles;
  readonly #attempt: Attempt;
  readonly #once: boolean;
  readonly #duration: number;
  readonly #timer: NodeJS.Timeout | undefined;
  #from: { clock: number; epoch: number };
  #isRolledBack = false;

  constructor(files: LockFiles, { attempt, record, previous, waited }: Acquisition, options: LeaseOptions<unknown>) {
    this.#files = files;
    this.#attempt = attempt;
    this.#once = options.once === true;
    this.#duration = record.duration;
    this.previous = previous;
    this.waited = waited;
    this.#from = { clock: record.deadline - record.duration, epoch: record.at };
    if (options.extend) this.#timer = setInterval(() => this.#heartbeat(), record.duration / 5).unref();
  }

  /** The epoch too: the clock of a machine that sleeps stops, while the other machines that share the folder count on. */
  left(): number {
    const gone = Math.max(bootClock() - this.#from.clock, Date.now() - this.#from.epoch);
    return Math.max(0, this.#duration - gone);
  }

  async commit(): Promise<void> {
    this.#files.commit(this.#attempt);
    // After the mark: a process that takes over later sees the mark, and one that took over before is seen here.
    if (this.left() === 0 || !this.#files.isNewest(this.#attempt)) throw leaseLost();
  }

  rollback(): void {
    this.#isRolledBack = true;
  }

  succeed(): void {
    if (!this.#once || !this.#removed("forget")) this.#end(undefined);
  }

  fail(error: unknown): void {
    if (!this.#isRolledBack || !this.#removed("rollback")) this.#end(recordFailure(error, this.previous));
  }

  #end(failure: RecordedFailure | undefined): void {
    try {
      this.#files.finish(this.#attempt, { at: Date.now(), failure });
    } catch {
      // A full disk must not make others wait for an attempt that has ended.
      this.#removed("rollback");
    }
  }

  /** Whether the files of the attempt were removed: the work has ended, and an error here does not change that. */
  #removed(how: "forget" | "rollback"): boolean {
    return orUndefined(() => this.#files[how](this.#attempt)) ?? false;
  }

  end(): void {
    clearInterval(this.#timer);
  }

  #heartbeat(): void {
    // The clock first: other processes count from when they see the heartbeat, and must not take over sooner.
    const from = { clock: bootClock(), epoch: Date.now() };
    try {
      if (this.#files.heartbeat(this.#attempt)) this.#from = from;
      else this.end();
    } catch {
      // No process saw the heartbeat; left() shows it.
    }
  }
}

function busy(record: LockRecord | undefined): AgentAuthError {
  const who = record
    ? `process ${record.holder.pid}, which holds it since ${new Date(record.at).toISOString()},`
    : "another process";
  return new AgentAuthError("lease_busy", `${who} holds the lock and does not release it`, {
    class: "unavailable",
    hint: record ? wakingUp(record.holder.pid) : undefined,
  });
}

/** The clocks of two machines are assumed to differ by at most this. */
const SKEW_MS = 120_000;
/** How much later the lock of an invisible holder expires when it may have done what must not happen twice. */
const COMMITTED_FACTOR = 3;

/** What a process that waits for a lease observes of the newest attempt. */
export interface Observation {
  /** Whether the attempt has the mark "done". */
  readonly done: boolean;
  /** Whether it has the mark "sent": it may have done what must not happen twice. */
  readonly sent: boolean;
  /** Whether its process is alive; `unknown` also where its lock file cannot be read. */
  readonly owner: Liveness;
  /** Whether its lock has expired: by {@link isLockOver}, where its lock file can be read. */
  readonly isExpired: boolean;
}

/**
 * Decides whether to wait for an attempt, or to take over from it because of how it ended.
 *
 *     done  owner    sent  expired  decision
 *     yes   any      any   any      released
 *     no    dead     any   any      died
 *     no    alive    yes   any      wait      it may be about to store the response
 *     no    alive    no    no       wait
 *     no    alive    no    yes      expired   it is stopped or stuck, and commits no more
 *     no    unknown  any   no       wait
 *     no    unknown  any   yes      expired   the mark "sent" triples the duration
 */
export function decideTakeover(seen: Observation): "wait" | "released" | "died" | "expired" {
  const { done, owner, sent, isExpired } = seen;
  if (done) return "released";
  if (owner === "dead") return "died";
  if (owner === "alive" && sent) return "wait";
  return isExpired ? "expired" : "wait";
}

/** What the clocks show when a lock file is read. */
export interface Clocks {
  /** The boot of this machine, and its monotonic clock in milliseconds. */
  readonly boot: string;
  readonly now: number;
  /** Unix milliseconds. */
  readonly epoch: number;
  /** The last heartbeat of the holder, in Unix milliseconds; undefined where none can be read. */
  readonly heartbeat: number | undefined;
  /** Milliseconds since this process first saw the lock, or its last heartbeat. */
  readonly watched: number;
}

/**
 * Whether a lock has expired by a clock that counts for it.
 *
 *     clock         counts for                      from
 *     this process  every lock                      the moment when it first saw the lock, or its last heartbeat
 *     this boot     locks of it without heartbeats  their start
 *     epoch         locks of another boot           their last heartbeat; two minutes are allowed for the difference
 *
 * The epoch does not count for locks of this boot, because it jumps when the machine wakes, and a holder that slept as
 * well has yet to send its next heartbeat. The clock of another boot does not count, because it may be far ahead.
 */
export function isLockOver(
  record: LockRecord,
  sent: boolean,
  { boot, now, epoch, heartbeat, watched }: Clocks,
): boolean {
  const time = record.duration * (sent ? COMMITTED_FACTOR : 1);
  if (watched > time) return true;
  if (record.holder.boot === boot) return !record.extend && now >= record.deadline + time - record.duration;
  return epoch - (heartbeat ?? record.at) > time + SKEW_MS;
}
