import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  listFolder,
  publishPrivateFile,
  readPrivateFile,
  removeFile,
  reservePrivateFile,
  syncFolder,
} from "./private-file.js";

const NAME = /^([0-9a-f]{40})\.(\d{1,15})\.json$/;
const LEFTOVER_MS = 10 * 60_000;
/** A large folder is read in parts, and a file that is replaced during the read may be in none of them. */
const MAX_READS = 3;

/** A record as it is stored. */
export interface Stored {
  readonly generation: number;
  readonly text: string;
  readonly path: string;
}

/**
 * Records in a folder, one file each, named `<id>.<generation>.json`. A generation is published by a hard link to a
 * finished file, which only one process can create, and then the generation before it is removed: the highest one is
 * complete at every moment, and it is the record.
 */
export class VersionedFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The record; undefined when there is none. */
  read(id: string): Stored | undefined {
    for (;;) {
      const generation = this.#of(id)[0];
      if (generation === undefined) return undefined;
      const path = this.#path(id, generation);
      const text = readPrivateFile(path);
      // A file that is gone was replaced between the two reads.
      if (text !== undefined) return { generation, text, path };
    }
  }

  /** The ids of all records. */
  ids(): string[] {
    return [...new Set(listFolder(this.#folder).flatMap((name) => NAME.exec(name)?.[1] ?? []))].sort();
  }

  /** The generation that is stored, without reading it. */
  generation(id: string): number | undefined {
    return this.#of(id)[0];
  }

  /** Reserves disk space for a record of up to `bytes`; the path is for {@link publish}. */
  reserve(id: string, bytes: number): string {
    this.#sweep();
    return reservePrivateFile(join(this.#folder, id), bytes);
  }

  /**
   * Makes `generation` the record in place of `expected`.
   *
   * @returns false when something else is stored than was expected
   */
  publish(id: string, reserved: string, content: { text: string; generation: number; expected: number | undefined }) {
    const { text, generation, expected } = content;
    if (generation <= (expected ?? -1)) throw new RangeError("a generation must be higher than the one it replaces");
    if (this.#of(id)[0] !== expected) return false;
    const path = this.#path(id, generation);
    if (!publishPrivateFile(reserved, path, text)) return false;
    const found = this.#of(id);
    const wasRemoved = expected !== undefined && !found.includes(expected) && (found[0] ?? 0) <= generation;
    if (wasRemoved || (expected === undefined && found.some((other) => other < generation))) {
      // The record was removed between the read and the link, or another process started a new one: ours is not published.
      removeFile(path);
      return false;
    }
    for (const other of found) if (other < generation) rmSync(this.#path(id, other), { force: true });
    return true;
  }

  /** Removes a record, after its reserved files, which could otherwise be published in between. */
  remove(id: string): void {
    for (const name of listFolder(this.#folder)) {
      if (name.startsWith(`${id}.`) && name.endsWith(".tmp")) removeFile(join(this.#folder, name));
    }
    for (let found = this.#of(id); found.length > 0; found = this.#of(id)) {
      for (const generation of found) removeFile(this.#path(id, generation));
    }
    if (statSync(this.#folder, { throwIfNoEntry: false })) syncFolder(this.#folder);
  }

  /** The stored generations of a record, the highest first. */
  #of(id: string): number[] {
    for (let reads = 1; ; reads++) {
      const found = listFolder(this.#folder).flatMap((name) => {
        const parts = NAME.exec(name);
        return parts?.[1] === id ? [Number(parts[2])] : [];
      });
      if (found.length > 0 || reads === MAX_READS) return found.sort((a, b) => b - a);
    }
  }

  #path(id: string, generation: number): string {
    return join(this.#folder, `${id}.${generation}.json`);
  }

  /** A process that was killed leaves its temporary file; no save takes this long. */
  #sweep(): void {
    const before = Date.now() - LEFTOVER_MS;
    for (const name of listFolder(this.#folder)) {
      if (!name.endsWith(".tmp")) continue;
      const stat = statSync(join(this.#folder, name), { throwIfNoEntry: false });
      if (stat && stat.mtimeMs < before) rmSync(join(this.#folder, name), { force: true });
    }
  }
}
