import { lstatSync, mkdirSync } from "node:fs";
import { isAbsolute, join, relative } from "node:path";
import { type Env, system } from "../../platform/system.js";
import { homeFolder, userFolder } from "../../profile/settings.js";
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
  const folder = cacheFolder(env);
  // A relative path leads into the working folder, whose files may be a stranger's.
  if (!isAbsolute(folder) || isWithin(homeFolder(env), folder)) return;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const stat = lstatSync(folder);
    const access = accessOf(stat);
    if (stat.isDirectory() && (access === "private" || access === "unchecked")) node.enableCompileCache(folder);
  } catch {
    // A start without the cache is slower, and no failure.
  }
}

/** Our folder among the user's caches. On Windows these lie beside the settings. */
function cacheFolder(env: Env): string {
  const user = userFolder(env);
  if (system.name === "win32") return join(env["LOCALAPPDATA"] || join(user, "AppData", "Local"), "agentauth-cache");
  if (system.name === "darwin") return join(user, "Library", "Caches", "agentauth");
  return join(env["XDG_CACHE_HOME"] || join(user, ".cache"), "agentauth");
}

function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return !way.startsWith("..") && !isAbsolute(way);
}
