import { homedir, platform } from "node:os";
import { join, resolve } from "node:path";
import type { Env } from "../io/env.js";

/** The folder that every file of ours lives under: `AGENTAUTH_HOME`, else the platform's place for settings. */
export function homeFolder(env: Env): string {
  const set = env["AGENTAUTH_HOME"];
  // Paths below it are written into the settings, which are read in other folders too.
  if (set) return resolve(set);
  if (platform() === "win32") return join(env["APPDATA"] ?? join(userFolder(env), "AppData", "Roaming"), "agentauth");
  if (platform() === "darwin") return join(userFolder(env), "Library", "Application Support", "agentauth");
  return join(env["XDG_CONFIG_HOME"] ?? join(userFolder(env), ".config"), "agentauth");
}

/** The user's own folder: by the environment of the run, else by the system. */
export function userFolder(env: Env): string {
  return env[platform() === "win32" ? "USERPROFILE" : "HOME"] ?? homedir();
}
