import { type Command, InvalidArgumentError, Option } from "commander";
import { isAcceptableTokenType, TOKEN_TYPE_RULE } from "../../oauth/token/token-checks.js";

const POLICY = "Security policy:";

/** Adds the flags that change the security policy of discovery. */
export function addPolicyFlags(command: Command): Command {
  return command
    .addOption(
      new Option("--allow-missing-pkce-metadata", "Accept an issuer whose metadata does not announce PKCE").helpGroup(
        POLICY,
      ),
    )
    .addOption(
      new Option("--allow-private-network", "Allow a public server to name loopback or private addresses").helpGroup(
        POLICY,
      ),
    )
    .addOption(
      new Option("--allow-cross-origin-metadata", "Follow resource metadata to another origin").helpGroup(POLICY),
    )
    .addOption(
      new Option(
        "--allow-cross-origin-endpoints",
        "Accept an issuer that sends the authorization code to another origin",
      ).helpGroup(POLICY),
    )
    .addOption(new Option("--legacy-discovery", "Use the discovery rules of MCP revision 2025-03-26").helpGroup(POLICY))
    .addOption(
      new Option("--accept-token-type <type>", "Use tokens of this type as bearer tokens")
        .argParser(tokenType)
        .helpGroup(POLICY),
    )
    .addOption(
      new Option("--strict-resource", "Require the resource to be exactly the requested URL").helpGroup(POLICY),
    )
    .addOption(
      new Option("--same-origin-endpoints", "Require all endpoints of the issuer to share its origin").helpGroup(
        POLICY,
      ),
    );
}

function tokenType(value: string): string {
  if (!isAcceptableTokenType(value)) throw new InvalidArgumentError(TOKEN_TYPE_RULE);
  return value;
}
