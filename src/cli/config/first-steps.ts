import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Env } from "../../platform/system.js";
import { findHome } from "../../profile/settings.js";
import { GRANTS } from "../../store/file/file-grants.js";

const FIRST_STEPS = [
  "Nothing is set up here yet. Without an account: agentauth demo",
  "For lists of a service: agentauth config set base_url <url>",
].join("\n");

/** The first steps, in two lines, for a user without settings and logins; undefined for any other. */
export function firstSteps(env: Env): string | undefined {
  if (env["AGENTAUTH_BASE_URL"]) return undefined;
  const home = findHome(env)?.value;
  const isSetUp = home !== undefined && (existsSync(join(home, "config.json")) || hasFiles(join(home, GRANTS)));
  return isSetUp ? undefined : FIRST_STEPS;
}

/** A folder that cannot be read may have anything in it. */
function hasFiles(folder: string): boolean {
  try {
    return readdirSync(folder).length > 0;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ENOENT";
  }
}
