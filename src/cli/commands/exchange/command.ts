import { Option } from "commander";
import { addAgentFlags } from "../../flags/agent.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";
import { EXCHANGE_FORMATS, type ExchangeFlags } from "./options.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = {
  group: "Tokens:",
  order: 9,
  names: ["exchange"],
  declare: declareExchange,
};

const EXCHANGE = "Exchange:";

/** `exchange`. */
function declareExchange(registry: Registry): void {
  const option = (flags: string, about: string) => new Option(flags, about).helpGroup(EXCHANGE);
  const several = (value: string, all: string[] = []) => [...all, value];
  const command = registry.root
    .command("exchange")
    .description("Exchange a token for one with another audience (RFC 8693)");
  addAgentFlags(command, "login")
    .argument("<mcp_url>", "URL of the MCP server whose issuer exchanges the token")
    .addOption(
      option("--audience <name>", "Audience of the new token, as the issuer names it (repeatable)").argParser(several),
    )
    .addOption(option("--resource <uri>", "Resource of the new token (repeatable)").argParser(several))
    .addOption(option("--scope <scopes>", "Scopes to request (default: the issuer's choice)"))
    .addOption(
      option("--subject-token-file <file>", "File with the subject token (- for stdin; default: the server's token)"),
    )
    .addOption(option("--subject-token-type <type>", "Type of the subject token (default: access_token)"))
    .addOption(option("--actor-token-file <file>", "File with the actor token (- for stdin)"))
    .addOption(option("--actor-token-type <type>", "Type of the actor token (default: access_token)"))
    .addOption(option("--requested-token-type <type>", "Type of the new token (default: an access token or JWT)"))
    .addOption(new Option("--format <format>", "Output format (default: raw)").choices([...EXCHANGE_FORMATS]))
    .option("--login", "Log in if needed, even without a terminal")
    .option("--no-login", "Never log in")
    .addHelpText(
      "after",
      `
Uses the issuer of the server, with the client that is logged in there or that --client-id names. The subject token is
the server's own, unless AGENTAUTH_SUBJECT_TOKEN or --subject-token-file is given. The new token is not stored.

Types: access_token, id_token, refresh_token, jwt, saml1, saml2, id-jag, or a URI.

Examples:
  $ agentauth exchange https://mcp.example/mcp --audience https://api.example
  $ agentauth exchange https://mcp.example/mcp --audience billing --scope read --format headers-json
  $ agentauth exchange https://mcp.example/mcp --audience billing --subject-token-file - < token.txt`,
    )
    .action(
      registry.action<ExchangeFlags>(
        async (options, deps) => (await import("./run.js")).runExchange(options, deps),
        "url",
      ),
    );
}
