import { randomBytes } from "node:crypto";
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentAuthErrorJson } from "../errors.js";
import { isJsonObject } from "../http/strict-json.js";
import type { Holder } from "./holder.js";
import { checkPrivateFolder, makePrivateFolder, noLinks } from "./private-file.js";
import { storeError } from "./store-error.js";

/** What a claim says of its holder. It holds no secret. */
export interface Claim {
  readonly holder: Holder;
  /** Unix milliseconds. */
  readonly at: number;
  /** By the clock of the holder's boot. */
  readonly deadline: number;
  /** Milliseconds that the claim is good for; with `extend`, after the last sign of life. */
  readonly duration: number;
  readonly extend: boolean;
}

/** What is written down when work under a claim ends. */
export interface Ending {
  readonly at: number;
  readonly failure: AgentAuthErrorJson | undefined;
}

/** The newest attempt under a name. */
export interface Latest {
  readonly attempt: number;
  readonly committed: boolean;
  readonly done: boolean;
}

const OLD_MS = 24 * 3600 * 1000;
const CROWD = 200;

/**
 * Claims in a folder: one file an attempt, `<name>.<attempt>.claim`, with `.sent` and `.done` beside it. An attempt is
 * claimed once and by one process, because a link to a finished file is made whole or not at all. Nothing is ever taken
 * away from a holder; the next attempt has the next number.
 */
export class Claims {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The newest attempt; undefined when there is no trace of one. */
  latest(name: string): Latest | undefined {
    const kinds = new Map<number, Set<string>>();
    for (const { attempt, kind } of this.#files(name)) {
      kinds.set(attempt, (kinds.get(attempt) ?? new Set()).add(kind));
    }
    const claimed = [...kinds].filter(([, of]) => of.has("claim")).map(([attempt]) => attempt);
    if (claimed.length === 0) return undefined;
    const attempt = Math.max(...claimed);
    const of = kinds.get(attempt);
    return { attempt, committed: of?.has("sent") === true, done: of?.has("done") === true };
  }

  /** Claims an attempt; false when another process has it, or a later one. */
  take(name: string, attempt: number, claim: Claim): boolean {
    makePrivateFolder(this.#folder);
    checkPrivateFolder(this.#folder);
    const path = this.#path(name, attempt, "claim");
    const temporary = this.#temporary(name);
    try {
      writeFileSync(temporary, JSON.stringify(claim), { mode: 0o600, flag: "wx" });
      linkSync(temporary, path);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "EEXIST") return false;
      throw storeError(`the file ${path} cannot be made`, cause, noLinks((cause as NodeJS.ErrnoException).code));
    } finally {
      rmSync(temporary, { force: true });
    }
    // Whoever looked long ago may have got a number whose turn is over.
    if (this.latest(name)?.attempt !== attempt) {
      rmSync(path, { force: true });
      return false;
    }
    this.#sweep(name, attempt);
    return true;
  }

  /** What an attempt's claim says; undefined when it was swept, or is not of this version. */
  read(name: string, attempt: number): Claim | undefined {
    const value = this.#json(name, attempt, "claim");
    const holder = value?.["holder"];
    return isJsonObject(holder) && typeof value?.["duration"] === "number" ? (value as unknown as Claim) : undefined;
  }

  ending(name: string, attempt: number): Ending | undefined {
    const value = this.#json(name, attempt, "done");
    return typeof value?.["at"] === "number" ? (value as unknown as Ending) : undefined;
  }

  /** Marks an attempt as having begun what must not happen twice. */
  commit(name: string, attempt: number): void {
    this.#write(name, attempt, "sent", "");
  }

  /** Says that an attempt has ended. */
  finish(name: string, attempt: number, ending: Ending): void {
    this.#write(name, attempt, "done", JSON.stringify(ending));
  }

  /** Takes back an attempt of one's own, for when its end cannot be written down. */
  withdraw(name: string, attempt: number): void {
    for (const kind of ["sent", "claim"]) rmSync(this.#path(name, attempt, kind), { force: true });
  }

  /** Shows that the holder of an attempt lives. */
  beat(name: string, attempt: number): void {
    const now = new Date();
    utimesSync(this.#path(name, attempt, "claim"), now, now);
  }

  /** When the holder last showed that it lives, in the file system's time; undefined when the claim is gone. */
  lastBeat(name: string, attempt: number): number | undefined {
    return statSync(this.#path(name, attempt, "claim"), { throwIfNoEntry: false })?.mtimeMs;
  }

  /** Removes every trace of a name. */
  forget(name: string): void {
    for (const { file } of this.#files(name)) rmSync(join(this.#folder, file), { force: true });
  }

  #write(name: string, attempt: number, kind: string, text: string): void {
    const path = this.#path(name, attempt, kind);
    const temporary = this.#temporary(name);
    try {
      writeFileSync(temporary, text, { mode: 0o600, flag: "wx" });
      renameSync(temporary, path);
    } catch (cause) {
      rmSync(temporary, { force: true });
      throw storeError(`the file ${path} cannot be written`, cause);
    }
  }

  #json(name: string, attempt: number, kind: string): Record<string, unknown> | undefined {
    try {
      const value: unknown = JSON.parse(readFileSync(this.#path(name, attempt, kind), "utf8"));
      return isJsonObject(value) ? value : undefined;
    } catch {
      return undefined;
    }
  }

  #path(name: string, attempt: number, kind: string): string {
    return join(this.#folder, `${name}.${attempt}.${kind}`);
  }

  #temporary(name: string): string {
    return join(this.#folder, `${name}.${randomBytes(6).toString("hex")}.tmp`);
  }

  #names(): string[] {
    try {
      return readdirSync(this.#folder);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw storeError(`the folder ${this.#folder} cannot be read`, cause);
    }
  }

  #files(name: string): { file: string; attempt: number; kind: string }[] {
    return this.#names().flatMap((file) => {
      if (!file.startsWith(`${name}.`)) return [];
      const parts = /^(\d{1,12})\.(claim|sent|done)$/.exec(file.slice(name.length + 1));
      return parts ? [{ file, attempt: Number(parts[1]), kind: parts[2] ?? "" }] : [];
    });
  }

  /** The attempt before this one may still be read; those before it are of no use. Other names go when they are old. */
  #sweep(name: string, attempt: number): void {
    for (const { file, attempt: other } of this.#files(name)) {
      if (other < attempt - 1) rmSync(join(this.#folder, file), { force: true });
    }
    const all = this.#names();
    if (all.length < CROWD) return;
    const before = Date.now() - OLD_MS;
    for (const file of all.filter((one) => !one.startsWith(`${name}.`))) {
      const path = join(this.#folder, file);
      const stat = statSync(path, { throwIfNoEntry: false });
      if (stat && stat.mtimeMs < before) rmSync(path, { force: true });
    }
  }
}
