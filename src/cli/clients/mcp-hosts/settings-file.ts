import {
  accessSync,
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
} from "node:fs";
import platformPath, { dirname } from "node:path";
import { AgentAuthError, usageError } from "../../../errors.js";
import { linkStatOf } from "../../../platform/files.js";
import { changingMode, moveAway, removeCommand } from "../../../platform/shell.js";
import { syncFolder, temporaryPath, writeSynced } from "../../../store/private/private-file.js";
import { storeError } from "../../../store/store-error.js";

/** Far more than settings need; a host's own file may also have its history. */
const MAX_BYTES = 8 * 1024 * 1024;
const BOM = "\uFEFF";

/** A host's file as it was read. */
export interface HostFile {
  /** As the host names it. */
  readonly path: string;
  /** The file itself, where the path leads over symbolic links. */
  readonly target: string;
  /** Without a byte order mark; empty where there is no file yet. */
  readonly text: string;
  /** What was read; undefined where there is no file yet. */
  readonly original: { readonly bytes: Buffer; readonly stat: Stats } | undefined;
  /** Whether the file belongs to a project, and so to everyone who works on it. */
  readonly isShared: boolean;
}

/**
 * Reads the file of a host; a missing one is empty.
 *
 * @param project the folder that the file must not lead out of
 * @throws `AgentAuthError` `usage` for what is no text file, `store_failed` for what cannot be read
 */
export function readHostFile(path: string, project?: string): HostFile {
  const target = targetOf(path, project);
  const original = readOriginal(path, target);
  const isShared = project !== undefined;
  if (original === undefined) return { path, target, text: "", original, isShared };
  return { path, target, text: textOf(path, original.bytes), original, isShared };
}

/**
 * Replaces the file in one step: a reader finds the old or the new content, also after a crash. The old content is stored
 * beside it first, and never in the place of an earlier one.
 *
 * @returns the path of the backup; undefined where there was no file
 * @throws `AgentAuthError` `store_failed`; the file is as it was
 */
export function writeHostFile(file: HostFile, text: string): string | undefined {
  const { path, target, original, isShared } = file;
  try {
    if (original === undefined) {
      mkdirSync(dirname(target), { recursive: true, ...(!isShared && { mode: 0o700 }) });
      replace(target, Buffer.from(text), isShared ? 0o666 : 0o600, () => checkUnchanged(file));
      return undefined;
    }
    checkWritable(path, target, original.stat);
    const backup = storeBackup(target, original);
    const bom = original.bytes.toString("utf8", 0, 3) === BOM ? BOM : "";
    replace(target, Buffer.from(bom + text), original.stat, () => checkUnchanged(file));
    return backup;
  } catch (cause) {
    if (cause instanceof AgentAuthError) throw cause;
    throw storeError(`the file ${path} cannot be written`, cause, "the file is as it was; check its folder");
  }
}

/** The first backup with the same bytes, or else a new one under the first free name. */
function storeBackup(target: string, { bytes, stat }: NonNullable<HostFile["original"]>): string {
  for (let number = 0; ; number++) {
    const path = `${target}.agentauth.bak${number === 0 ? "" : `.${number}`}`;
    const present = linkStatOf(path);
    if (present === undefined) {
      replace(path, bytes, stat, () => checkFree(path));
      return path;
    }
    if (present.isFile() && present.size === bytes.length && readFileSync(path).equals(bytes)) return path;
  }
}

function checkFree(path: string): void {
  if (linkStatOf(path) === undefined) return;
  throw storeError(`another program has written the backup ${path}`, undefined, "run this again");
}

/** A file in a project may be a link that its author chose: it must not lead to the user's own files. */
function targetOf(path: string, project: string | undefined): string {
  try {
    const existing = existingPart(path);
    const target = realpathSync.native(existing) + path.slice(existing.length);
    if (project === undefined || !isOutside(realpathSync.native(project), target)) return target;
    const message = `the file ${path} leads out of the project, to ${target}`;
    throw usageError(message, `remove the link: ${removeCommand(path)}`);
  } catch (cause) {
    if (cause instanceof AgentAuthError) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ELOOP") {
      throw usageError(`the file ${path} is a symbolic link that leads nowhere`, `remove it: ${removeCommand(path)}`);
    }
    throw storeError(`the file ${path} cannot be read`, cause);
  }
}

/** Whether a path leads out of a folder; on Windows also to another drive. Both paths are resolved. */
export function isOutside(
  folder: string,
  target: string,
  { relative, isAbsolute, sep }: Pick<typeof platformPath, "relative" | "isAbsolute" | "sep"> = platformPath,
): boolean {
  const inside = relative(folder, target);
  return inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside);
}

/** The longest part of a path that exists; a link that leads nowhere exists. */
function existingPart(path: string): string {
  const parent = dirname(path);
  if (parent === path || linkStatOf(path) !== undefined) return path;
  return existingPart(parent);
}

function readOriginal(path: string, target: string): HostFile["original"] {
  let fd: number;
  try {
    // A FIFO would block forever.
    fd = openSync(target, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw storeError(`the file ${path} cannot be read`, cause);
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) {
      const what = stat.isDirectory() ? "is a folder" : "is not an ordinary file";
      throw usageError(`${path} ${what}, not the host's settings`, `move it away: ${moveAway(path, `${path}.old`)}`);
    }
    if (stat.size > MAX_BYTES) {
      throw usageError(
        `the file ${path} has ${stat.size} bytes; at most ${MAX_BYTES} are read`,
        "add the entry by hand",
      );
    }
    return { bytes: readFileSync(fd), stat };
  } finally {
    closeSync(fd);
  }
}

function textOf(path: string, bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw usageError(`the file ${path} is not UTF-8 text`, "save it as UTF-8");
  }
}

/** A rename would also replace a read-only file. */
function checkWritable(path: string, target: string, { mode }: Stats): void {
  try {
    accessSync(target, constants.W_OK);
  } catch (cause) {
    throw storeError(`the file ${path} cannot be written`, cause, changingMode("u+w", path));
  }
  if ((mode & 0o222) === 0) {
    throw storeError(`the file ${path} is read-only`, undefined, changingMode("u+w", path));
  }
}

/** The host may have written its file since it was read. */
function checkUnchanged({ path, target, original }: HostFile): void {
  const now = readOriginal(path, target);
  const isSame = now === undefined || original === undefined ? now === original : now.bytes.equals(original.bytes);
  if (!isSame) throw storeError(`the file ${path} was changed by another program`, undefined, "run this again");
}

/** @param like the file to take mode and owner from, or the mode of a new file, from which the umask takes away */
function replace(path: string, content: Buffer, like: Stats | number, check: () => void): void {
  const temporary = temporaryPath(path);
  try {
    writeSynced(temporary, content, constants.O_CREAT | constants.O_EXCL, typeof like === "number" ? like : 0o600);
    if (typeof like !== "number") keepModeAndOwner(temporary, like);
    check();
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

/** The owner differs where an administrator runs this for a user. */
function keepModeAndOwner(path: string, { mode, uid, gid }: Stats): void {
  const own = statSync(path);
  if (own.uid !== uid || own.gid !== gid) chownSync(path, uid, gid);
  chmodSync(path, mode & 0o777);
}
