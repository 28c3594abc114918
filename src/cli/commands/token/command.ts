import { Option } from "commander";
import { addAgentFlags, TOKEN_FORMATS, type TokenFlags } from "../../flags/agent.js";
import { wholeNumber } from "../../flags/values.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Tokens:", order: 2, declare: declareToken };

/** `token`. */
function declareToken(registry: Registry): void {
  const { root } = registry;
  addAgentFlags(root.command("token").description("print a bearer token for an MCP server"))
    .argument("<mcp_url>", "the MCP server")
    .argument("[operation]", "with --format git or bazel: get, store or erase, as they add it to a helper's words")
    .addOption(new Option("--format <format>", "how to print it (default raw)").choices([...TOKEN_FORMATS]))
    .addOption(
      new Option(
        "--min-ttl <seconds>",
        "how long it must still be valid, at most 9/10 of its life (default 60)",
      ).argParser(wholeNumber(0)),
    )
    .option("--force-refresh", "get a new token even if the stored one is still valid")
    .option("--login", "sign in if needed, even without a terminal")
    .option("--no-login", "never sign in")
    .addHelpText(
      "after",
      `
From the store, else by refresh, else by signing in where a person is there.

Examples:
  $ curl -H "Authorization: Bearer $(agentauth token https://mcp.example/mcp)" …
  $ agentauth token https://mcp.example/mcp --format headers-json
  $ eval "$(agentauth token https://mcp.example/mcp --format env)"
  $ agentauth token https://mcp.example/mcp --grant client-credentials --client-id my-service
  $ git config credential.https://mcp.example.helper '!agentauth token https://mcp.example/mcp --format git'`,
    )
    .action(
      registry.action<TokenFlags>(
        async (options, context) => (await import("./run.js")).runToken(options, context),
        "url",
        "operation",
      ),
    );
}
