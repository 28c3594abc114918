import { addLoginSettings } from "../../flags/agent.js";
import { addOutputFlags } from "../../flags/global.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = {
  group: "Tokens:",
  order: 10,
  names: ["discover"],
  declare: declareDiscover,
};

function declareDiscover({ root, run }: Registry): void {
  const discover = root.command("discover").description("Show how the issuer of an MCP server is found, step by step");
  addOutputFlags(addLoginSettings(discover, "discover"))
    .argument("<mcp_url>", "URL of the MCP server")
    .addHelpText(
      "after",
      "\nDoes not log in and registers no client. Prints every step, also when discovery fails,\nand the login that works.\n\nExample:\n  $ agentauth discover https://mcp.example/mcp",
    )
    .action(run(() => import("./run.js"), "runDiscover", "url"));
}
