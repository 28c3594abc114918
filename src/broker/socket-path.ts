/** The path of a Unix socket: its folder, and who may enter it. */
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  type Stats,
} from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { AgentAuthError } from "../errors.js";
import { codeOf } from "../platform/files.js";
import { sharingFolder } from "../platform/shell.js";
import { quote, shellWord } from "../redact.js";
import { checkPrivateFolder, makePrivateFolder } from "../store/private/private-file.js";
import { storeError } from "../store/store-error.js";
import { type BrokerPolicy, type ListenAddress, listenAddress } from "./policy.js";

/** Of a Unix socket; on Linux it is 107. */
const MAX_PATH = 103;
/** The group passes through the folder, and does not see what is in it. */
const SHARED_MODE = 0o710;
const SET_GROUP_ID = 0o2000;

/** The group that uses a socket in the folder of an address; undefined where each socket there is for its user alone. */
export function groupOfFolder({ clients }: BrokerPolicy, address: ListenAddress): number | undefined {
  if (!("path" in address)) return undefined;
  const folder = dirname(address.path);
  return Object.values(clients).find(({ listen, socketGroup }) => {
    const other = listenAddress(listen);
    return socketGroup !== undefined && other !== undefined && "path" in other && dirname(other.path) === folder;
  })?.socketGroup;
}

/** Makes the folder, checks it, and removes the socket of a broker that has died. */
export async function prepareSocket(path: string, listen: string, group: number | undefined): Promise<void> {
  // Node would cut it off, and make the socket in another folder.
  if (Buffer.byteLength(path) > MAX_PATH) throw listenError(listen, `has a path of more than ${MAX_PATH} bytes`);
  const folder = dirname(path);
  if (group !== undefined) shareFolder(folder, group);
  else {
    makePrivateFolder(folder);
    checkPrivateFolder(folder);
  }
  const before = lstatSync(path, { throwIfNoEntry: false });
  if (before === undefined) return;
  if (!before.isSocket()) throw listenError(listen, "is a file that is no socket");
  const isAlive = await new Promise<boolean>((resolve) => {
    const probe = connect(path, () => resolve(true)).once("error", () => resolve(false));
    probe.once("connect", () => probe.destroy());
  });
  if (isAlive) throw listenError(listen, "is in use by another broker");
  rmSync(path);
}

/**
 * The path of a listening Unix socket that the parent process has opened. Its mode keeps other users out, as that of a socket
 * of our own does: by default systemd lets everyone in.
 */
export function pathOfInherited(fd: number, listen: string): string {
  const { ino } = fstatSync(fd);
  // Num: RefCount Protocol Flags Type St Inode Path
  const lines = readFileSync("/proc/net/unix", "utf8").split("\n");
  const path = lines.map((line) => line.split(" ").filter(Boolean)).find((fields) => fields[6] === String(ino))?.[7];
  if (path === undefined || !path.startsWith("/")) throw listenError(listen, "is no Unix socket with a path");
  const { mode, uid } = lstatSync(path);
  if (uid !== 0 && uid !== process.getuid?.())
    throw storeError(
      `the socket ${path} belongs to another user`,
      undefined,
      "SocketUser= of its unit names its owner",
    );
  if ((mode & 0o002) !== 0)
    throw storeError(`the socket ${path} is open to all users`, undefined, "set SocketMode=0600 or 0660 in its unit");
  return path;
}

/** Lets a group use a socket, whose folder no other user can change. */
export function shareSocket(path: string, group: number): void {
  lchownSync(path, -1, group);
  chmodSync(path, 0o660);
}

/**
 * Makes a folder that a group can pass through. One that is there already may have other users, and stays as it is: it has
 * to be right. Both are judged by handle, since a path may lead elsewhere a moment later.
 */
function shareFolder(folder: string, group: number): void {
  const parent = dirname(folder);
  makePrivateFolder(parent);
  withFolder(parent, 0, (stat) => {
    // Where others can write, one can put another folder in the place of this one, unless only its owner can rename it.
    if ((!isOurs(stat) && stat.uid !== 0) || ((stat.mode & 0o022) !== 0 && (stat.mode & 0o1000) === 0))
      throw storeError(`the folder ${parent} can be changed by others`, undefined, "use a folder in one of yours");
  });
  const isNew = makeOne(folder);
  withFolder(folder, constants.O_NOFOLLOW, (stat, fd) => {
    const mode = stat.mode & 0o7777;
    const [path, shared] = [shellWord(folder), shellWord(join(folder, "agentauth"))];
    if (!isOurs(stat))
      throw storeError(`the folder ${folder} belongs to another user`, undefined, "use a folder of your own");
    if (isNew && (mode & ~SET_GROUP_ID) === 0o700) {
      fchownSync(fd, -1, group);
      fchmodSync(fd, SHARED_MODE);
    } else if ((mode & 0o022) !== 0)
      throw storeError(
        `the folder ${folder} can be written by others`,
        undefined,
        `use a folder of its own: mkdir -m 710 ${shared} && chgrp ${group} ${shared}`,
      );
    else if ((mode & ~SET_GROUP_ID) !== SHARED_MODE || stat.gid !== group)
      throw storeError(
        `the folder ${folder} is not open to the group ${group} alone`,
        undefined,
        sharingFolder(path, group),
      );
  });
}

/** @returns false if there is something already */
function makeOne(folder: string): boolean {
  try {
    mkdirSync(folder, { mode: 0o700 });
    return true;
  } catch (cause) {
    if (codeOf(cause) === "EEXIST") return false;
    throw storeError(`the folder ${folder} cannot be created`, cause);
  }
}

function withFolder(folder: string, flags: number, work: (stat: Stats, fd: number) => void): void {
  let fd: number | undefined;
  try {
    fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | flags);
    work(fstatSync(fd), fd);
  } catch (cause) {
    if (cause instanceof AgentAuthError) throw cause;
    const isLink = lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink() === true;
    const what = isLink ? "is a symbolic link" : "cannot be shared";
    throw storeError(`the folder ${folder} ${what}`, cause, isLink ? "name the folder that it leads to" : undefined);
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function isOurs({ uid }: Stats): boolean {
  return uid === process.getuid?.();
}

/** The error for an address that cannot be used. */
export function listenError(listen: string, what: string, cause?: unknown): AgentAuthError {
  return new AgentAuthError("usage", `the address ${quote(listen)} ${what}`, {
    class: "usage",
    hint: "for example unix:/run/user/1000/agentauth/agent.sock",
    cause,
  });
}
