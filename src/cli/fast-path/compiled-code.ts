import { existsSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { VERSION } from "../../http/user-agent.js";
import { COMPILED_CODE, homeFolder } from "../config/home.js";
import { accessOf } from "../config/home-access.js";
import type { Env } from "../io/env.js";

/**
 * Lets Node store the compiled code of the command line in our folder, and read it at the next start: since Node 22.1, and
 * not with `NODE_DISABLE_COMPILE_CACHE=1`. Node ignores code of another version of itself or of a changed file.
 *
 * @param enable of `node:module`, or a substitute in tests
 */
export function keepCompiledCode(env: Env, enable = enableCompileCache()): void {
  if (enable === undefined) return;
  const home = homeFolder(env);
  try {
    const access = accessOf(statSync(home));
    // Node runs what it finds there.
    if (access === "writable" || access === "foreign") return;
    const folder = join(home, COMPILED_CODE);
    const own = join(folder, VERSION);
    if (!existsSync(own)) rmSync(folder, { recursive: true, force: true });
    enable(own);
  } catch {
    // A folder that does not exist or cannot be changed keeps nothing.
  }
}

type Enable = (folder: string) => unknown;

/** As the types of Node 20 do not know it. */
function enableCompileCache(): Enable | undefined {
  return (process.getBuiltinModule("node:module") as { enableCompileCache?: Enable }).enableCompileCache;
}
