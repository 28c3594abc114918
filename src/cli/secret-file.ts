import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { shellWord } from "./continuation.js";
import { makePrivateFolder } from "./home.js";
import { storeError } from "./store-error.js";

const MAX_BYTES = 64 * 1024;

/**
 * Reads a file that holds a secret: an ordinary file of this user that nobody else can read, at most 64 KiB. One line
 * break at its end is left out.
 *
 * @throws `AgentAuthError` `store_failed`, with the command that repairs it
 */
export function readSecretFile(path: string): string {
  let fd: number;
  try {
    // A link could be made to point at anything between a look at it and the reading; a FIFO would block for ever.
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (cause) {
    const link = (cause as NodeJS.ErrnoException).code === "ELOOP";
    throw storeError(link ? `the file ${path} is a symbolic link` : `the file ${path} cannot be read`, cause);
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw storeError(`${path} is not an ordinary file`, undefined);
    if (process.getuid !== undefined) {
      if (stat.uid !== process.getuid() && stat.uid !== 0) {
        throw storeError(`the file ${path} belongs to another user`, undefined, `chown "$USER" ${shellWord(path)}`);
      }
      if ((stat.mode & 0o077) !== 0) {
        throw storeError(`the file ${path} can be read by others`, undefined, `chmod 600 ${shellWord(path)}`);
      }
    }
    if (stat.nlink > 1) {
      throw storeError(
        `the file ${path} has another name too (a hard link)`,
        undefined,
        "put the secret into a file of its own",
      );
    }
    if (stat.size > MAX_BYTES) throw storeError(`the file ${path} is larger than ${MAX_BYTES} bytes`, undefined);
    return readFileSync(fd, "utf8").replace(/\r?\n$/, "");
  } finally {
    closeSync(fd);
  }
}

/** Writes a file that only this user can read, whole or not at all. */
export function writeSecretFile(path: string, content: string): void {
  makePrivateFolder(dirname(path));
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    const fd = openSync(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
    try {
      writeSync(fd, content);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
  } catch (cause) {
    rmSync(temporary, { force: true });
    throw storeError(`the file ${path} cannot be written`, cause);
  }
}
