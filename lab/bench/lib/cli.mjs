// The command line of agentauth as a side.
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { run } from "./process.mjs";
import { POOL, TOKEN } from "./side.mjs";

/** The path of the command. */
export const CLI = fileURLToPath(new URL("../../../bin/agentauth.cjs", import.meta.url));

const BUNDLE = fileURLToPath(new URL("../../../dist/cli/main.cjs", import.meta.url));

/** Why the command cannot be measured, or undefined. */
export function missingCli() {
  const missing = [CLI, BUNDLE].find((path) => !existsSync(path));
  return missing && `${missing} is missing: run \`npm run build\``;
}

/** Calls `work` with an environment whose folders, of settings and of compiled code, are empty. */
export async function withHome(work) {
  const folder = await mkdtemp(join(tmpdir(), "agentauth-bench-"));
  const [AGENTAUTH_HOME, XDG_CACHE_HOME] = ["settings", "caches"].map((name) => join(folder, name));
  try {
    await mkdir(AGENTAUTH_HOME, { mode: 0o700 });
    return await work({ AGENTAUTH_API_TOKEN: TOKEN, AGENTAUTH_HOME, XDG_CACHE_HOME, NO_COLOR: "1" });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The arguments of `agentauth devices list`. */
export function devicesList(url, output, ...more) {
  return [CLI, "devices", "list", "--pool", POOL, "--base-url", url, "-o", output, "--page-size", "1000", ...more];
}

/** A side whose output goes through a pipe; fails unless it prints the expected number of lines. */
export function pipedSide(name, args, lines, env = {}) {
  return {
    name,
    async measure() {
      const usage = await run(args.map(String), { env, piped: true });
      if (usage.lines !== lines) throw new Error(`${name} printed ${usage.lines} lines, expected ${lines}`);
      return usage;
    },
  };
}
