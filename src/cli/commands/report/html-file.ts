import { randomBytes } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { AgentAuthError } from "../../../errors.js";
import { statOf } from "../../../platform/stat.js";
import { quote, shellWord } from "../../../redact.js";
import { outputError } from "../../io/write-all.js";

/**
 * Refuses a file that cannot be written, before the pool is read.
 *
 * @throws `AgentAuthError` `usage`
 */
export function checkHtmlFile(path: string, force: boolean): void {
  if (path === "") throw refused(path, "is not a file name", "give a file, or - for standard output");
  try {
    const found = statOf(path);
    if (found?.isDirectory())
      throw refused(path, "is a folder", `give a file: --html ${shellWord(join(path, "report.html"))}`);
    // A rename would put the report in place of a device.
    if (found && !found.isFile()) throw refused(path, "is not a file", "give another file, or - for standard output");
    if (found && !force) throw alreadyThere(path);
    accessSync(dirname(path), constants.W_OK);
  } catch (thrown) {
    throw asRefusal(path, thrown);
  }
}

/**
 * Writes the file atomically, writable by this user and readable by everyone.
 *
 * @param force overwrites an existing file
 * @throws `AgentAuthError` `usage`, also if another process created the file; `store_failed` for a full disk
 */
export function writeHtmlFile(path: string, text: string, force: boolean): void {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}.tmp`);
  try {
    const file = openSync(temporary, "wx", 0o644);
    try {
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    // A rename would overwrite a file that another process has created since; a link does not.
    if (force || !canLink(temporary, path)) renameSync(temporary, path);
  } catch (thrown) {
    throw asRefusal(path, thrown);
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** False on a file system without links, if the path is still free. */
function canLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === "EEXIST") throw thrown;
    if (statOf(to)) throw alreadyThere(to);
    return false;
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "is in a folder that does not exist",
  ENOTDIR: "is in a folder that is a file",
  EACCES: "cannot be written: no permission",
  EPERM: "cannot be written: no permission",
  EROFS: "cannot be written: the file system is read-only",
  EISDIR: "is a folder",
  ENAMETOOLONG: "has a name that is too long",
};

function asRefusal(path: string, thrown: unknown): AgentAuthError {
  if (thrown instanceof AgentAuthError) return thrown;
  const { code = "" } = thrown as NodeJS.ErrnoException;
  if (code === "EEXIST") return alreadyThere(path);
  const reason = REASONS[code];
  if (reason !== undefined) return refused(path, reason, "give another file, or - for standard output", thrown);
  return outputError(
    `the report cannot be written to ${quote(path)}`,
    thrown as Error,
    "check the disk of the file, or give - for standard output",
  );
}

function alreadyThere(path: string): AgentAuthError {
  return refused(path, "already exists", "give another file, or overwrite it with --force");
}

function refused(path: string, reason: string, hint: string, cause?: unknown): AgentAuthError {
  return new AgentAuthError("usage", `--html ${quote(path)} ${reason}`, { class: "usage", hint, cause });
}
