import { mkdirSync, statSync } from "node:fs";
import { homedir, platform } from "node:os";
import { dirname, join, resolve } from "node:path";
import { storeError } from "./store-error.js";

type Env = Readonly<Record<string, string | undefined>>;

/** The folder that every file of ours lives under: `AGENTAUTH_HOME`, else the platform's place for settings. */
export function homeFolder(env: Env): string {
  const set = env["AGENTAUTH_HOME"];
  // Paths below it are written into the settings, which are read in other folders too.
  if (set) return resolve(set);
  if (platform() === "win32") return join(env["APPDATA"] ?? join(homedir(), "AppData", "Roaming"), "agentauth");
  if (platform() === "darwin") return join(homedir(), "Library", "Application Support", "agentauth");
  return join(env["XDG_CONFIG_HOME"] ?? join(homedir(), ".config"), "agentauth");
}

/** Makes a folder that only its owner can enter. */
export function makePrivateFolder(path: string): void {
  try {
    makeFolders(path);
  } catch (cause) {
    throw storeError(
      `the folder ${path} cannot be made`,
      cause,
      "set AGENTAUTH_HOME to a folder that you can write to",
    );
  }
}

/** Not `recursive: true`: where a file system takes no folders, such as /proc, Node would try for ever. */
function makeFolders(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  const parent = dirname(path);
  if (parent !== path) makeFolders(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it just now.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}
