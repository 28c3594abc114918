import { type Command, Option } from "commander";

const RULES = "Rules to lift or tighten, for servers that you trust:";

/** Adds the flags that change the rules of discovery. */
export function addOverrides(command: Command): Command {
  return command
    .addOption(
      new Option("--allow-missing-pkce-metadata", "accept an issuer that does not say that it supports PKCE").helpGroup(
        RULES,
      ),
    )
    .addOption(
      new Option(
        "--allow-private-network",
        "let a public server lead to this machine and into private networks",
      ).helpGroup(RULES),
    )
    .addOption(
      new Option("--allow-cross-origin-metadata", "follow resource metadata to another origin").helpGroup(RULES),
    )
    .addOption(
      new Option(
        "--allow-cross-origin-endpoints",
        "accept an issuer that sends the code of a login to another origin",
      ).helpGroup(RULES),
    )
    .addOption(
      new Option("--legacy-discovery", "follow the discovery rules of MCP revision 2025-03-26").helpGroup(RULES),
    )
    .addOption(new Option("--strict-resource", "the resource must be the very address that was asked").helpGroup(RULES))
    .addOption(
      new Option("--same-origin-endpoints", "take only issuers whose endpoints are all at their own origin").helpGroup(
        RULES,
      ),
    );
}
