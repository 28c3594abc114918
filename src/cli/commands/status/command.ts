import { ACCOUNT_HINT } from "../../flags/agent.js";
import { addOutputFlags } from "../../flags/global.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = { group: "Tokens:", order: 3, names: ["status"], declare: declareStatus };

function declareStatus(registry: Registry): void {
  const { root } = registry;
  addOutputFlags(root.command("status").description("Show the stored logins, their location and their expiry"))
    .argument("[mcp_url]", "URL of the MCP server")
    .option("--all", "Include every profile")
    .option("--tenant <tenant>", "Tenant whose logins are shown, in a store that many machines share")
    .option(...ACCOUNT_HINT)
    .addHelpText(
      "after",
      "\nExits with 4 if not logged in.\n\nExample:\n  $ agentauth status https://mcp.example/mcp --json",
    )
    .action(registry.run(() => import("./run.js"), "runStatus", "url"));
}
