import { renameSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentAuthErrorJson } from "../../errors.js";
import { isJsonObject } from "../../http/strict-json.js";
import { codeOf, retryWhileBusy } from "../../platform/files.js";
import {
  checkPrivateFolder,
  discardFile,
  listFolder,
  makePrivateFolder,
  readPublishedFile,
  temporaryPath,
} from "../private/private-file.js";
import { nameOnce } from "../private/published-file.js";
import { storeError } from "../store-error.js";
import { type LeaseOutcome, type LockRecord, parseLeaseOutcome, parseLockRecord } from "./lock-owner.js";

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
      if (codeOf(cause) === "EEXIST") return false;
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
    const removed = [...traces.filter(({ mark }) => mark), ...lockFiles].map(({ file }) =>
      discardFile(this.#path(file)),
    );
    return removed.every(Boolean);
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
    try {
      const value: unknown = JSON.parse(readPublishedFile(this.#path(file)) ?? "");
      return isJsonObject(value) ? value : undefined;
    } catch {
      return undefined;
    }
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
    try {
      return statSync(this.#path(file)).mtimeMs;
    } catch {
      return undefined;
    }
  }
}

function isSame(one: Latest | undefined, other: Latest | undefined): boolean {
  const isSameAttempt = one?.number === other?.number && one?.record?.id === other?.record?.id;
  return isSameAttempt && one?.committed === other?.committed && one?.done === other?.done;
}
