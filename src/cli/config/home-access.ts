import { chmodSync, existsSync, lstatSync, readdirSync, type Stats } from "node:fs";
import { join } from "node:path";
import { orUndefined } from "../../errors.js";
import { type Env, system, tryStat } from "../../platform.js";
import { findHome } from "../../profile/settings.js";
import { GRANTS } from "../../store/file/file-grants.js";

/** Who can get at a folder: this user alone, not known, others too, or a user it belongs to who is not this one. */
export type FolderAccess = "private" | "unchecked" | "readable" | "writable" | "foreign" | "absent";

/** Who can get at a folder, by its owner and mode. Windows has lists of access in their place, which only `doctor` reads. */
export function classifyAccess({ uid, mode }: Pick<Stats, "uid" | "mode">): FolderAccess {
  if (system.name === "win32" || process.getuid === undefined) return "unchecked";
  if (uid !== process.getuid() && uid !== 0) return "foreign";
  if ((mode & 0o022) !== 0) return "writable";
  return (mode & 0o055) === 0 ? "private" : "readable";
}

export const ACCESS_TEXT: Readonly<Record<FolderAccess, string>> = {
  private: "readable by you alone",
  unchecked: "agentauth doctor shows who can read it",
  readable: "can be read by others",
  writable: "can be changed by others",
  foreign: "belongs to another user",
  absent: "does not exist yet",
};

/** {@link classifyAccess} for our folder; nothing is known of one out of reach. */
export function homeAccess(home: string): FolderAccess | undefined {
  return orUndefined(() => {
    const stat = tryStat(home);
    return stat === undefined ? "absent" : classifyAccess(stat);
  });
}

/** What lies in a folder that we made: one that holds anything else may be shared on purpose. */
const OURS: ReadonlySet<string> = new Set([
  ...["config.json", "sandbox.json", "agent-sessions.json", GRANTS, "clients", "bindings", "claims", "pending"],
  ...["tokens", "logins", "run"],
]);

/**
 * Makes our folder private again where others can read it, as long as this user owns it and nothing but our files lies
 * in it. What others could write in is left as it is: its content may be theirs.
 *
 * @returns whether its mode was changed
 */
export function repairHome(home: string): boolean {
  try {
    const stat = lstatSync(home);
    const isOwn = stat.isDirectory() && stat.uid === process.getuid?.();
    if (!isOwn || classifyAccess(stat) !== "readable") return false;
    const names = readdirSync(home);
    if (names.length === 0 || !names.every((name) => OURS.has(name))) return false;
    chmodSync(home, 0o700);
    return true;
  } catch {
    // A folder that is not there is made private; any other trouble is for the store to report.
    return false;
  }
}

const FIRST_STEPS = [
  "Nothing is set up here yet. Without an account: agentauth demo",
  "For lists of a service: agentauth config set base_url <url>",
].join("\n");

/** The first steps, in two lines, for a user without settings and logins; undefined for any other. */
export function firstSteps(env: Env): string | undefined {
  if (env["AGENTAUTH_BASE_URL"]) return undefined;
  const home = findHome(env)?.value;
  const isSetUp = home !== undefined && (existsSync(join(home, "config.json")) || hasFiles(join(home, GRANTS)));
  return isSetUp ? undefined : FIRST_STEPS;
}

/** A folder that cannot be read may have anything in it. */
function hasFiles(folder: string): boolean {
  try {
    return readdirSync(folder).length > 0;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ENOENT";
  }
}
