import type { spawn } from "node:child_process";
import { userInfo } from "node:os";
import { pasting, type Shell } from "../redact.js";

/** What the code asks of the operating system. */
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
  try {
    return userInfo().homedir || undefined;
  } catch {
    // As in a container that runs under any user id.
    return undefined;
  }
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
  pasting.shell = shellOf(env);
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
export function shellOf(env: Env): Shell {
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
  return crossSpawn as typeof spawn;
}
