import { lstatSync, type Stats, statSync } from "node:fs";
import { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import { system } from "./system.js";

/** What Windows answers for a file that another program has open, such as a virus scanner, or that is being removed. */
const CONTENTION = new Set(["EPERM", "EACCES", "EBUSY"]);
const RETRY_MS = 1000;
const PAUSE_MS = { first: 2, most: 50 };

/** Whether an error means that another program uses the file at this moment: on Windows alone. */
export function isContention(error: unknown): boolean {
  return system.name === "win32" && CONTENTION.has(codeOf(error) ?? "");
}

/**
 * Does work on files, and on Windows repeats it for up to a second while another program uses one of them.
 *
 * @param work a system call that changes nothing if it fails
 */
export function retryWhileBusy<T>(work: () => T): T {
  let until: number | undefined;
  for (let pause = PAUSE_MS.first; ; pause = Math.min(pause * 2, PAUSE_MS.most)) {
    try {
      return work();
    } catch (error) {
      if (!isContention(error)) throw error;
      // Node loads the clock when it is first read.
      until ??= performance.now() + RETRY_MS;
      if (performance.now() > until) throw error;
      block(pause);
    }
  }
}

/** The system's name for an error. */
export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}

/** Blocks: a lease and the file under it must not be left in the middle of a step. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/**
 * What a path leads to; undefined where there is nothing. A path below a file is an error, as one below a folder that
 * cannot be entered is: with `throwIfNoEntry: false`, Node 22 and later take it for a missing one.
 */
export function statOf(path: string): Stats | undefined {
  return statIfPresent(() => statSync(path));
}

/** {@link statOf} of the path itself, which may be a link. */
export function linkStatOf(path: string): Stats | undefined {
  return statIfPresent(() => lstatSync(path));
}

function statIfPresent(stat: () => Stats): Stats | undefined {
  try {
    return stat();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** SYSTEM, the administrators, and the owner of a file: those who can get at everything anyway. */
const TRUSTED = new Set(["S-1-5-18", "S-1-5-32-544", "S-1-3-0", "S-1-3-4"]);
const SID = /\bS-1-\d+(?:-\d+)+\b/g;

/** Gives a new folder, and what is made in it, to its user alone. On Windows that is a list of access; elsewhere the mode. */
export function keepToUser(folder: string): void {
  if (system.name !== "win32") return;
  const [user] = system.run("whoami", ["/user", "/fo", "csv", "/nh"])?.match(SID) ?? [];
  // The folders of a user's profile are private without this.
  if (user !== undefined) system.run("icacls", [folder, "/inheritance:r", "/grant:r", `*${user}:(OI)(CI)F`]);
}

/**
 * The accounts of Windows, beside the user and those of the system, that a folder's list of access names.
 *
 * @returns their security identifiers; undefined where the list cannot be read
 */
export function othersWithAccess(folder: string): string[] | undefined {
  const path = folder.replace(/['\u2018-\u201b]/g, "$&$&");
  const script =
    "[Security.Principal.WindowsIdentity]::GetCurrent().User.Value; " +
    `(Get-Acl -LiteralPath '${path}').GetAccessRules($true, $true, [Security.Principal.SecurityIdentifier])` +
    " | ForEach-Object { $_.IdentityReference.Value }";
  const found = system.run("powershell.exe", ["-NoProfile", "-NonInteractive", "-Command", script])?.match(SID);
  // The first one is the user; an empty list was not read.
  if (found === undefined || found === null || found.length < 2) return undefined;
  const [user, ...named] = found;
  return [...new Set(named)].filter((sid) => sid !== user && !TRUSTED.has(sid));
}

/**
 * Text that was decoded as UTF-8, without the byte order mark that editors and shells of Windows write.
 *
 * @param source what it comes from, for the error
 * @throws `AgentAuthError` `usage` for text that is UTF-16, which `>` of Windows PowerShell writes
 */
export function withoutByteOrderMark(text: string, source: string): string {
  if (text.startsWith("\ufeff")) return text.slice(1);
  // Neither byte of a mark of UTF-16 is UTF-8.
  if (!text.startsWith("\ufffd\ufffd")) return text;
  throw new AgentAuthError("usage", `${quote(source).slice(1, -1)} is UTF-16`, {
    class: "usage",
    hint: "save it as UTF-8; PowerShell writes that with Set-Content -Encoding utf8",
  });
}
