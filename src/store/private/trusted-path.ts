import { accessSync, constants, readlinkSync, realpathSync, type Stats } from "node:fs";
import { homedir } from "node:os";
import { dirname, isAbsolute, join, parse, resolve, sep } from "node:path";
import { codeOf, linkStatOf } from "../../platform/files.js";
import { changingMode, takingOwnership } from "../../platform/shell.js";
import { storeError } from "../store-error.js";

/** As many as Linux follows. */
const MAX_LINKS = 40;
const STICKY = 0o1000;

/** Refuses what belongs to another user, or lets one in. Windows has neither owners nor modes in this sense. */
export function checkOwner(what: string, path: string, stat: Stats, mode: "600" | "700" | "go-w"): void {
  if (process.getuid === undefined) return;
  if (!isTrusted(stat)) {
    const about = { owner: stat.uid, isTree: mode === "700" };
    throw storeError(`${what} belongs to another user (uid ${stat.uid})`, undefined, takingOwnership(path, about));
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
  let isShared = checkFolderOnWay(root, linkStatOf(root));
  let links = 0;
  for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
    const next = name === ".." ? dirname(at) : join(at, name);
    const stat = linkStatOf(next);
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
    isShared = checkFolderOnWay(at, linkStatOf(at));
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
    return codeOf(error) === "EROFS";
  }
}
