import { join, sep } from "node:path";
import { statOf } from "../../platform/files.js";
import {
  attempt,
  discardFile,
  listFolder,
  moveEmptyAway,
  type OnEmptyFile,
  readPublishedFile,
  removeFile,
  syncIfThere,
} from "../private/private-file.js";
import { publishPrivateFile, reservePrivateFile } from "../private/published-file.js";

const NAME = /^(\d{1,15})\.json$/;
const LEFTOVER_MS = 10 * 60_000;
/** A large folder is read in parts, and a file that is replaced during the read may be in none of them. */
const MAX_LOOKS = 3;

export interface Stored {
  readonly generation: number;
  readonly text: string;
  readonly path: string;
}

/**
 * The files of one record in a folder, named `<generation>.json`. A generation is published under a name that
 * only one process can give to a finished file, and then the generation before it is removed: the highest one is
 * complete at every moment, and it is the record.
 */
export class VersionedFiles {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** The record; undefined when there is none. @param onEmpty as {@link moveEmptyAway} has it */
  read(onEmpty?: OnEmptyFile): Stored | undefined {
    for (let generation = this.generation(); generation !== undefined; generation = this.generation()) {
      const path = this.#path(generation);
      const text = readPublishedFile(path);
      // A file that is gone was replaced after it was seen, or renamed.
      if (text !== undefined && !moveEmptyAway(path, text, onEmpty)) return { generation, text, path };
    }
    return undefined;
  }

  /** The generation that is stored, without reading it. */
  generation(): number | undefined {
    return this.#all()[0];
  }

  /**
   * Reserves disk space for a record of up to `bytes`; the path is for {@link publish}.
   *
   * @param before the path of the record that it replaces
   */
  reserve(bytes: number, before: string | undefined): string {
    this.#sweep();
    return reservePrivateFile(join(this.folder, "next"), bytes, before);
  }

  /**
   * Makes `generation` the record in place of `expected`.
   *
   * @returns false when something else is stored than was expected
   */
  publish(reserved: string, content: { text: string; generation: number; expected: number | undefined }): boolean {
    const { text, generation, expected } = content;
    if (this.generation() !== expected) return false;
    const path = this.#path(generation);
    if (!publishPrivateFile(reserved, path, text)) return false;
    const found = this.#afterPublishing();
    if (found === undefined) return true;
    const wasRemoved = expected !== undefined && !found.includes(expected) && (found[0] ?? 0) <= generation;
    if (wasRemoved || (expected === undefined && found.some((other) => other < generation))) {
      // The record was removed between the read and the link, or another process started a new one: ours is not published.
      removeFile(path);
      return false;
    }
    for (const other of found) if (other < generation) discardFile(this.#path(other));
    return true;
  }

  /** Removes the record, after its reserved files, which could otherwise be published in between. */
  remove(): void {
    // Twice: a process that seals the record begins before its name is gone, and could give it back after the first time.
    for (let time = 1; time <= 2; time++) {
      for (const name of listFolder(this.folder)) {
        if (name.endsWith(".tmp")) removeFile(join(this.folder, name));
      }
      for (let found = this.#all(); found.length > 0; found = this.#all()) {
        for (const generation of found) removeFile(this.#path(generation));
      }
    }
    syncIfThere(this.folder);
  }

  /** The stored generations; undefined where the folder cannot be read, which must not hide that a record was published. */
  #afterPublishing(): number[] | undefined {
    let found: number[] | undefined;
    attempt(() => {
      found = this.#all();
    });
    return found;
  }

  /** The stored generations, the highest first. */
  #all(): number[] {
    for (let look = 1; ; look++) {
      const names = listFolder(this.folder);
      const found = names.flatMap((name) => generationIn(name) ?? []);
      // The folder of a record that is being replaced is never empty.
      if (found.length > 0 || names.length === 0 || look >= MAX_LOOKS) return found.sort((a, b) => b - a);
    }
  }

  #path(generation: number): string {
    return `${this.folder}${sep}${generation}.json`;
  }

  /** A process that was killed leaves its temporary file; no save takes this long. */
  #sweep(): void {
    const before = Date.now() - LEFTOVER_MS;
    for (const name of listFolder(this.folder)) {
      if (!name.endsWith(".tmp")) continue;
      const stat = statOf(join(this.folder, name));
      if (stat && stat.mtimeMs < before) discardFile(join(this.folder, name));
    }
  }
}

function generationIn(name: string): number | undefined {
  const number = NAME.exec(name)?.[1];
  return number === undefined ? undefined : Number(number);
}
