import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { type Env, system } from "../platform/system.js";
import type { Sourced } from "./settings.js";

/** The folder that every file of ours lives under: `AGENTAUTH_HOME`, else the platform's folder for settings. */
export function homeFolder(env: Env): string {
  return locateHome(env).value;
}

/** The folder, and the variable that names it or `default`. */
export function locateHome(env: Env): Sourced {
  const set = env["AGENTAUTH_HOME"];
  // Paths below it are written into the settings, which are read in other folders too.
  if (set) return { value: resolve(set), source: "AGENTAUTH_HOME" };
  // Not the roaming folder: locks and sealed logins belong to one machine.
  if (system.name === "win32") return locateBelow(env, "LOCALAPPDATA", "AppData", "Local");
  if (system.name === "darwin") return locateBelow(env, undefined, "Library", "Application Support");
  return locateBelow(env, "XDG_CONFIG_HOME", ".config");
}

/** @param otherwise the folder of the user where the variable is empty */
function locateBelow(env: Env, variable: string | undefined, ...otherwise: string[]): Sourced {
  const set = variable && env[variable];
  return {
    value: join(set || join(userFolder(env), ...otherwise), "agentauth"),
    source: (set && variable) || "default",
  };
}

/** The user's own folder: by the environment of the run, else by the system. */
export function userFolder(env: Env): string {
  return env[system.name === "win32" ? "USERPROFILE" : "HOME"] ?? homedir();
}
