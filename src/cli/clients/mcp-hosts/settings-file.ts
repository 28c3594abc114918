import * as fs from "node:fs";
import { constants, type Stats } from "node:fs";
import { dirname, isAbsolute, relative, sep } from "node:path";
import { AgentAuthError, usageError } from "../../../errors.js";
import { linkStatOf } from "../../../platform/files.js";
import { changingMode, removeCommand } from "../../../platform/shell.js";
import { syncFolder, temporaryPath, writeSynced } from "../../../store/private/private-file.js";
import { storeError } from "../../../store/store-error.js";

/** Far more than settings need; a host's own file may also have its history. */
const MAX_BYTES = 8 * 1024 * 1024;
const BOM = "\uFEFF";

/**
 * The text of a host's file without a byte order mark; that of a missing one is empty.
 *
 * @param project the folder that the file must not lead out of
 * @throws `AgentAuthError` `usage` for what is no text file, `store_failed` for what cannot be read
 */
export function readHostFile(path: string, project?: string): string {
  return textOf(path, readOriginal(path, targetOf(path, project))?.bytes);
}

/**
 * Replaces the file in one step: a reader finds the old or the new content, also after a crash. The old content is stored
 * beside it first, under the time.
 *
 * @param change of the text as it is now
 * @returns the path of the backup; undefined where there was no file
 * @throws `AgentAuthError` as {@link readHostFile}, and what `change` throws; the file is as it was
 */
export function changeHostFile(
  path: string,
  project: string | undefined,
  change: (text: string) => string,
): string | undefined {
  const target = targetOf(path, project);
  const original = readOriginal(path, target);
  const text = change(textOf(path, original?.bytes));
  try {
    if (original === undefined) {
      fs.mkdirSync(dirname(target), { recursive: true, ...(project === undefined && { mode: 0o700 }) });
      replace(target, Buffer.from(text), project === undefined ? 0o600 : 0o666);
      return undefined;
    }
    // A rename would also replace a read-only file.
    if ((original.stat.mode & 0o222) === 0)
      throw storeError(`the file ${path} is read-only`, undefined, changingMode("u+w", path, original.stat.uid));
    const backup = `${target}.${new Date().toISOString().replace(/[-:.]/g, "")}.agentauth.bak`;
    fs.writeFileSync(backup, original.bytes, { flag: "wx", mode: 0o600, flush: true });
    keepModeAndOwner(backup, original.stat);
    const bom = original.bytes.toString("utf8", 0, 3) === BOM ? BOM : "";
    replace(target, Buffer.from(bom + text), original.stat);
    return backup;
  } catch (cause) {
    if (cause instanceof AgentAuthError) throw cause;
    throw storeError(`the file ${path} cannot be written`, cause, "the file is as it was; check its folder");
  }
}

function textOf(path: string, bytes: Buffer | undefined): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw usageError(`the file ${path} is not UTF-8 text`, "save it as UTF-8");
  }
}

/** A file in a project may be a link that its author chose: it must not lead to the user's own files. */
function targetOf(path: string, project: string | undefined): string {
  try {
    const existing = existingPart(path);
    const target = fs.realpathSync.native(existing) + path.slice(existing.length);
    const inside = project === undefined ? "" : relative(fs.realpathSync.native(project), target);
    // On Windows, the way to another drive is an absolute path.
    if (inside !== ".." && !inside.startsWith(`..${sep}`) && !isAbsolute(inside)) return target;
    const message = `the file ${path} leads out of the project, to ${target}`;
    throw usageError(message, `remove the link: ${removeCommand(path)}`);
  } catch (cause) {
    if (cause instanceof AgentAuthError) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ELOOP")
      throw usageError(`the file ${path} is a symbolic link that leads nowhere`, `remove it: ${removeCommand(path)}`);
    throw storeError(`the file ${path} cannot be read`, cause);
  }
}

/** The longest part of a path that exists; a link that leads nowhere exists. */
function existingPart(path: string): string {
  const parent = dirname(path);
  return parent === path || linkStatOf(path) !== undefined ? path : existingPart(parent);
}

function readOriginal(path: string, target: string): { bytes: Buffer; stat: Stats } | undefined {
  let fd: number | undefined;
  try {
    // A FIFO would block forever.
    fd = fs.openSync(target, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = fs.fstatSync(fd);
    if (!stat.isFile() || stat.size > MAX_BYTES)
      throw usageError(`${path} is not an ordinary file of at most ${MAX_BYTES} bytes`, "add the entry by hand");
    return { bytes: fs.readFileSync(fd), stat };
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    if (cause instanceof AgentAuthError) throw cause;
    throw storeError(`the file ${path} cannot be read`, cause);
  } finally {
    if (fd !== undefined) fs.closeSync(fd);
  }
}

/** @param like the file to take mode and owner from, or the mode of a new file, from which the umask takes away */
function replace(path: string, content: Buffer, like: Stats | number): void {
  const temporary = temporaryPath(path);
  try {
    writeSynced(temporary, content, constants.O_CREAT | constants.O_EXCL, typeof like === "number" ? like : 0o600);
    if (typeof like !== "number") keepModeAndOwner(temporary, like);
    fs.renameSync(temporary, path);
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

/** The owner differs where an administrator runs this for a user. */
function keepModeAndOwner(path: string, { mode, uid, gid }: Stats): void {
  const own = fs.statSync(path);
  if (own.uid !== uid || own.gid !== gid) fs.chownSync(path, uid, gid);
  fs.chmodSync(path, mode & 0o777);
}
