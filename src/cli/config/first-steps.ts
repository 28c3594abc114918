import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { storingToken } from "../../platform/shell.js";
import { EARLIER_GRANTS, GRANTS } from "../../store/file/grant-places.js";
import type { Env } from "../io/env.js";
import { homeFolder } from "./home.js";

const firstStepsText = () =>
  [
    "Nothing is set up here yet. To look around without an account: agentauth demo",
    "For tokens of an MCP server: agentauth login <mcp_url>, and then agentauth token <mcp_url>",
    `For lists of a service: agentauth config set base_url <url>, and ${storingToken()}`,
  ].join("\n");

/** The first steps, in three lines, for a user without settings and logins; undefined for any other. */
export function firstSteps(env: Env): string | undefined {
  if (env["AGENTAUTH_BASE_URL"]) return undefined;
  const home = homeFolder(env);
  const isSetUp =
    existsSync(join(home, "config.json")) || [GRANTS, EARLIER_GRANTS].some((name) => hasFiles(join(home, name)));
  return isSetUp ? undefined : firstStepsText();
}

/** A folder that cannot be read may have anything in it. */
function hasFiles(folder: string): boolean {
  try {
    return readdirSync(folder).length > 0;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ENOENT";
  }
}
