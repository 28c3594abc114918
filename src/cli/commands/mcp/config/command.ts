import { Argument, type Command, InvalidArgumentError, Option } from "commander";
import { MCP_HOSTS } from "../../../clients/mcp-hosts.js";
import type { Registry } from "../../../runtime/registry.js";
import type { McpConfigFlags } from "./run.js";

const HELP = `
Hosts: ${Object.keys(MCP_HOSTS).join(", ")}.

The snippet holds no secret: with it the host starts agentauth mcp proxy, or, with
--style headers-helper, asks agentauth token for the header of each connection.
Standard output has the snippet and nothing else; stderr says where it belongs.

Examples:
  $ agentauth mcp config cursor https://mcp.example/mcp
  $ agentauth mcp config claude-code https://mcp.example/mcp --style headers-helper
  $ agentauth mcp config claude-desktop https://mcp.example/mcp --command "$(command -v agentauth)"`;

/** `mcp config`. */
export function declareMcpConfig(group: Command, registry: Registry): void {
  group
    .command("config")
    .description("print what an MCP host needs to use a server through agentauth")
    .addArgument(new Argument("<host>", "the host").choices(Object.keys(MCP_HOSTS)))
    .argument("<mcp_url>", "the MCP server")
    .addOption(
      new Option("--name <name>", "what the host calls the server (default: from its address)").argParser(serverName),
    )
    .addOption(
      new Option("--style <style>", "how the host gets the token (default proxy)").choices(["proxy", "headers-helper"]),
    )
    .option("--command <path>", "how the host starts agentauth, where its PATH has it not (default agentauth)")
    .option("--account-hint <account>", "which account, where several are signed in at the server")
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
