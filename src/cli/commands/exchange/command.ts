import { addLoginSettings, addStoredLoginFlags } from "../../flags/agent.js";
import { addFlags, collectRepeated } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";
import type { ExchangeFlags } from "./run.js";

export const command: CommandDeclaration = {
  group: "Tokens:",
  order: 9,
  names: ["exchange"],
  declare: declareExchange,
};

const EXCHANGE = "Exchange:";
const FORMATS: NonNullable<ExchangeFlags["format"]>[] = ["raw", "header", "headers-json", "json", "env"];

function declareExchange(registry: Registry): void {
  const command = registry.root
    .command("exchange")
    .description("Exchange a token for one with another audience (RFC 8693)");
  addFlags(addLoginSettings(command, "exchange"), EXCHANGE, [
    ["--audience <name>", "Audience of the new token, as the issuer names it (repeatable)", collectRepeated],
    ["--resource <uri>", "Resource of the new token (repeatable)", collectRepeated],
    ["--scope <scopes>", "Scopes to request (default: the issuer's choice)"],
    ["--subject-token-file <file>", "File with the subject token (- for stdin; default: the server's token)"],
    ["--subject-token-type <type>", "Type of the subject token (default: access_token)"],
  ]);
  addStoredLoginFlags(addFlags(command, undefined, [["--format <format>", "Output format (default: raw)", FORMATS]]))
    .argument("<mcp_url>", "URL of the MCP server whose issuer exchanges the token")
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
    .action(registry.run(() => import("./run.js"), "runExchange", "url"));
}
