import { Option } from "commander";
import { addAgentFlags, type TokenFlags } from "../../flags/agent.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Tokens:", order: 1, declare: declareLogin };

/** `login`. */
function declareLogin(registry: Registry): void {
  const { root } = registry;
  addAgentFlags(root.command("login").description("Log in at an MCP server and store the login"))
    .argument("<mcp_url>", "URL of the MCP server")
    .option("--no-wait", "Print the login URL and exit")
    .option("--wait <login_id>", "Finish a login that --no-wait started")
    .addOption(new Option("-o, --output <format>", "Output format").choices(["text", "json"]))
    .addOption(new Option("--json", "Same as -o json"))
    .addHelpText(
      "after",
      `
Without a terminal, or if an AI agent runs it, login behaves as with --no-wait --json, unless --browser, BROWSER (ignored
for an agent), --flow or --wait is given. With --browser none, or --no-input on a terminal, login starts no browser: it
prints the URL, so that you can open it elsewhere, and waits for the callback.

Examples:
  $ agentauth login https://mcp.example/mcp
  $ agentauth login https://mcp.example/mcp --flow paste
  $ agentauth login https://mcp.example/mcp --no-wait --json
  $ agentauth login https://mcp.example/mcp --wait <login_id>`,
    )
    .action(
      registry.action<TokenFlags>(async (options, deps) => (await import("./run.js")).runLogin(options, deps), "url"),
    );
}
