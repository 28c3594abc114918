import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { type HostScope, MCP_HOSTS, settingsFiles } from "../../../../src/cli/clients/hosts.js";
import { type CliResult, runCli } from "../../../helpers/cli.js";
import { temporaryFolder } from "../../../helpers/folder.js";

/** The server that the tests add, and the name that it gets. */
export const URL_OF_SERVER = "https://mcp.example.com/mcp";
export const NAME = "mcp-example-com";

/** A user with an empty home folder and an empty project, on a platform. */
export function startUser(platform = "linux") {
  const home = temporaryFolder();
  const folder = temporaryFolder();
  const env = { HOME: home, USERPROFILE: home, AGENTAUTH_HOME: undefined };
  const machine = { platform, folder };
  return {
    home,
    folder,
    run: (...args: string[]): Promise<CliResult> => runCli(["mcp", ...args], { env, machine }),
    /** The same with more variables. */
    runWith: (more: Record<string, string>, ...args: string[]): Promise<CliResult> =>
      runCli(["mcp", ...args], { env: { ...env, ...more }, machine }),
    file(host: string, scope: HostScope = "user"): string {
      const row = MCP_HOSTS[host];
      const path = row && settingsFiles(row, scope, { env, home, ...machine })[0];
      if (path === undefined) throw new Error(`${host} has no file for ${scope}`);
      return path;
    },
  };
}

/** Reads a file as text. */
export const read = (path: string): string => readFileSync(path, "utf8");

/** Writes a file and the folders above it. @returns its path */
export function write(path: string, content: string | Buffer): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
  return path;
}
