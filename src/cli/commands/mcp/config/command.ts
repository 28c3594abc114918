import { Argument, type Command } from "commander";
import { MCP_HOSTS } from "../../../clients/mcp-hosts.js";
import type { Registry } from "../../../runtime/registry.js";
import { addEntryFlags } from "../entry-flags.js";
import type { McpConfigFlags } from "./run.js";

const HELP = `
Hosts: ${Object.keys(MCP_HOSTS).join(", ")}.

The snippet contains no secret: the host starts agentauth mcp proxy or, with
--style headers-helper, runs agentauth token for the header of each connection.
The snippet is printed on stdout, and the file that it belongs to on stderr.
agentauth mcp add writes it into that file.

Examples:
  $ agentauth mcp config cursor https://mcp.example/mcp
  $ agentauth mcp config claude-code https://mcp.example/mcp --style headers-helper
  $ agentauth mcp config vscode https://mcp.example/mcp --link
  $ agentauth mcp config claude-desktop https://mcp.example/mcp --command "$(command -v agentauth)"`;

/** `mcp config`. */
export function declareMcpConfig(group: Command, registry: Registry): void {
  const config = group
    .command("config")
    .description("Print the MCP host settings that use a server through agentauth")
    .addArgument(new Argument("<host>", "Name of the MCP host").choices(Object.keys(MCP_HOSTS)))
    .argument("<mcp_url>", "URL of the MCP server");
  addEntryFlags(config)
    .option("--link", "Print a link that installs the server, for hosts that have one")
    .addHelpText("after", HELP)
    .action(
      registry.action<McpConfigFlags>(
        async (options, context) => (await import("./run.js")).runMcpConfig(options, context),
        "host",
        "url",
      ),
    );
}
