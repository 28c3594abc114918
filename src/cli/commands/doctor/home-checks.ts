import {
  accessSync,
  constants,
  linkSync,
  mkdtempSync,
  rmSync,
  type Stats,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { platform } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { shellWord } from "../../../redact.js";
import { storeError } from "../../../store/store-error.js";
import { ACCESS_TEXT, accessOf } from "../../config/home-access.js";
import type { Sourced } from "../../runtime/settings.js";
import { type Finding, failed, ok, skipped, warning } from "./check.js";

type Env = Readonly<Record<string, string | undefined>>;

const ELSEWHERE = "set AGENTAUTH_HOME to a folder that you can write to";

/** What decided where our files are; the order is that of `homeFolder`. */
export function homeSource(env: Env, system: NodeJS.Platform = platform()): string {
  const variables: Partial<Record<NodeJS.Platform, string[]>> = { win32: ["APPDATA"], darwin: [] };
  const candidates = ["AGENTAUTH_HOME", ...(variables[system] ?? ["XDG_CONFIG_HOME"])];
  return candidates.find((name) => env[name]) ?? "default";
}

/** Whether the folder is there, and whether it is this user's alone. */
export function checkHome({ value: home, source }: Sourced): Finding {
  const where = `${home} (${source})`;
  if (!isAbsolute(home)) {
    return failed(`${where} is not an absolute path: it is another folder wherever you are`, `give ${source} whole`);
  }
  const stat = lookAt(home);
  if (stat === undefined) return absent(where, home);
  if (!stat.isDirectory()) return failed(`${where} is not a folder`, "set AGENTAUTH_HOME to another path");
  return ownership(where, home, stat) ?? ok(where);
}

function absent(where: string, home: string): Finding {
  const parent = nearestFolder(home);
  try {
    if (!statSync(parent).isDirectory()) return failed(`${where} cannot be made: ${parent} is not a folder`, ELSEWHERE);
    accessSync(parent, constants.W_OK | constants.X_OK);
  } catch {
    return failed(`${where} is not there, and ${parent} cannot be written in`, ELSEWHERE);
  }
  return ok(`${where}, not there yet: made when something is first kept`);
}

function ownership(where: string, home: string, stat: Stats): Finding | undefined {
  const access = accessOf(stat);
  if (access === "private") return undefined;
  const found = `${where} ${ACCESS_TEXT[access]}`;
  if (access === "foreign") return failed(found, `chown "$USER" ${shellWord(home)}`);
  const repair = `chmod 700 ${shellWord(home)}`;
  // Whoever can write there can put other settings in the place of these.
  return access === "writable" ? failed(found, repair) : warning(found, repair);
}

/**
 * What is at a path; undefined where nothing is, or nothing can be.
 *
 * @throws `AgentAuthError` `store_failed` where it cannot be told
 */
function lookAt(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return undefined;
    throw storeError(`${path} cannot be examined`, error, ELSEWHERE);
  }
}

function nearestFolder(path: string): string {
  let folder = path;
  while (lookAt(folder) === undefined && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
}

/**
 * Writes a file and gives it a second name, as the store does, in a private folder that is removed again.
 *
 * @param link is `linkSync`, unless a test has another
 */
export function checkWriting(home: string, link: (from: string, to: string) => void = linkSync): Finding {
  if (lookAt(home)?.isDirectory() !== true) return skipped("the folder does not exist yet");
  let folder: string | undefined;
  try {
    folder = mkdtempSync(join(home, ".doctor-"));
    const path = join(folder, "probe");
    writeFileSync(path, "probe", { mode: 0o600, flag: "wx" });
    return linkFinding(path, link);
  } catch (error) {
    return failed(`${home} cannot be written in (${codeOf(error)})`, writingHint(codeOf(error)));
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

function linkFinding(path: string, link: (from: string, to: string) => void): Finding {
  try {
    link(path, `${path}-2`);
    if (statSync(path).nlink === 2) return ok("files can be written and linked");
  } catch (error) {
    return failed(`there are no hard links here (${codeOf(error)}), which logins are kept with`, LINKS_HINT);
  }
  return failed("a hard link is no second name here, and logins are kept with hard links", LINKS_HINT);
}

const LINKS_HINT = "set AGENTAUTH_HOME to a folder on a file system that has hard links";

function writingHint(code: string): string {
  return code === "ENOSPC" || code === "EDQUOT" ? "make room on the disk" : ELSEWHERE;
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}

/** The part of `statfs` that tells how much room there is. */
export type ReadRoom = (path: string) => { bavail: number; bsize: number; blocks: number };

const MEBIBYTE = 2 ** 20;

/** Whether the disk has room for what is to be kept: a few files of some kilobytes. */
export function checkDisk(home: string, read: ReadRoom = statfsSync): Finding {
  const { bavail, bsize, blocks } = read(nearestFolder(home));
  // Some file systems have no size.
  if (blocks === 0) return ok("this file system does not tell its free space");
  const free = bavail * bsize;
  const told = `${Math.floor(free / MEBIBYTE).toLocaleString("en")} MiB are free`;
  if (free < MEBIBYTE) return failed(`the disk is full: ${told}`, "make room on the disk");
  return free < 50 * MEBIBYTE ? warning(told, "make room on the disk") : ok(told);
}
