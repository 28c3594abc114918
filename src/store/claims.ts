import { randomBytes } from "node:crypto";
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentAuthErrorJson } from "../errors.js";
import { isJsonObject } from "../http/strict-json.js";
import { type Claim, type Ending, parseClaim, parseEnding } from "./claim.js";
import { checkPrivateFolder, makePrivateFolder, noLinks } from "./private-file.js";
import { storeError } from "./store-error.js";

/** One claim among all that there ever were. */
export interface Turn {
  readonly name: string;
  readonly attempt: number;
  readonly id: string;
}

/** The newest attempt under a name. */
export interface Latest {
  readonly attempt: number;
  /** Undefined when it was swept meanwhile, or is not of this version. */
  readonly claim: Claim | undefined;
  readonly committed: boolean;
  readonly done: boolean;
}

interface Trace {
  readonly file: string;
  readonly attempt: number;
  /** The claim that a mark belongs to; undefined for the claim itself. */
  readonly mark: { readonly id: string; readonly kind: "sent" | "done" } | undefined;
}

const OLD_MS = 24 * 3600 * 1000;
const CROWD = 200;

/**
 * Claims in a folder: one file an attempt, `<name>.<attempt>.claim`, with marks beside it, `<name>.<attempt>.<id>.sent`
 * and `.done`. An attempt is claimed once and by one process, because a link to a finished file is made whole or not at
 * all. Nothing is ever taken away from a holder; the next attempt has the next number. Numbers begin anew when all
 * traces of a name are gone, and so it is the id that tells whose a claim or a mark is.
 */
export class Claims {
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
    const traces = this.#traces(name).filter((trace) => trace.attempt < below);
    const claimed = traces.flatMap(({ attempt, mark }) => (mark ? [] : [attempt]));
    if (claimed.length === 0) return undefined;
    const attempt = Math.max(...claimed);
    const claim = parseClaim(this.#json(`${name}.${attempt}.claim`));
    const has = (kind: string) =>
      traces.some(({ attempt: of, mark }) => {
        return of === attempt && mark?.kind === kind && (claim === undefined || mark.id === claim.id);
      });
    return { attempt, claim, committed: has("sent"), done: has("done") };
  }

  /**
   * Claims an attempt; false when another process has it, or the newest one is no longer the one that was judged.
   *
   * @param judged the attempt before, which was found to be over; undefined when there was none
   */
  take({ name, attempt }: Turn, claim: Claim, judged: Latest | undefined): boolean {
    makePrivateFolder(this.#folder);
    checkPrivateFolder(this.#folder);
    const path = this.#path(`${name}.${attempt}.claim`);
    const temporary = this.#temporary(name);
    try {
      writeFileSync(temporary, JSON.stringify(claim), { mode: 0o600, flag: "wx" });
      linkSync(temporary, path);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "EEXIST") return false;
      throw storeError(`the file ${path} cannot be made`, cause, noLinks((cause as NodeJS.ErrnoException).code));
    } finally {
      remove(temporary);
    }
    try {
      // Whoever looked long ago may have got a number whose turn is over, or one that came round again.
      const before = this.latest(name, attempt);
      const isAsJudged = before?.attempt === judged?.attempt && before?.claim?.id === judged?.claim?.id;
      const isHad = isAsJudged && this.isNewest({ name, attempt, id: claim.id });
      if (isHad) this.#sweep(name, attempt);
      else remove(path);
      return isHad;
    } catch (error) {
      remove(path);
      throw error;
    }
  }

  /** Whether nobody has claimed an attempt after this one. */
  isNewest({ name, attempt, id }: Turn): boolean {
    const latest = this.latest(name);
    return latest?.attempt === attempt && latest.claim?.id === id;
  }

  /** What was written down at the end of an attempt. */
  ending({ name, attempt, id }: Turn): Ending | undefined {
    return parseEnding(this.#json(`${name}.${attempt}.${id}.done`));
  }

  /** Marks an attempt as having begun what must not happen twice. */
  commit(turn: Turn): void {
    this.#mark(turn, "sent", "");
  }

  /** Says that an attempt has ended. */
  finish(turn: Turn, ending: { at: number; failure: AgentAuthErrorJson | undefined }): void {
    this.#mark(turn, "done", JSON.stringify(ending));
  }

  /** Takes back an attempt, as if it had never been: the one before it is the newest again. False when that failed. */
  withdraw(turn: Turn): boolean {
    return this.#forget(turn, ({ attempt }) => attempt === turn.attempt);
  }

  /** Removes every trace of a name up to this attempt; false when that failed. */
  forget(turn: Turn): boolean {
    return this.#forget(turn, ({ attempt }) => attempt <= turn.attempt);
  }

  /** Shows that the holder of an attempt lives; false when another process has taken over. */
  beat(turn: Turn): boolean {
    if (!this.isNewest(turn)) return false;
    const now = new Date();
    utimesSync(this.#path(`${turn.name}.${turn.attempt}.claim`), now, now);
    return true;
  }

  /** When the holder last showed that it lives, in the file system's time; undefined when the claim is gone. */
  lastBeat(name: string, attempt: number): number | undefined {
    return this.#touched(`${name}.${attempt}.claim`);
  }

  /** Where the claim is another's by now, what was chosen is theirs too: only marks of our own go then. */
  #forget(turn: Turn, chosen: (trace: Trace) => boolean): boolean {
    const { name, attempt, id } = turn;
    const owner = parseClaim(this.#json(`${name}.${attempt}.claim`))?.id;
    if (owner === undefined && this.lastBeat(name, attempt) !== undefined) return false;
    const traces = this.#traces(name).filter((trace) => trace.mark?.id === id || (owner === id && chosen(trace)));
    // The claims last: without its marks one is at worst waited for, while a mark without its claim would mean nothing.
    const claims = traces.filter(({ mark }) => !mark).sort((a, b) => a.attempt - b.attempt);
    const removed = [...traces.filter(({ mark }) => mark), ...claims].map(({ file }) => remove(this.#path(file)));
    return removed.every(Boolean);
  }

  #mark({ name, attempt, id }: Turn, kind: "sent" | "done", text: string): void {
    const path = this.#path(`${name}.${attempt}.${id}.${kind}`);
    const temporary = this.#temporary(name);
    try {
      writeFileSync(temporary, text, { mode: 0o600, flag: "wx" });
      renameSync(temporary, path);
    } catch (cause) {
      remove(temporary);
      throw storeError(`the file ${path} cannot be written`, cause);
    }
  }

  #json(file: string): Record<string, unknown> | undefined {
    try {
      const value: unknown = JSON.parse(readFileSync(this.#path(file), "utf8"));
      return isJsonObject(value) ? value : undefined;
    } catch {
      return undefined;
    }
  }

  #path(file: string): string {
    return join(this.#folder, file);
  }

  #temporary(name: string): string {
    return this.#path(`${name}.${randomBytes(6).toString("hex")}.tmp`);
  }

  #names(): string[] {
    try {
      return readdirSync(this.#folder);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw storeError(`the folder ${this.#folder} cannot be read`, cause);
    }
  }

  #traces(name: string): Trace[] {
    return this.#names().flatMap((file) => {
      if (!file.startsWith(`${name}.`)) return [];
      const parts = /^(\d{1,12})\.(?:claim|([0-9a-f]{12})\.(sent|done))$/.exec(file.slice(name.length + 1));
      if (!parts) return [];
      const [, attempt, id, kind] = parts;
      return [{ file, attempt: Number(attempt), mark: id ? { id, kind: kind as "sent" | "done" } : undefined }];
    });
  }

  /** The attempt before this one may still be read; those before it are of no use. Other names go when they are old. */
  #sweep(name: string, attempt: number): void {
    for (const { file, attempt: other } of this.#traces(name)) {
      if (other < attempt - 1) remove(this.#path(file));
    }
    const all = this.#names();
    if (all.length < CROWD) return;
    const before = Date.now() - OLD_MS;
    for (const file of all.filter((one) => !one.startsWith(`${name}.`))) {
      if ((this.#touched(file) ?? before) < before) remove(this.#path(file));
    }
  }

  /** When a file was last written or touched; undefined where that cannot be told. */
  #touched(file: string): number | undefined {
    try {
      return statSync(this.#path(file)).mtimeMs;
    } catch {
      return undefined;
    }
  }
}

/** What cannot be removed is in nobody's way: a claim without a holder is given up all the same. */
function remove(path: string): boolean {
  try {
    rmSync(path, { force: true });
    return true;
  } catch {
    return false;
  }
}
