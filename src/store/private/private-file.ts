import {
  accessSync,
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  writeSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, parse, resolve, sep } from "node:path";
import { type AgentAuthError, isAgentAuthError } from "../../errors.js";
import {
  changingMode,
  errorCode,
  isContention,
  keepToUser,
  moveAway,
  randomHex,
  retryWhileBusy,
  system,
  takingOwnership,
  tryLstat,
  tryStat,
} from "../../platform.js";
import { storeError } from "../store-error.js";

/** As many as Linux follows. */
const MAX_LINKS = 40;
const STICKY = 0o1000;

/** Refuses what belongs to another user, or lets one in. Windows has neither owners nor modes in this sense. */
export function checkOwner(what: string, path: string, stat: Stats, mode: "600" | "700" | "go-w"): void {
  if (process.getuid === undefined) return;
  if (!isTrusted(stat)) {
    const details = { owner: stat.uid, isTree: mode === "700" };
    throw storeError(`${what} belongs to another user (uid ${stat.uid})`, undefined, takingOwnership(path, details));
  }
  if ((stat.mode & (mode === "go-w" ? 0o022 : 0o077)) === 0) return;
  const can = mode === "go-w" ? "written" : "read";
  const shown = (stat.mode & 0o7777).toString(8).padStart(4, "0");
  const owner = stat.uid === process.getuid() ? "you" : "root";
  throw storeError(
    `${what} can be ${can} by others (mode ${shown}, owner: ${owner})`,
    undefined,
    changingMode(mode, path, stat.uid),
  );
}

/** Whether only this user or root can give something another content and mode. */
function isTrusted({ uid }: Stats): boolean {
  return uid === 0 || uid === process.getuid?.();
}

/**
 * Follows a path from the root on, through links, and refuses it where another user can lead it elsewhere: by a folder on
 * the way that another user owns or can write, or by a link that another user has put into a shared one. What was checked
 * cannot change after that. As for OpenSSH, the folders above the user's own one are those of the system.
 *
 * @returns the path without links; the last parts of it may not exist
 * @throws `AgentAuthError` `store_failed`, with the command that repairs it; an error of the system where it cannot be followed
 */
export function resolveTrusted(path: string): string {
  const full = resolve(path);
  if (process.getuid === undefined) return full;
  const { root } = parse(full);
  const rest = full.split(sep).filter(Boolean);
  let at = root;
  let isShared = checkFolderOnWay(root, tryLstat(root));
  let links = 0;
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    const next = name === ".." ? dirname(at) : join(at, name);
    const stat = tryLstat(next);
    if (stat === undefined) return join(next, ...rest);
    if (isShared && name !== "..") checkOwner(next, next, { ...stat, mode: 0 } as Stats, "go-w");
    if (stat.isSymbolicLink()) {
      if (++links > MAX_LINKS) throw Object.assign(new Error("too many links"), { code: "ELOOP" });
      const target = readlinkSync(next);
      rest.unshift(...target.split(sep).filter((part) => part !== "" && part !== "."));
      if (!isAbsolute(target)) continue;
      at = root;
    } else if (stat.isDirectory()) at = next;
    // A file is checked by the handle that it is read from; below it there is nothing.
    else return join(next, ...rest);
    isShared = checkFolderOnWay(at, tryLstat(at));
  }
  return at;
}

/**
 * Refuses a folder if another user can lead a path through it elsewhere. In a sticky folder, such as /tmp, others can add
 * names, and change none of this user's.
 *
 * @returns whether others can add names
 */
function checkFolderOnWay(folder: string, stat: Stats | undefined): boolean {
  if (stat === undefined) return false;
  const isSafe = isTrusted(stat) && (stat.mode & 0o022) === 0;
  if (isSafe || isAboveUser(folder)) return false;
  if (isTrusted(stat)) {
    // A volume of Kubernetes has the mode 0777, and is mounted read-only.
    if (isReadOnly(folder)) return false;
    if ((stat.mode & STICKY) !== 0) return true;
  }
  checkOwner(`the folder ${folder}`, folder, stat, "go-w");
  return false;
}

function isAboveUser(folder: string): boolean {
  try {
    const own = realpathSync(homedir());
    return own !== folder && own.startsWith(folder === sep ? sep : folder + sep);
  } catch {
    // A user without a folder has none to trust.
    return false;
  }
}

function isReadOnly(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return false;
  } catch (error) {
    return errorCode(error) === "EROFS";
  }
}

const MAX_BYTES = 1024 * 1024;
/** An object, because Node copies its defaults for each call with the name alone. */
const UTF8 = { encoding: "utf8" } as const;
/** How network and shared folders answer that they cannot flush a folder. */
const NO_SYNC = new Set(["EINVAL", "ENOTSUP", "EOPNOTSUPP", "EPERM", "EISDIR", "ENOSYS"]);

/** The file in a folder that was published in place of a file. */
const CONTENT = "content";

/** Creates a folder that only its owner can enter. */
export function makePrivateFolder(path: string): void {
  try {
    const made = makeFolders(path);
    if (made !== undefined) keepToUser(made);
  } catch (cause) {
    throw storeError(
      `the folder ${path} cannot be created`,
      cause,
      "set AGENTAUTH_HOME to a folder that you can write to",
    );
  }
}

/** Removes folders that are empty, each before the one above it. One that stays does no harm. */
export function removeEmptyFolders(...paths: string[]): void {
  try {
    for (const path of paths) rmdirSync(path);
  } catch {
    // It holds something, or another process has removed it.
  }
}

/**
 * Not `recursive: true`: where a file system accepts no folders, such as /proc, Node would retry forever.
 *
 * @returns the first folder that was missing; undefined when there was none
 */
function makeFolders(path: string): string | undefined {
  if (tryStat(path)?.isDirectory()) return undefined;
  const parent = dirname(path);
  const above = parent === path ? undefined : makeFolders(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it just now.
    if (!tryStat(path)?.isDirectory()) throw error;
  }
  return above ?? path;
}

/**
 * Refuses a folder of secrets that another user owns or can enter, or that is a link; a missing one is accepted.
 *
 * @returns whether it is there
 * @throws `AgentAuthError` `store_failed`, with the command that repairs it
 */
export function checkPrivateFolder(path: string): boolean {
  let stat: Stats | undefined;
  try {
    stat = retryWhileBusy(() => tryLstat(path));
  } catch (cause) {
    throw storeError(`the folder ${path} cannot be entered`, cause);
  }
  if (stat === undefined) return false;
  if (!stat.isDirectory()) throw notFolderError(path, stat);
  checkOwner(`the folder ${path}`, path, stat, "700");
  return true;
}

function notFolderError(path: string, stat: Stats): AgentAuthError {
  const what = stat.isSymbolicLink() ? "is a symbolic link" : "is not a folder";
  return storeError(`${path} ${what}`, undefined, `move it away: ${moveAway(path, `${path}.old`)}`);
}

/**
 * Refuses a folder in which, or in one above it, another user can replace what this user has made. A link on the way is
 * how a user moves it elsewhere.
 *
 * @returns whether it is there
 * @throws `AgentAuthError` `store_failed`, with the command that repairs it
 */
export function checkTrustedFolder(path: string): boolean {
  const failure = `the folder ${path} cannot be entered`;
  const folder = follow(path, failure);
  let stat: Stats | undefined;
  try {
    stat = tryStat(folder);
  } catch (cause) {
    throw storeError(failure, cause);
  }
  if (stat?.isDirectory() === false) throw notFolderError(path, stat);
  return stat !== undefined;
}

/**
 * Checks a folder, those above it, in which a user who can write can replace it, and folders that lie in one another
 * below it.
 *
 * @returns whether the innermost one is there
 */
export function checkPrivateFolders(path: string, ...below: string[]): boolean {
  if (!checkTrustedFolder(dirname(path)) || !checkPrivateFolder(path)) return false;
  return below.every((_, at) => checkPrivateFolder(join(path, ...below.slice(0, at + 1))));
}

/** {@link resolveTrusted} with an error of the store for each failure. */
function follow(path: string, failure: string): string {
  try {
    return retryWhileBusy(() => resolveTrusted(path));
  } catch (cause) {
    throw isAgentAuthError(cause) ? cause : storeError(failure, cause);
  }
}

/** The names of the files in a folder; none when there is no such folder. */
export function listFolder(path: string): string[] {
  try {
    return retryWhileBusy(() => readdirSync(path));
  } catch (cause) {
    if (errorCode(cause) === "ENOENT") return [];
    throw storeError(`the folder ${path} cannot be read`, cause);
  }
}

/**
 * Reads a file that holds secrets: an ordinary file of this user that no other user can read.
 *
 * @returns undefined when there is no such file
 * @throws `AgentAuthError` `store_failed`, with the command that repairs it
 */
export function readPrivateFile(path: string, maxBytes = MAX_BYTES): string | undefined {
  return read(path, maxBytes, undefined);
}

/** The same for a file that may be published as a folder, as file systems without hard links need it. */
export function readPublishedFile(path: string): string | undefined {
  return read(path, MAX_BYTES, CONTENT);
}

/**
 * Reads a file of settings, which may be a link, and which others may read: only this user and root can change it, its
 * name, and each link and folder on the way to it. It is opened once, and checked before a byte of it is read.
 *
 * @returns undefined when there is no such file
 * @throws `AgentAuthError` `store_failed`, with the command that repairs it
 */
export function readTrustedFile(path: string, what = `the file ${path}`): string | undefined {
  const target = follow(path, `${what} cannot be read`);
  const fd = openForReading(target, what);
  return fd === undefined ? undefined : readOpened(fd, target, { what, mode: "go-w", maxBytes: MAX_BYTES });
}

/** Writes a file of settings: atomically and durably, and where it is a link, the file that it leads to. */
export function writeTrustedFile(path: string, content: string): void {
  writePrivateFile(follow(path, `the file ${path} cannot be written`), content);
}

function read(path: string, maxBytes: number, inFolder: string | undefined): string | undefined {
  const what = `the file ${path}`;
  const fd = openForReading(path, what);
  if (fd === undefined) return undefined;
  if (inFolder !== undefined) {
    const stat = fstatSync(fd);
    if (stat.isDirectory()) {
      closeSync(fd);
      const text = read(join(path, inFolder), maxBytes, undefined);
      // A folder that is removed at this moment loses its name before its content; another one is not ours.
      if (text !== undefined || tryLstat(path)?.ino !== stat.ino) return text;
      throw notOrdinaryError(what);
    }
  }
  return readOpened(fd, path, { what, mode: "600", maxBytes });
}

/** @returns undefined when there is no such file */
function openForReading(path: string, what: string): number | undefined {
  try {
    // A link could be changed between a check and the read; a FIFO would block forever.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    return retryWhileBusy(() => openSync(path, flags));
  } catch (cause) {
    const code = errorCode(cause);
    if (code === "ENOENT") return undefined;
    const reason = code === "ELOOP" ? "is a symbolic link" : "cannot be read";
    throw storeError(`${what} ${reason}`, cause, inUse(cause));
  }
}

function readOpened(
  fd: number,
  path: string,
  { what, mode, maxBytes }: { what: string; mode: "600" | "go-w"; maxBytes: number },
): string {
  try {
    const stat = checkOpened(fd, path, what, mode);
    if (stat.size > maxBytes) throw storeError(`${what} is larger than ${maxBytes} bytes`, undefined);
    return readFileSync(fd, UTF8);
  } finally {
    closeSync(fd);
  }
}

/** Refuses an open file that is not an ordinary one, that has another name (a secret), or that others can get at. */
export function checkOpened(fd: number, path: string, what: string, mode: "600" | "go-w" = "600"): Stats {
  const stat = fstatSync(fd);
  if (!stat.isFile()) throw notOrdinaryError(what);
  if (mode === "600" && stat.nlink > 1 && hasForeignName(path, fd)) {
    const hint = "put the secret into a file of its own";
    throw storeError(`${what} has another name too (a hard link)`, undefined, hint);
  }
  checkOwner(what, path, stat, mode);
  return stat;
}

function notOrdinaryError(what: string): AgentAuthError {
  return storeError(`${what} is not an ordinary file`, undefined);
}

/** Whether a file has a name beside its own and the temporary one of a save that is in progress or was killed. */
function hasForeignName(path: string, fd: number): boolean {
  const folder = dirname(path);
  const { ino, dev } = fstatSync(fd);
  const temporary = readdirSync(folder)
    .filter((name) => name.endsWith(".tmp"))
    .map((name) => tryLstat(join(folder, name)))
    .filter((stat) => stat?.ino === ino && stat.dev === dev).length;
  // Counted again: a save that ends at this moment removes its temporary name.
  return fstatSync(fd).nlink > 1 + temporary;
}

/** Gets the path of a file that held nothing, and the name that it has now. */
export type OnEmptyFile = (path: string, kept: string) => void;

/**
 * Gives a file without a byte, or of NULs alone, another name: a crash of the system leaves such files.
 *
 * @param onEmpty without it, no file is renamed
 * @returns whether the file counts as missing
 */
export function moveEmptyAway(path: string, text: string, onEmpty: OnEmptyFile | undefined): boolean {
  if (onEmpty === undefined || !/^\0*$/.test(text)) return false;
  const broken = `${path}.broken`;
  const kept = tryLstat(broken) === undefined ? broken : temporaryPath(broken).replace(/\.tmp$/, "");
  try {
    retryWhileBusy(() => renameSync(path, kept));
  } catch (cause) {
    // Another process was first.
    if (errorCode(cause) === "ENOENT") return true;
    throw storeError(`the file ${path} holds nothing, and cannot be renamed`, cause);
  }
  onEmpty(path, kept);
  return true;
}

function inUse(cause: unknown): string | undefined {
  return isContention(cause)
    ? "another program, such as a virus scanner or a backup, may have it open: try again, or check who may write there"
    : undefined;
}

/** A unique path beside a file, for its content before it gets its name. */
export function temporaryPath(path: string): string {
  return `${path}.${randomHex(6)}.tmp`;
}

/** Writes and flushes a file, in place, so that reserved blocks are reused. */
export function writeSynced(path: string, content: string | Buffer, flags: number, mode = 0o600): void {
  const fd = retryWhileBusy(() => openSync(path, constants.O_WRONLY | constants.O_NOFOLLOW | flags, mode));
  try {
    const bytes = Buffer.from(content);
    // A disk that fills up accepts a part first.
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, at);
    ftruncateSync(fd, bytes.length);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Writes a file that only this user can read: atomically and durably. */
export function writePrivateFile(path: string, content: string): void {
  const folder = dirname(path);
  makePrivateFolder(folder);
  const temporary = temporaryPath(path);
  try {
    writeSynced(temporary, content, constants.O_CREAT | constants.O_EXCL);
    retryWhileBusy(() => renameSync(temporary, path));
  } catch (cause) {
    discardFile(temporary);
    throw storeError(`the file ${path} cannot be written`, cause, inUse(cause));
  }
  attempt(() => syncFolder(folder));
}

/**
 * Writes a file that only this user can read, under a name that is free.
 *
 * @throws `AgentAuthError` `store_failed` where something has the name, a link too, which stays as it is; and where another
 * user can replace the file
 */
export function createPrivateFile(path: string, content: string): void {
  checkTrustedFolder(dirname(path));
  try {
    writeSynced(path, content, constants.O_CREAT | constants.O_EXCL);
  } catch (cause) {
    if (errorCode(cause) !== "EEXIST") discardFile(path);
    throw storeError(`the file ${path} cannot be written`, cause, inUse(cause));
  }
  attempt(() => syncFolder(dirname(path)));
}

/**
 * Flushes a folder, unless another process has removed it: a new name is on the disk only then. Windows cannot do that, nor
 * can many network folders.
 */
export function syncFolder(folder: string): void {
  if (system.name === "win32") return;
  let fd: number | undefined;
  try {
    fd = openSync(folder, constants.O_RDONLY);
    fsyncSync(fd);
  } catch (cause) {
    const code = errorCode(cause) ?? "";
    if (fd === undefined ? code !== "ENOENT" : !NO_SYNC.has(code)) throw cause;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Removes a file; does nothing when there is none. */
export function removeFile(path: string): void {
  try {
    erase(path);
  } catch (cause) {
    throw storeError(`the file ${path} cannot be removed`, cause, inUse(cause));
  }
}

/** Removes a file that does no harm if it stays. @returns whether it is gone */
export function discardFile(path: string): boolean {
  return attempt(() => erase(path));
}

/** Removes a file, or a folder that was published in place of one: its name first, which is never that of an empty folder. */
function erase(path: string): void {
  try {
    retryWhileBusy(() => rmSync(path, { force: true }));
  } catch (cause) {
    // Not a folder that another program made.
    if (errorCode(cause) !== "ERR_FS_EISDIR" || listFolder(path).some((name) => name !== CONTENT)) throw cause;
    const gone = temporaryPath(path);
    try {
      retryWhileBusy(() => renameSync(path, gone));
    } catch (error) {
      if (errorCode(error) === "ENOENT") return;
      throw error;
    }
    attempt(() => retryWhileBusy(() => rmSync(gone, { recursive: true, force: true })));
  }
}

/** Does what must not hide the result of a save. @returns whether it succeeded */
export function attempt(work: () => void): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}

/** How file systems answer that they have no hard links: EISDIR on Windows for exFAT, EACCES on Android. */
const NO_LINKS = new Set(["EPERM", "EACCES", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EISDIR"]);
/** How systems answer that a folder is not empty, or that the name belongs to a file. */
const TAKEN = new Set(["EEXIST", "ENOTEMPTY", "ENOTDIR"]);

/**
 * Creates a temporary file beside `path`, with `bytes` allocated on the disk, for {@link publishPrivateFile}.
 *
 * @param like a file that was published here: where that needed a folder, the space for one is reserved too
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
    const code = errorCode(cause);
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
    const code = errorCode(cause);
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
    if (errorCode(cause) === "ENOENT") return true;
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
    if (isContention(cause) || !NO_LINKS.has(errorCode(cause) ?? "")) throw cause;
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
      const isTaken = TAKEN.has(errorCode(cause) ?? "") || (isContention(cause) && isFolder(path));
      throw isTaken ? Object.assign(new Error("the name is taken", { cause }), { code: "EEXIST" }) : cause;
    }
  });
}

function isFolder(path: string): boolean {
  return tryStat(path)?.isDirectory() === true;
}
