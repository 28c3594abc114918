import type { StoredLoginFlags } from "../../flags/agent.js";
import { addOutputFlags } from "../../flags/output.js";
import { addOverrides } from "../../flags/policy.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Tokens:", order: 9, declare: declareDiscover };

/** `discover`. */
function declareDiscover(registry: Registry): void {
  const { root } = registry;
  addOutputFlags(
    addOverrides(root.command("discover").description("show how the issuer of an MCP server is found, step by step")),
  )
    .argument("<mcp_url>", "the MCP server")
    .addHelpText(
      "after",
      "\nSigns nobody in and registers nothing. Where it fails, every step is printed all the same.\n\nExample:\n  $ agentauth discover https://mcp.example/mcp",
    )
    .action(
      registry.action<StoredLoginFlags>(
        async (options, context) => (await import("./run.js")).runDiscover(options, context),
        "url",
      ),
    );
}
