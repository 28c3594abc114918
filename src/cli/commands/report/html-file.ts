import { accessSync, constants, linkSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { AgentAuthError, usageError } from "../../../errors.js";
import { codeOf, statOf } from "../../../platform/files.js";
import { quote, shellWord } from "../../../redact.js";
import { temporaryPath } from "../../../store/private/private-file.js";
import { outputError } from "../../io/write-all.js";

const OTHER_FILE = "give another file, or - for standard output";
const TAKEN = ["already exists", "give another file, or overwrite it with --force"] as const;

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
    if (found && !found.isFile()) throw refused(path, "is not a file", OTHER_FILE);
    if (found && !force) throw refused(path, ...TAKEN);
    accessSync(dirname(path), constants.W_OK);
  } catch (thrown) {
    throw asRefusal(path, thrown);
  }
}

/**
 * Writes the file, writable by this user and readable by everyone, under its name only once it is whole; a failure leaves
 * what was there.
 *
 * @param force overwrites an existing file
 * @throws `AgentAuthError` `usage`, also if another process created the file; `store_failed` for a full disk
 */
export function writeHtmlFile(path: string, text: string, force: boolean): void {
  const written = temporaryPath(path);
  try {
    writeFileSync(written, text, { flag: "wx", mode: 0o644, flush: true });
    if (!force) claimName(written, path);
    renameSync(written, path);
  } catch (thrown) {
    throw asRefusal(path, thrown);
  } finally {
    rmSync(written, { force: true });
  }
}

/** Gives the file its name unless that is taken; where there are no hard links, an empty file claims the name. */
function claimName(written: string, path: string): void {
  try {
    linkSync(written, path);
  } catch (thrown) {
    if (codeOf(thrown) === "EEXIST") throw thrown;
    writeFileSync(path, "", { flag: "wx", mode: 0o644 });
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "is in a folder that does not exist",
  ENOTDIR: "is in a folder that is a file",
  EACCES: "cannot be written: no permission",
  EPERM: "cannot be written: no permission",
  EROFS: "cannot be written: the file system is read-only",
  ENAMETOOLONG: "has a name that is too long",
};

function asRefusal(path: string, thrown: unknown): AgentAuthError {
  if (thrown instanceof AgentAuthError) return thrown;
  const code = codeOf(thrown) ?? "";
  if (code === "EEXIST") return refused(path, ...TAKEN);
  const reason = REASONS[code];
  if (reason !== undefined) return refused(path, reason, OTHER_FILE, thrown);
  return outputError(
    `the report cannot be written to ${quote(path)}`,
    thrown as Error,
    "check the disk of the file, or give - for standard output",
  );
}

function refused(path: string, reason: string, hint: string, cause?: unknown): AgentAuthError {
  return usageError(`--html ${quote(path)} ${reason}`, hint, cause);
}
