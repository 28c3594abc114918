import { Option } from "commander";
import { addAgentFlags } from "../../flags/agent.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";
import { EXCHANGE_FORMATS, type ExchangeFlags } from "./options.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Tokens:", order: 8, declare: declareExchange };

const EXCHANGE = "Exchange:";

/** `exchange`. */
function declareExchange(registry: Registry): void {
  const option = (flags: string, about: string) => new Option(flags, about).helpGroup(EXCHANGE);
  const several = (value: string, all: string[] = []) => [...all, value];
  const command = registry.root
    .command("exchange")
    .description("exchange the token of an MCP server for one for somebody else");
  addAgentFlags(command, "sign-in")
    .argument("<mcp_url>", "the MCP server, whose issuer is asked")
    .addOption(option("--audience <name>", "for whom, as the issuer calls it; may be repeated").argParser(several))
    .addOption(option("--resource <uri>", "for whom, by address; may be repeated").argParser(several))
    .addOption(option("--scope <scopes>", "scopes to ask for (default: the issuer's choice)"))
    .addOption(option("--subject-token-file <file>", "another token than the server's own; - reads stdin"))
    .addOption(option("--subject-token-type <type>", "what it is (default access_token)"))
    .addOption(option("--actor-token-file <file>", "the token of who acts for the subject; - reads stdin"))
    .addOption(option("--actor-token-type <type>", "what it is (default access_token)"))
    .addOption(option("--requested-token-type <type>", "what is wanted (default: an access token or JWT)"))
    .addOption(new Option("--format <format>", "how to print it (default raw)").choices([...EXCHANGE_FORMATS]))
    .option("--login", "sign in if needed, even without a terminal")
    .option("--no-login", "never sign in")
    .addHelpText(
      "after",
      `
RFC 8693, at the issuer of the server, with the client that is signed in there or that --client-id names. The token that
is exchanged is the server's own, else that of AGENTAUTH_SUBJECT_TOKEN or --subject-token-file; it is never kept.

Types: access_token, id_token, refresh_token, jwt, saml1, saml2, id-jag, or a URI.

Examples:
  $ agentauth exchange https://mcp.example/mcp --audience https://api.example
  $ agentauth exchange https://mcp.example/mcp --audience billing --scope read --format headers-json
  $ agentauth exchange https://mcp.example/mcp --audience billing --subject-token-file - < token.txt`,
    )
    .action(
      registry.action<ExchangeFlags>(
        async (options, context) => (await import("./run.js")).runExchange(options, context),
        "url",
      ),
    );
}
