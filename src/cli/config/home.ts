import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { system } from "../../platform/system.js";
import type { Env } from "../io/env.js";

/** The folder that every file of ours lives under: `AGENTAUTH_HOME`, else the platform's place for settings. */
export function homeFolder(env: Env): string {
  const set = env["AGENTAUTH_HOME"];
  // Paths below it are written into the settings, which are read in other folders too.
  if (set) return resolve(set);
  if (system.name === "win32") return windowsFolder(env);
  if (system.name === "darwin") return join(userFolder(env), "Library", "Application Support", "agentauth");
  return join(env["XDG_CONFIG_HOME"] ?? join(userFolder(env), ".config"), "agentauth");
}

/** The user's own folder: by the environment of the run, else by the system. */
export function userFolder(env: Env): string {
  return env[system.name === "win32" ? "USERPROFILE" : "HOME"] ?? homedir();
}

/** Locks and sealed logins belong to one machine: the roaming folder counts only where an earlier version has made it. */
function windowsFolder(env: Env): string {
  const local = join(env["LOCALAPPDATA"] ?? join(userFolder(env), "AppData", "Local"), "agentauth");
  const roaming = join(env["APPDATA"] ?? join(userFolder(env), "AppData", "Roaming"), "agentauth");
  return !existsSync(local) && existsSync(roaming) ? roaming : local;
}
