import { ACCOUNT_HINT } from "../../flags/agent.js";
import { addOutputFlags } from "../../flags/global.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = {
  group: "Tokens:",
  order: 11,
  names: ["introspect"],
  declare: declareIntrospect,
};

function declareIntrospect(registry: Registry): void {
  const { root } = registry;
  addOutputFlags(root.command("introspect").description("Ask the issuer about the stored token (RFC 7662)"))
    .argument("<mcp_url>", "URL of the MCP server")
    .option(...ACCOUNT_HINT)
    .addHelpText("after", "\nExample:\n  $ agentauth introspect https://mcp.example/mcp --jq .active")
    .action(registry.run(() => import("./run.js"), "runIntrospect", "url"));
}
