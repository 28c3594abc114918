import { addAgentFlags } from "../../flags/agent.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";
import type { RequestFlags } from "./options.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Tokens:", order: 6, declare: declareRequest };

/** `request`. */
function declareRequest(registry: Registry): void {
  addAgentFlags(registry.root.command("request").description("send one HTTP request to an MCP server, with its token"))
    .argument("<mcp_url>", "the MCP server")
    .option("-X, --method <verb>", "the method (default GET, with --data POST)")
    .option("-H, --header <name: value>", "a header; may be repeated", (header: string, all: string[] = []) => [
      ...all,
      header,
    ])
    .option("-d, --data <text>", "the body; @file reads a file, - reads stdin")
    .option("-i, --include", "print the status line and the headers before the body")
    .option("--login", "sign in if needed, even without a terminal")
    .option("--no-login", "never sign in")
    .addHelpText(
      "after",
      `
The token is renewed when it ends, and goes to the server's own origin alone. The body is sent as application/json when
it is JSON, else as text/plain; --header "Content-Type: …" says otherwise. --timeout is for the time until the answer
begins. The body of the answer is printed as it comes, also that of an error: 401 then ends with 4, 429 and 5xx with 5,
any other error with 6.

Examples:
  $ agentauth request https://mcp.example/mcp -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
  $ agentauth request https://mcp.example/files -X PUT -H "Content-Type: image/png" -d @picture.png -i`,
    )
    .action(
      registry.action<RequestFlags>(
        async (options, context) => (await import("./run.js")).runRequest(options, context),
        "url",
      ),
    );
}
