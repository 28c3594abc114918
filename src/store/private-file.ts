import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { shellWord } from "../redact.js";
import { storeError } from "./store-error.js";

const MAX_BYTES = 1024 * 1024;

/** Makes a folder that only its owner can enter. */
export function makePrivateFolder(path: string): void {
  try {
    makeFolders(path);
  } catch (cause) {
    throw storeError(
      `the folder ${path} cannot be made`,
      cause,
      "set AGENTAUTH_HOME to a folder that you can write to",
    );
  }
}

/** Not `recursive: true`: where a file system takes no folders, such as /proc, Node would try for ever. */
function makeFolders(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  const parent = dirname(path);
  if (parent !== path) makeFolders(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it just now.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}

/**
 * Refuses a folder of secrets that somebody else owns or can enter, or that a link stands for; one that is not there is
 * no matter.
 *
 * @throws `AgentAuthError` `store_failed`, with the command that repairs it
 */
export function checkPrivateFolder(path: string): void {
  let stat: Stats | undefined;
  try {
    stat = lstatSync(path, { throwIfNoEntry: false });
  } catch (cause) {
    throw storeError(`the folder ${path} cannot be entered`, cause);
  }
  if (stat === undefined) return;
  if (!stat.isDirectory()) {
    const what = stat.isSymbolicLink() ? "is a symbolic link" : "is not a folder";
    throw storeError(`${path} ${what}`, undefined, `move it away: mv ${shellWord(path)} ${shellWord(`${path}.old`)}`);
  }
  checkOwner(`the folder ${path}`, path, stat, "700");
}

/** Windows has neither owners nor modes in this sense. */
function checkOwner(what: string, path: string, stat: Stats, mode: string): void {
  if (process.getuid === undefined) return;
  if (stat.uid !== process.getuid() && stat.uid !== 0) {
    throw storeError(`${what} belongs to another user`, undefined, `chown "$USER" ${shellWord(path)}`);
  }
  if ((stat.mode & 0o077) !== 0) {
    throw storeError(`${what} can be read by others`, undefined, `chmod ${mode} ${shellWord(path)}`);
  }
}

/**
 * Reads a file that holds secrets: an ordinary file of this user that nobody else can read.
 *
 * @returns undefined when there is no such file
 * @throws `AgentAuthError` `store_failed`, with the command that repairs it
 */
export function readPrivateFile(path: string, maxBytes = MAX_BYTES): string | undefined {
  let fd: number;
  try {
    // A link could be made to point at anything between a look at it and the reading; a FIFO would block for ever.
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code;
    if (code === "ENOENT") return undefined;
    throw storeError(
      code === "ELOOP" ? `the file ${path} is a symbolic link` : `the file ${path} cannot be read`,
      cause,
    );
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw storeError(`${path} is not an ordinary file`, undefined);
    if (stat.nlink > 1) {
      const hint = "put the secret into a file of its own";
      throw storeError(`the file ${path} has another name too (a hard link)`, undefined, hint);
    }
    checkOwner(`the file ${path}`, path, stat, "600");
    if (stat.size > maxBytes) throw storeError(`the file ${path} is larger than ${maxBytes} bytes`, undefined);
    return readFileSync(fd, "utf8");
  } finally {
    closeSync(fd);
  }
}

/** Writes a file that only this user can read: whole, kept through a power cut, or not at all. */
export function writePrivateFile(path: string, content: string): void {
  const folder = dirname(path);
  makePrivateFolder(folder);
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    const fd = openSync(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
    try {
      writeFileSync(fd, content);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
    syncFolder(folder);
  } catch (cause) {
    rmSync(temporary, { force: true });
    throw storeError(`the file ${path} cannot be written`, cause);
  }
}

/** The new name is on the disk only when its folder is. Windows has no way to say so. */
function syncFolder(folder: string): void {
  if (process.platform === "win32") return;
  const fd = openSync(folder, constants.O_RDONLY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Removes a file; does nothing when there is none. */
export function removeFile(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch (cause) {
    throw storeError(`the file ${path} cannot be removed`, cause);
  }
}
