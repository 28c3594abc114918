import { lstatSync, mkdirSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { type Env, system } from "../../platform/system.js";
import { findHome, isWithin, userFolder } from "../../profile/settings.js";
import { accessOf } from "../config/home-access.js";

/** What `node:module` has since 22.8: the types are those of Node 20, where a named import fails. */
interface CompileCache {
  enableCompileCache?(folder: string): unknown;
}

/**
 * Has Node store the compiled code of the modules that are loaded from here on, and use it at the next start: half of the
 * time of a start is that V8 compiles them. Node compares a checksum of what it reads. Nothing is stored where Node has no
 * such cache, or in a folder that others can get at: what lies there is run.
 */
export function enableCompileCache(
  env: Env,
  node: CompileCache = process.getBuiltinModule("node:module") as CompileCache,
): void {
  // With the first one Node has enabled a folder of the user's choice; with the second one it enables none.
  if (!node.enableCompileCache || env["NODE_COMPILE_CACHE"] || env["NODE_DISABLE_COMPILE_CACHE"]) return;
  try {
    const folder = cacheFolder(env);
    const home = findHome(env)?.value;
    // A relative path leads into the working folder, whose files may be a stranger's.
    if (!folder || !isAbsolute(folder) || (home !== undefined && isWithin(home, folder))) return;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const stat = lstatSync(folder);
    const access = accessOf(stat);
    if (stat.isDirectory() && (access === "private" || access === "unchecked")) node.enableCompileCache(folder);
  } catch {
    // A start without the cache is slower, and no failure.
  }
}

/** Our folder among the user's caches. On Windows these lie beside the settings. */
function cacheFolder(env: Env): string | undefined {
  const user = userFolder(env);
  const named = env[system.name === "win32" ? "LOCALAPPDATA" : "XDG_CACHE_HOME"];
  if (system.name === "darwin") return user && join(user, "Library", "Caches", "agentauth");
  const [below, name] = system.name === "win32" ? [["AppData", "Local"], "agentauth-cache"] : [[".cache"], "agentauth"];
  const caches = named || (user && join(user, ...below));
  return caches && join(caches, name);
}
