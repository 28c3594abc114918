import { Argument, type Command, InvalidArgumentError, Option } from "commander";
import { MCP_HOSTS } from "../../../clients/mcp-hosts.js";
import type { Registry } from "../../../runtime/registry.js";
import type { McpConfigFlags } from "./run.js";

const HELP = `
Hosts: ${Object.keys(MCP_HOSTS).join(", ")}.

The snippet contains no secret: the host starts agentauth mcp proxy or, with
--style headers-helper, runs agentauth token for the header of each connection.
The snippet is printed on stdout, and the file that it belongs to on stderr.

Examples:
  $ agentauth mcp config cursor https://mcp.example/mcp
  $ agentauth mcp config claude-code https://mcp.example/mcp --style headers-helper
  $ agentauth mcp config claude-desktop https://mcp.example/mcp --command "$(command -v agentauth)"`;

/** `mcp config`. */
export function declareMcpConfig(group: Command, registry: Registry): void {
  group
    .command("config")
    .description("Print the MCP host settings that use a server through agentauth")
    .addArgument(new Argument("<host>", "Name of the MCP host").choices(Object.keys(MCP_HOSTS)))
    .argument("<mcp_url>", "URL of the MCP server")
    .addOption(
      new Option("--name <name>", "Name of the server in the host's settings (default: from its URL)").argParser(
        serverName,
      ),
    )
    .addOption(
      new Option("--style <style>", "How the host gets the token (default: proxy)").choices([
        "proxy",
        "headers-helper",
      ]),
    )
    .option("--command <path>", "Command that starts agentauth, if not in the host's PATH (default: agentauth)")
    .option("--account-hint <account>", "Account to use, if several are logged in at the server")
    .addHelpText("after", HELP)
    .action(
      registry.action<McpConfigFlags>(
        async (options, context) => (await import("./run.js")).runMcpConfig(options, context),
        "host",
        "url",
      ),
    );
}

function serverName(value: string): string {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(value)) {
    throw new InvalidArgumentError('must be letters, digits, "-" and "_", 64 of them at most');
  }
  return value;
}
