import { accessSync, constants, existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type AgentAuthError, isAgentAuthError, usageError } from "../../../errors.js";
import { codeOf, statOf } from "../../../platform/files.js";
import { quote, shellWord } from "../../../redact.js";
import { temporaryPath } from "../../../store/private/private-file.js";
import { outputError } from "../../io/write-all.js";

const OTHER_FILE = "give another file, or - for standard output";
const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "is in a folder that does not exist",
  ENOTDIR: "is in a folder that is a file",
};

/**
 * Refuses a file that cannot be written, before the pool is read.
 *
 * @throws `AgentAuthError` `usage`
 */
export function checkHtmlFile(path: string, force: boolean): void {
  if (path === "") throw fileError(path, "is not a file name", "give a file, or - for standard output");
  try {
    const found = statOf(path);
    if (found?.isDirectory())
      throw fileError(path, "is a folder", `give a file: --html ${shellWord(join(path, "report.html"))}`);
    // A rename would put the report in place of a device.
    if (found && !found.isFile()) throw fileError(path, "is not a file", OTHER_FILE);
    if (found && !force) throw fileExistsError(path);
    accessSync(dirname(path), constants.W_OK);
  } catch (thrown) {
    if (isAgentAuthError(thrown)) throw thrown;
    const code = codeOf(thrown) ?? "";
    throw fileError(path, REASONS[code] ?? `cannot be written (${code})`, OTHER_FILE, thrown);
  }
}

/**
 * Writes the file, writable by this user and readable by everyone, under its name only once it is whole; a failure leaves
 * what was there.
 *
 * @param force overwrites an existing file
 * @throws `AgentAuthError` `usage` if another process has created the file; `store_failed` for a full disk
 */
export function writeHtmlFile(path: string, text: string, force: boolean): void {
  const written = temporaryPath(path);
  try {
    writeFileSync(written, text, { flag: "wx", mode: 0o644, flush: true });
    if (!force && existsSync(path)) throw fileExistsError(path);
    renameSync(written, path);
  } catch (thrown) {
    if (isAgentAuthError(thrown)) throw thrown;
    const hint = "check the disk of the file, or give - for standard output";
    throw outputError(`the report cannot be written to ${quote(path)}`, thrown as Error, hint);
  } finally {
    rmSync(written, { force: true });
  }
}

function fileExistsError(path: string): AgentAuthError {
  return fileError(path, "already exists", "give another file, or overwrite it with --force");
}

function fileError(path: string, reason: string, hint: string, cause?: unknown): AgentAuthError {
  return usageError(`--html ${quote(path)} ${reason}`, hint, cause);
}
