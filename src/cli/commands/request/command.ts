import { addStoredLoginFlags } from "../../flags/agent.js";
import { addFlags, collectRepeated } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = { group: "Tokens:", order: 6, names: ["request"], declare: declareRequest };

function declareRequest(registry: Registry): void {
  const request = registry.root
    .command("request")
    .description("Send one HTTP request to an MCP server, with its token");
  addStoredLoginFlags(
    addFlags(request, undefined, [
      ["-X, --method <verb>", "HTTP method (default: GET, with --data POST)"],
      ["-H, --header <name: value>", "HTTP header (repeatable)", collectRepeated],
      ["-d, --data <text>", "Request body; @file reads a file, - reads stdin"],
    ]),
  )
    .argument("<mcp_url>", "URL of the MCP server")
    .addHelpText(
      "after",
      `
The token is refreshed when it expires, and is sent to the server's own origin only. The body is sent as application/json
if it is JSON, else as text/plain, unless --header "Content-Type: …" is given. --timeout limits the time until the
response starts. The response body is printed as it arrives, also for an error status: the exit code is 4 for 401, 5 for
429 and 5xx, and 6 for any other error.

Examples:
  $ agentauth request https://mcp.example/mcp -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
  $ agentauth request https://mcp.example/files -X PUT -H "Content-Type: image/png" -d @picture.png`,
    )
    .action(registry.run(() => import("./run.js"), "runRequest", "url"));
}
