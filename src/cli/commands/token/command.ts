import { addAgentFlags, LOGIN_SWITCH, MIN_TTL, TOKEN_FORMATS } from "../../flags/agent.js";
import { addFlags } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = { group: "Tokens:", order: 2, names: ["token"], declare: declareToken };

function declareToken(registry: Registry): void {
  const token = registry.root.command("token").description("Print a bearer token for an MCP server");
  addFlags(addAgentFlags(token, "token"), undefined, [
    ["--format <format>", "Output format (default: raw)", TOKEN_FORMATS],
    MIN_TTL,
    ["--force-refresh", "Get a new token even if the stored one is still valid"],
    ...LOGIN_SWITCH,
  ])
    .argument("<mcp_url>", "URL of the MCP server")
    .argument("[operation]", "Operation that git or bazel appends (--format git or bazel): get, store or erase")
    .addHelpText(
      "after",
      `
Uses the stored token, refreshes it, or logs in (interactive terminals only).

In PowerShell: agentauth token <mcp_url> --format powershell | Out-String | Invoke-Expression
In cmd.exe:    for /f "delims=" %i in ('agentauth token <mcp_url> --format cmd') do %i

For git, below any other helper in ~/.gitconfig; the empty one keeps the token from the helpers above it:
  [credential "https://mcp.example"]
    helper =
    helper = !agentauth token https://mcp.example/mcp --format git

Examples:
  $ agentauth token https://mcp.example/mcp --format header | curl -H @- https://mcp.example/mcp
  $ agentauth token https://mcp.example/mcp --format headers-json
  $ eval "$(agentauth token https://mcp.example/mcp --format env)"
  $ agentauth token https://mcp.example/mcp --grant client-credentials --client-id my-service --issuer https://as.example`,
    )
    .action(registry.run(() => import("./run.js"), "runToken", "url", "operation"));
}
