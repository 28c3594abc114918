import type { spawn } from "node:child_process";
import { lstatSync, type Stats, statSync } from "node:fs";
import { userInfo } from "node:os";
import { orUndefined, usageError } from "./errors.js";
import { pasting, posixWord, quote, type Shell, shellWord, wordFor } from "./redact.js";

export interface System {
  /** As in `process.platform`. */
  name: NodeJS.Platform;
  /**
   * Runs a tool of the system, without a shell.
   *
   * @returns what it printed; undefined where it is missing, fails or takes more than five seconds
   */
  run(program: string, args: readonly string[]): string | undefined;
  /** The user's own folder, as the database of users has it; undefined for a user who is not in it. */
  userFolder(): string | undefined;
}

/** The system that this process runs on. Everything that differs between systems asks it, so that tests can replace it. */
export const system: System = { name: process.platform, run, userFolder };

function run(program: string, args: readonly string[]): string | undefined {
  // Loaded here, because few calls of the command need it.
  const { spawnSync } = process.getBuiltinModule("node:child_process");
  const { status, stdout } = spawnSync(program, args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    timeout: 5000,
    windowsHide: true,
  });
  return status === 0 ? stdout : undefined;
}

function userFolder(): string | undefined {
  // As in a container that runs under any user id.
  return orUndefined(() => userInfo().homedir || undefined);
}

/** Random bytes in hexadecimal. Loads `node:crypto` at the first call, because that takes 5 ms of a start. */
export function randomHex(bytes: number): string {
  return process.getBuiltinModule("node:crypto").randomBytes(bytes).toString("hex");
}

/** The environment of a run; an empty variable is unset. */
export type Env = Readonly<Record<string, string | undefined>>;

/**
 * The environment of a run, without the variables that are empty. Commands of messages are for its shell and its user
 * from here on.
 */
export function readEnv(variables: Env): Env {
  const env = lookupByPlatform(
    Object.freeze(Object.fromEntries(Object.entries(variables).filter(([, value]) => value))),
  );
  const { SUDO_USER: name, SUDO_UID: uid } = env;
  pasting.shell = detectShell(env);
  pasting.caller = name === undefined ? undefined : { name, uid: uid === undefined ? undefined : Number(uid) };
  return env;
}

/** The environment as the system looks names up: on Windows `Https_Proxy` is `HTTPS_PROXY`, as it is in `process.env`. */
export function lookupByPlatform<T extends Env>(env: T): T {
  if (system.name !== "win32") return env;
  const names = new Map(Object.keys(env).map((name) => [name.toUpperCase(), name]));
  return new Proxy(env, {
    get: (target, name) => {
      const key = typeof name === "string" && !Object.hasOwn(target, name) ? names.get(name.toUpperCase()) : undefined;
      return Reflect.get(target, key ?? name);
    },
  });
}

/** The shell of the user: on Windows PowerShell, unless `cmd.exe` or a shell with `SHELL` has started the process. */
export function detectShell(env: Env): Shell {
  if (system.name !== "win32" || env["SHELL"]) return "sh";
  // PowerShell adds the user's own folder; PROMPT, which only cmd.exe sets, may be inherited from there.
  const isPowershell = (env["PSModulePath"] ?? "").split(";").some((path) => /\\users\\/i.test(path));
  return isPowershell || env["PROMPT"] === undefined ? "powershell" : "cmd";
}

/** A copy of an environment with one variable; on Windows other spellings of its name are left out. */
export function withVariable(env: Env, name: string, value: string): NodeJS.ProcessEnv {
  const isSame = (one: string) => system.name === "win32" && one.toUpperCase() === name.toUpperCase();
  return { ...Object.fromEntries(Object.entries(env).filter(([one]) => !isSame(one))), [name]: value };
}

/** A copy of an environment without the variables of agentauth, which may hold credentials. */
export function withoutOurs(env: Env): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.toUpperCase().startsWith("AGENTAUTH_")));
}

/**
 * What starts a program by its name, without a shell. On Windows that finds `.cmd` and `.bat` by `PATHEXT`, and quotes
 * each argument for the `cmd.exe` that runs them. Call it at once: an error is an event of the child.
 */
export async function loadSpawn(): Promise<typeof spawn> {
  if (system.name !== "win32") return process.getBuiltinModule("node:child_process").spawn;
  const { crossSpawn } = await import("#packages/cross-spawn");
  return crossSpawn;
}

/** Commands that messages show, for the shell of the user. Every hint with a command of a system has it from here. */

/** The form for the shell of the user; that for PowerShell is also that for cmd.exe, unless there is another. */
function forShell(sh: string, powershell: string, cmd = powershell): string {
  return { sh, powershell, cmd }[pasting.shell];
}

/** Moves a file or a folder out of the way. */
export function moveAway(path: string, to: string): string {
  const words = `${shellWord(path)} ${shellWord(to)}`;
  const powershell = `Move-Item -LiteralPath ${shellWord(path)} -Destination ${shellWord(to)}`;
  return forShell(`mv ${words}`, powershell, `move ${words}`);
}

export function removeCommand(path: string): string {
  const word = shellWord(path);
  return forShell(`rm ${word}`, `Remove-Item -LiteralPath ${word}`, `del ${word}`);
}

/**
 * Takes rights from others, or gives its owner the right to write, in the modes of `chmod`.
 *
 * @param owner the user id of its owner; default: this user
 */
export function changingMode(mode: "600" | "700" | "go-w" | "u+w", path: string, owner = userId()): string {
  const word = shellWord(path);
  // Only its owner and root can do it.
  const sudo = userId() === 0 || userId() === owner ? "" : "sudo ";
  // A colon after the name would be part of it.
  const user = forShell("", "$" + "{env:USERNAME}", "%USERNAME%");
  const windows = mode === "u+w" ? `attrib -r ${word}` : `icacls ${word} /inheritance:r /grant:r "${user}:(OI)(CI)F"`;
  return forShell(`${sudo}chmod ${mode} ${word}`, windows);
}

export interface ForeignFile {
  owner?: number | undefined;
  /** Whether it is a folder, and everything in it is meant. */
  isTree?: boolean | undefined;
}

/**
 * Makes the user the owner of a file. Only root can do that. Under sudo it would take the file from the user who called
 * it: the advice is to do without.
 */
export function takingOwnership(path: string, { owner, isTree = false }: ForeignFile = {}): string {
  const word = shellWord(path);
  const isRoot = userId() === 0;
  const { caller } = pasting;
  const isOfCaller = isRoot && caller !== undefined && (caller.uid ?? owner) === owner;
  const chown = `${isRoot ? "" : "sudo "}chown ${isTree ? "-R " : ""}${userId()} ${word}`;
  return forShell(isOfCaller ? `run it without sudo: ${word} is for ${caller.name}` : chown, `takeown /f ${word}`);
}

function userId(): number | undefined {
  return process.getuid?.();
}

/** What lets a process go on that stands still, as the end of a sentence. */
export function wakingUp(pid: number): string {
  return forShell(`if it is stopped, resume it: kill -CONT ${pid}`, `if it hangs, end it: taskkill /f /pid ${pid}`);
}

export function withInput(command: string, file: string): string {
  const redirected = `${command} < ${shellWord(file)}`;
  return forShell(redirected, `Get-Content ${shellWord(file)} | ${command}`, redirected);
}

/** Sets a variable for the commands that follow in this shell. */
export function settingVariable(name: string, value: string): string {
  const powershell = `$env:${name} = ${quotedForPowershell(value)}`;
  return forShell(`export ${name}=${posixWord(value)}`, powershell, `set "${name}=${value}"`);
}

/** A command that writes a file that no other user can read. */
export function writePrivatelyCommand(command: string): string {
  return forShell(`(umask 077; ${command})`, command);
}

/** What a file must be so that it can be run. */
export function runnableFileText(): string {
  const windows = "a file with an extension of PATHEXT, such as .exe or .cmd";
  return forShell("a file with permission to run it: chmod +x", windows);
}

/** How shell syntax is passed to a command that runs programs. */
export function shellSyntax(): string {
  return forShell("sh -c '...'", "powershell -Command '...'", "cmd /c ...");
}

/** A string, also where a word would need no quotes. */
export function quotedForPowershell(value: string): string {
  const word = wordFor("powershell", value);
  return word === value ? `'${value}'` : word;
}

/** What Windows answers for a file that another program has open, such as a virus scanner, or that is being removed. */
const CONTENTION = new Set(["EPERM", "EACCES", "EBUSY"]);
const RETRY_MS = 1000;
const PAUSE_MS = { first: 2, most: 50 };

/** Whether an error means that another program uses the file at this moment: on Windows alone. */
export function isContention(error: unknown): boolean {
  return system.name === "win32" && CONTENTION.has(errorCode(error) ?? "");
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
      // Blocks: a lease and the file under it must not be left in the middle of a step.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pause);
    }
  }
}

export function errorCode(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}

/**
 * What a path leads to; undefined where there is nothing. A path below a file is an error, as one below a folder that
 * cannot be entered is: with `throwIfNoEntry: false`, Node 22 and later take it for a missing one.
 */
export function tryStat(path: string): Stats | undefined {
  return statIfPresent(() => statSync(path));
}

/** {@link tryStat} of the path itself, which may be a link. */
export function tryLstat(path: string): Stats | undefined {
  return statIfPresent(() => lstatSync(path));
}

function statIfPresent(stat: () => Stats): Stats | undefined {
  try {
    return stat();
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
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
  const hint = "save it as UTF-8; PowerShell writes that with Set-Content -Encoding utf8";
  throw usageError(`${quote(source).slice(1, -1)} is UTF-16`, hint);
}
