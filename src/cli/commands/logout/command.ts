import { ACCOUNT_HINT } from "../../flags/agent.js";
import { addOutputFlags } from "../../flags/global.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = { group: "Tokens:", order: 4, names: ["logout"], declare: declareLogout };

function declareLogout(registry: Registry): void {
  const { root } = registry;
  addOutputFlags(root.command("logout").description("Delete a stored login and revoke its tokens, if its issuer can"))
    .argument("[mcp_url]", "URL of the MCP server")
    .option("--all", "Log out of every server of the profile")
    .option("--idp [issuer]", "Log out of the identity provider, and of every server whose token came from it")
    .option("--hand-over <file>", "Revoke the login that login --hand-over printed (- for stdin)")
    .option(...ACCOUNT_HINT)
    .addHelpText(
      "after",
      `
The local login is deleted first, even if revocation at the issuer fails. An issuer without a revocation endpoint
(RFC 7009) accepts the tokens until they expire: "revoked" is null then, and the message names the time. With an ID
token, it is asked to end the session of the user ("session_ended"). Without --output, nothing is printed on standard
output.

Examples:
  $ agentauth logout https://mcp.example/mcp
  $ agentauth logout --all --json`,
    )
    .action(registry.run(() => import("./run.js"), "runLogout", "url"));
}
