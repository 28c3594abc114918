import { expect } from "vitest";
import { fileStore } from "../../../../src/store/file/file.js";
import { runCli } from "../../../helpers/cli.js";
import { madeGrant } from "../../../helpers/grant.js";

/** The MCP server of the login that is stored. */
export const SERVER = "https://mcp.example/mcp";
/** The server of another login: what a shell would run, if it were put on a line as it is. */
const TRAP = "https://mcp.example/$(>trapped)";

/** Stores two logins, and the profile staging with an account, a domain and a pool. */
export async function prepare(env: { HOME: string; AGENTAUTH_HOME: string }): Promise<void> {
  for (const server of [SERVER, TRAP]) {
    await fileStore(env.AGENTAUTH_HOME).save(madeGrant({ server, resource: server, generation: 1 }), undefined);
  }
  for (const [key, value] of [
    ["base_url", "https://agentauth.example"],
    ["account", "acc_1"],
    ["domain", "dom_1"],
    ["pool", "pool_staging"],
  ]) {
    const set = await runCli(["config", "set", key ?? "", value ?? "", "--profile", "staging"], { env });
    expect(set.code, set.stderr).toBe(0);
  }
}
