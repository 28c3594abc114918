import type { StoredLoginFlags } from "../../flags/agent.js";
import { addOutputFlags } from "../../flags/output.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Tokens:", order: 3, declare: declareStatus };

const ACCOUNT = "which account, where several are signed in at the server";

/** `status`. */
function declareStatus(registry: Registry): void {
  const { root } = registry;
  addOutputFlags(root.command("status").description("show which logins are kept, where, and until when"))
    .argument("[mcp_url]", "the MCP server")
    .option("--all", "of every profile")
    .option("--account-hint <account>", ACCOUNT)
    .addHelpText(
      "after",
      "\nEnds with 4 where nobody is signed in.\n\nExample:\n  $ agentauth status https://mcp.example/mcp --json",
    )
    .action(
      registry.action<StoredLoginFlags>(
        async (options, context) => (await import("./run.js")).runStatus(options, context),
        "url",
      ),
    );
}
