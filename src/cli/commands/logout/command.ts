import type { StoredLoginFlags } from "../../flags/agent.js";
import { addMachineGrantFlags } from "../../flags/grant.js";
import { addOutputFlags } from "../../flags/output.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Tokens:", order: 4, declare: declareLogout };

const ACCOUNT = "which account, where several are signed in at the server";

/** `logout`. */
function declareLogout(registry: Registry): void {
  const { root } = registry;
  addOutputFlags(addMachineGrantFlags(root.command("logout").description("forget a login, and tell the issuer")))
    .argument("[mcp_url]", "the MCP server")
    .option("--all", "every login of the profile")
    .option("--account-hint <account>", ACCOUNT)
    .addHelpText(
      "after",
      `
What is kept here goes first, and is gone also where the issuer cannot be told. Without --output nothing is printed on
standard output.

Examples:
  $ agentauth logout https://mcp.example/mcp
  $ agentauth logout --all --json`,
    )
    .action(
      registry.action<StoredLoginFlags>(
        async (options, context) => (await import("./run.js")).runLogout(options, context),
        "url",
      ),
    );
}
