import { Option } from "commander";
import { addAgentFlags, type TokenFlags } from "../../flags/agent.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Tokens:", order: 1, declare: declareLogin };

/** `login`. */
function declareLogin(registry: Registry): void {
  const { root } = registry;
  addAgentFlags(root.command("login").description("sign in at an MCP server and keep the login"))
    .argument("<mcp_url>", "the MCP server")
    .option("--no-wait", "print where to sign in, and end")
    .option("--wait <login_id>", "finish a login that --no-wait began")
    .addOption(new Option("-o, --output <format>", "how to print").choices(["text", "json"]))
    .addOption(new Option("--json", "the same as -o json"))
    .addHelpText(
      "after",
      `
Where an AI agent runs it, and without a terminal, it does what --no-wait --json does, unless --browser, BROWSER (for an
agent only the flag), --flow or --wait says how the user is reached. With --browser none, or --no-input on a terminal,
the address is printed and the callback waited for, so that it can be opened elsewhere: no browser is started.

Examples:
  $ agentauth login https://mcp.example/mcp
  $ agentauth login https://mcp.example/mcp --flow paste
  $ agentauth login https://mcp.example/mcp --no-wait --json
  $ agentauth login https://mcp.example/mcp --wait <login_id>`,
    )
    .action(
      registry.action<TokenFlags>(
        async (options, context) => (await import("./run.js")).runLogin(options, context),
        "url",
      ),
    );
}
