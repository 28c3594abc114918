import { constants, linkSync, mkdirSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { codeOf, isContention, retryWhileBusy, statOf } from "../../platform/files.js";
import { storeError } from "../store-error.js";
import {
  attempt,
  CONTENT,
  discardFile,
  inUse,
  readPublishedFile,
  syncFolder,
  temporaryPath,
  writeSynced,
} from "./private-file.js";

/** How file systems answer that they have no hard links: EISDIR on Windows for exFAT, EACCES on Android. */
const NO_LINKS = new Set(["EPERM", "EACCES", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EISDIR"]);
/** How systems answer that a folder is not empty, or that the name belongs to a file. */
const TAKEN = new Set(["EEXIST", "ENOTEMPTY", "ENOTDIR"]);

/**
 * Creates a temporary file beside `path`, with `bytes` allocated on the disk, for {@link publishPrivateFile}.
 *
 * @param like a file that was published here: where that needed a folder, the space for one is reserved too
 * @returns its path
 */
export function reservePrivateFile(path: string, bytes: number, like?: string): string {
  const temporary = temporaryPath(path);
  try {
    const inFolder = like !== undefined && isFolder(like);
    if (inFolder) mkdirSync(temporary, 0o700);
    const file = inFolder ? join(temporary, CONTENT) : temporary;
    writeSynced(file, Buffer.alloc(bytes), constants.O_CREAT | constants.O_EXCL);
  } catch (cause) {
    discardFile(temporary);
    throw storeError(`the folder ${dirname(path)} cannot be written`, cause, inUse(cause));
  }
  return temporary;
}

/**
 * Writes the content of a reserved file and publishes it under its name, atomically and durably.
 *
 * @returns false when the name is taken, or the reserved file is gone; nothing is changed then
 */
export function publishPrivateFile(temporary: string, path: string, content: string): boolean {
  try {
    const inFolder = isFolder(temporary);
    writeSynced(inFolder ? join(temporary, CONTENT) : temporary, content, 0);
    if (inFolder) nameFolder(temporary, path);
    else nameOnce(temporary, path);
  } catch (cause) {
    const code = codeOf(cause);
    if (code === "EEXIST" || code === "ENOENT") return false;
    throw storeError(`the file ${path} cannot be written`, cause, inUse(cause));
  }
  // It is saved: nothing that fails from here on may say otherwise.
  discardFile(temporary);
  attempt(() => syncFolder(dirname(path)));
  return true;
}

/**
 * Replaces the content of a file, atomically and durably, if it still has the content that was read. One process does it
 * at a time.
 *
 * @returns false while another one does
 */
export function replacePublishedFile(path: string, before: string, content: string): boolean {
  const temporary = `${path}.replaced.tmp`;
  try {
    writeSynced(temporary, content, constants.O_CREAT | constants.O_EXCL);
  } catch (cause) {
    const code = codeOf(cause);
    if (code === "EEXIST" || code === "ENOENT") return code === "ENOENT";
    throw storeError(`the folder ${dirname(path)} cannot be written`, cause, inUse(cause));
  }
  try {
    if (readPublishedFile(path) !== before) {
      discardFile(temporary);
      return true;
    }
    retryWhileBusy(() => renameSync(temporary, isFolder(path) ? join(path, CONTENT) : path));
  } catch (cause) {
    // Another process has removed both.
    if (codeOf(cause) === "ENOENT") return true;
    discardFile(temporary);
    throw storeError(`the file ${path} cannot be written`, cause, inUse(cause));
  }
  attempt(() => syncFolder(dirname(path)));
  return true;
}

/**
 * Gives a finished file a name that only one process can give: by a hard link. Where there are none, the file moves into a
 * folder that gets the name: a folder replaces no other one that has content.
 *
 * @throws `EEXIST` where the name is taken; the temporary file may have moved
 */
export function nameOnce(temporary: string, path: string): void {
  try {
    retryWhileBusy(() => linkSync(temporary, path));
  } catch (cause) {
    if (isContention(cause) || !NO_LINKS.has(codeOf(cause) ?? "")) throw cause;
    const folder = temporaryPath(path);
    mkdirSync(folder, 0o700);
    try {
      retryWhileBusy(() => renameSync(temporary, join(folder, CONTENT)));
      nameFolder(folder, path);
    } catch (error) {
      discardFile(folder);
      throw error;
    }
  }
}

function nameFolder(folder: string, path: string): void {
  syncFolder(folder);
  retryWhileBusy(() => {
    try {
      renameSync(folder, path);
    } catch (cause) {
      // Windows has the same answer for a name that is taken as for a file in use.
      const isTaken = TAKEN.has(codeOf(cause) ?? "") || (isContention(cause) && isFolder(path));
      throw isTaken ? Object.assign(new Error("the name is taken", { cause }), { code: "EEXIST" }) : cause;
    }
  });
}

function isFolder(path: string): boolean {
  return statOf(path)?.isDirectory() === true;
}
