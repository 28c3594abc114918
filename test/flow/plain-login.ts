import { fileStore } from "../../src/store/file/file.js";
import { collect, runCli, startCli, temporaryFolder } from "../helpers/cli.js";
import { madeGrant } from "../helpers/grant.js";
import { startPlainServer } from "../mcp/plain-server.js";
import type { User } from "./support.js";

/** Runs the program with a login at a server whose answers the test writes. */
export async function signedInAt(...[answer, options]: Parameters<typeof startPlainServer>) {
  const server = await startPlainServer(answer, options);
  return { ...server, ...(await loggedInTo(server.url)) };
}

/** Runs the program with a login at the server of this URL, which must accept any token. */
export async function loggedInTo(url: string) {
  const home = temporaryFolder();
  const grant = madeGrant({ server: url, resource: url, requestedScope: undefined });
  const expiresAt = Date.now() + 3_600_000;
  const tokens = { ...grant.tokens, refreshToken: undefined, expiresAt, obtainedAt: Date.now() };
  await fileStore(home).save({ ...grant, tokens }, undefined);
  const env = { AGENTAUTH_HOME: home };
  const run: User["run"] = (args, more = {}) => runCli(args, { ...more, env: { ...env, ...more.env } });
  const start = (args: readonly string[]) => {
    const child = startCli(args, { env });
    return { child, err: collect(child.stderr) };
  };
  return { run, start };
}
