import { accessSync, constants, mkdtempSync, rmSync, type Stats, statfsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { isAgentAuthError } from "../../../errors.js";
import { codeOf, othersWithAccess } from "../../../platform/files.js";
import { changingMode, takingOwnership } from "../../../platform/shell.js";
import { readSandboxState } from "../../../profile/sandbox-state.js";
import { homeFolder } from "../../../profile/settings.js";
import { publishPrivateFile, reservePrivateFile } from "../../../store/private/published-file.js";
import { storeError } from "../../../store/store-error.js";
import { ACCESS_TEXT, accessOf } from "../../config/home-access.js";
import { groupThousands } from "../../output/value.js";
import { type CheckFinding, failed, ok, skipped, warning } from "./check.js";
import { type Checks, withHome } from "./subject.js";

const ELSEWHERE = "set AGENTAUTH_HOME to a folder that you can write to";
const OTHER_DISK = "set AGENTAUTH_HOME to a folder on a file system with hard links";
const FREE_SPACE = "free some disk space";
const PROBE = "probe";

/** Our folder, its disk, and what runs in it. */
export const HOME_CHECKS = {
  /** Whether the folder exists and only this user can access it. */
  home({ env, home: found }) {
    const { value: home, source } = found ?? { value: homeFolder(env), source: "" };
    const where = `${home} (${source})`;
    const stat = statOf(home);
    if (stat === undefined) return reportAbsent(where, home);
    if (!stat.isDirectory()) return failed(`${where} is not a folder`, "set AGENTAUTH_HOME to another path");
    return checkOwnership(where, home, stat);
  },

  writing: withHome(checkWriting),
  disk: withHome((home) => checkDisk(home)),

  /** Whether the sandbox runs; both results are ok. */
  sandbox({ home }) {
    const state = readSandboxState(home?.value);
    if (state === undefined) return ok("not running");
    return ok(`running at ${state.base_url} (process ${state.pid}); --profile sandbox uses it`);
  },
} satisfies Checks;

function reportAbsent(where: string, home: string): CheckFinding {
  const parent = nearestFolder(home);
  try {
    if (!statSync(parent).isDirectory())
      return failed(`${where} cannot be created: ${parent} is not a folder`, ELSEWHERE);
    accessSync(parent, constants.W_OK | constants.X_OK);
  } catch {
    return failed(`${where} does not exist, and ${parent} is not writable`, ELSEWHERE);
  }
  return ok(`${where}, does not exist yet: created on first use`);
}

function checkOwnership(where: string, home: string, stat: Stats): CheckFinding {
  const access = accessOf(stat);
  if (access === "private") return ok(where);
  if (access === "unchecked") return byAccessList(where, home);
  const found = `${where} ${ACCESS_TEXT[access]}`;
  if (access === "foreign") return failed(found, takingOwnership(home, { owner: stat.uid, isTree: true }));
  const repair = changingMode("700", home, stat.uid);
  // Other users with write access can replace the settings.
  return access === "writable" ? failed(found, repair) : warning(found, repair);
}

/** What the list of access of Windows says, which needs a program of the system. */
function byAccessList(where: string, home: string): CheckFinding {
  const others = othersWithAccess(home);
  if (others === undefined) return ok(`${where}; who can read it is not checked: its list of access cannot be read`);
  if (others.length === 0) return ok(`${where}, readable by you and the system alone`);
  return warning(`${where} can be read by other accounts: ${others.join(", ")}`, changingMode("700", home));
}

/**
 * The status of a path; undefined if nothing exists there.
 *
 * @throws `AgentAuthError` `store_failed` if the path cannot be examined
 */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return undefined;
    throw storeError(`${path} cannot be examined`, error, ELSEWHERE);
  }
}

function nearestFolder(path: string): string {
  let folder = path;
  while (statOf(folder) === undefined && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
}

/** Publishes a file twice under one name, as the store does, in a private folder that is removed afterwards. */
export function checkWriting(home: string): CheckFinding {
  if (statOf(home)?.isDirectory() !== true) return skipped("the folder does not exist yet");
  let folder: string | undefined;
  try {
    folder = mkdtempSync(join(home, ".doctor-"));
    const path = join(folder, "probe");
    const publish = () => publishPrivateFile(reservePrivateFile(path, PROBE.length), path, PROBE);
    if (!publish() || publish())
      return failed("a file can take the name of another one: logins could be lost", OTHER_DISK);
    const withoutLinks = "files can be written; there are no hard links, so each login is a folder";
    return ok(statSync(path).isFile() ? "files can be written and linked" : withoutLinks);
  } catch (error) {
    const code = codeOf(isAgentAuthError(error) ? error.cause : error);
    const isFull = code === "ENOSPC" || code === "EDQUOT";
    return failed(`${home} is not writable (${code ?? error})`, isFull ? FREE_SPACE : ELSEWHERE);
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

const MEBIBYTE = 2 ** 20;

/** Whether the disk has space for the store: a few files of some kilobytes. */
export function checkDisk(
  home: string,
  read: (path: string) => Record<"bavail" | "bsize" | "blocks", number> = statfsSync,
): CheckFinding {
  const { bavail, bsize, blocks } = read(nearestFolder(home));
  // Some file systems report no size.
  if (blocks === 0) return ok("this file system does not report its free space");
  const free = bavail * bsize;
  const space = `${groupThousands(Math.floor(free / MEBIBYTE))} MiB are free`;
  if (free < MEBIBYTE) return failed(`the disk is full: ${space}`, FREE_SPACE);
  return free < 50 * MEBIBYTE ? warning(space, FREE_SPACE) : ok(space);
}
