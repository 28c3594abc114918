import { system } from "./system.js";

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
  // The first one is the user; a list that names nobody was not read.
  if (found === undefined || found === null || found.length < 2) return undefined;
  const [user, ...named] = found;
  return [...new Set(named)].filter((sid) => sid !== user && !TRUSTED.has(sid));
}
