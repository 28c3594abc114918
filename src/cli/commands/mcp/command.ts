import type { Command } from "commander";
import { parseSeconds } from "../../../profile/login-settings.js";
import { addAgentFlags, addStoredLoginFlags } from "../../flags/agent.js";
import { addOutputFlags } from "../../flags/global.js";
import { addFlags, collectRepeated } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";
import { declareHosts } from "./hosts/command.js";

export const command: CommandDeclaration = { group: "Tokens:", order: 7, names: ["mcp"], declare: declareMcp };

function declareMcp(registry: Registry): void {
  const group = registry.root.command("mcp").description("Use an MCP server with its token");
  declareTools(group, registry);
  declareCall(group, registry);
  declareProxy(group, registry);
  declareHosts(group, registry);
}

function declareTools(group: Command, registry: Registry): void {
  const tools = group.command("tools").description("List the tools of an MCP server");
  addStoredLoginFlags(addOutputFlags(tools))
    .argument("<mcp_url>", "URL of the MCP server")
    .addHelpText("after", "\nExample:\n  $ agentauth mcp tools https://mcp.example/mcp -o id")
    .action(registry.run(() => import("./run.js"), "runTools", "url"));
}

function declareCall(group: Command, registry: Registry): void {
  const call = group.command("call").description("Call a tool of an MCP server");
  addStoredLoginFlags(addOutputFlags(call))
    .option("--args <json>", "Arguments of the tool, a JSON object (- for stdin)")
    .argument("<mcp_url>", "URL of the MCP server")
    .argument("<tool>", "Name of the tool")
    .addHelpText(
      "after",
      `
The tool may take 60 seconds, or as long as --timeout allows. Each progress
notification of the tool restarts the limit.

Examples:
  $ agentauth mcp call https://mcp.example/mcp echo --args '{"text":"hello"}'
  $ agentauth mcp call https://mcp.example/mcp build --timeout 600`,
    )
    .action(registry.run(() => import("./run.js"), "runCall", "url", "tool"));
}

function declareProxy(group: Command, registry: Registry): void {
  const proxy = group.command("proxy").description("Expose a remote MCP server over stdio, with authentication");
  const header = "HTTP header of each request; a secret as env:NAME, file:PATH or exec:COMMAND (repeatable)";
  addFlags(addAgentFlags(proxy, "token"), undefined, [
    ["--header <name: value>", header, collectRepeated],
    ["--header-file <file>", "Private file with such headers, one per line; # begins a comment"],
    ["--allow-tool <glob>", "Tool that the host may list and call, and no other (repeatable)", collectRepeated],
    ["--hide-tool <glob>", "Tool that the host may neither list nor call (repeatable)", collectRepeated],
    ["--keep-alive [seconds]", "Send a ping at an interval, so that an idle session lasts (default: 30)", parseSeconds],
    ["--login", "Log in if needed, in a browser"],
    ["--no-login", "Never log in"],
  ])
    .argument("<mcp_url>", "URL of the MCP server")
    .addHelpText(
      "after",
      `
An MCP host starts this command and speaks MCP over its standard input and
output. Every message is passed on, with a token that is refreshed as needed.
Unless --login or --browser is given, the proxy does not log in: it reports the
login command to the host and exits with 4. A header Authorization replaces the
login.

It exits with 0 when the host closes standard input. -v logs the messages that
pass to stderr.

Examples:
  $ agentauth login https://mcp.example/mcp
  $ agentauth mcp add claude-code https://mcp.example/mcp
  $ agentauth mcp proxy https://mcp.example/mcp --hide-tool 'delete_*'`,
    )
    .action(registry.run(() => import("./run-proxy.js"), "runProxy", "url"));
}
