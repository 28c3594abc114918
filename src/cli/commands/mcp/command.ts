import type { Command } from "commander";
import { addAgentFlags } from "../../flags/agent.js";
import { addOutputFlags } from "../../flags/output.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";
import { declareMcpConfig } from "./config/command.js";
import type { McpFlags, ProxyFlags } from "./options.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Tokens:", order: 7, declare: declareMcp };

/** `mcp tools`, `mcp call`, `mcp proxy`, `mcp config`. */
function declareMcp(registry: Registry): void {
  const group = registry.root.command("mcp").description("use an MCP server with its token");
  declareTools(group, registry);
  declareCall(group, registry);
  declareProxy(group, registry);
  declareMcpConfig(group, registry);
}

function declareTools(group: Command, registry: Registry): void {
  addOutputFlags(addAgentFlags(group.command("tools").description("list the tools of an MCP server")))
    .argument("<mcp_url>", "the MCP server")
    .option("--login", "sign in if needed, even without a terminal")
    .option("--no-login", "never sign in")
    .addHelpText("after", "\nExample:\n  $ agentauth mcp tools https://mcp.example/mcp -o id")
    .action(
      registry.action<McpFlags>(
        async (options, context) => (await import("./run.js")).runTools(options, context),
        "url",
      ),
    );
}

function declareCall(group: Command, registry: Registry): void {
  addOutputFlags(addAgentFlags(group.command("call").description("call a tool of an MCP server")))
    .argument("<mcp_url>", "the MCP server")
    .argument("<tool>", "the tool")
    .option("--args <json>", "its arguments, a JSON object; - reads stdin")
    .option("--login", "sign in if needed, even without a terminal")
    .option("--no-login", "never sign in")
    .addHelpText(
      "after",
      `
The tool may take 60 seconds, or what --timeout says. One that tells of its progress
has as long again each time it does.

Examples:
  $ agentauth mcp call https://mcp.example/mcp echo --args '{"text":"hello"}'
  $ agentauth mcp call https://mcp.example/mcp build --timeout 600`,
    )
    .action(
      registry.action<McpFlags>(
        async (options, context) => (await import("./run.js")).runCall(options, context),
        "url",
        "tool",
      ),
    );
}

function declareProxy(group: Command, registry: Registry): void {
  addAgentFlags(group.command("proxy").description("bring an MCP server to a host that only starts commands"))
    .argument("<mcp_url>", "the MCP server")
    .option("--login", "sign in if that is needed, in a browser that is started for it")
    .option("--no-login", "never sign in")
    .addHelpText(
      "after",
      `
A host starts it and speaks MCP over its standard input and output; every message
goes to the server and back as it is, with a token that is renewed as needed.
Unless --login or --browser is given nobody is asked to sign in: the host is told
the command that does it, and it ends with 4.

It ends with 0 when the host closes standard input. -v tells on stderr which
messages pass.

Examples:
  $ agentauth login https://mcp.example/mcp
  $ agentauth mcp config claude-code https://mcp.example/mcp
  $ agentauth mcp proxy https://mcp.example/mcp`,
    )
    .action(
      registry.action<ProxyFlags>(
        async (options, context) => (await import("./run-proxy.js")).runProxy(options, context),
        "url",
      ),
    );
}
