import { type AgentFlags, addAgentFlags } from "../agent-flags.js";
import { addOutputFlags } from "../flags.js";
import type { Registry } from "../program.js";
import type { OutputFlags } from "./lists.js";

/** What an `mcp` command was told. */
export interface McpFlags extends AgentFlags, OutputFlags {
  url: string;
  tool: string;
  args?: string;
}

/** `mcp tools`, `mcp call`. */
export function declareMcp(registry: Registry): void {
  const group = registry.root.command("mcp").helpGroup("Tokens:").description("use an MCP server with its token");
  addOutputFlags(addAgentFlags(group.command("tools").description("list the tools of an MCP server")))
    .argument("<mcp_url>", "the MCP server")
    .option("--login", "sign in if that is needed, also where nobody seems to be there")
    .option("--no-login", "never sign in")
    .addHelpText("after", "\nExample:\n  $ agentauth mcp tools https://mcp.example/mcp -o id")
    .action(
      registry.action<McpFlags>(
        async (options, deps) => (await import("../run-mcp.js")).runTools(options, deps),
        "url",
      ),
    );
  addOutputFlags(addAgentFlags(group.command("call").description("call a tool of an MCP server")))
    .argument("<mcp_url>", "the MCP server")
    .argument("<tool>", "the tool")
    .option("--args <json>", "its arguments, a JSON object; - reads stdin")
    .option("--login", "sign in if that is needed, also where nobody seems to be there")
    .option("--no-login", "never sign in")
    .addHelpText("after", `\nExample:\n  $ agentauth mcp call https://mcp.example/mcp echo --args '{"text":"hello"}'`)
    .action(
      registry.action<McpFlags>(
        async (options, deps) => (await import("../run-mcp.js")).runCall(options, deps),
        "url",
        "tool",
      ),
    );
}
