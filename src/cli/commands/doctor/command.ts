import { Option } from "commander";
import { FORMATS } from "../../flags/formats.js";
import { addOverrides } from "../../flags/policy.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";
import type { DoctorFlags } from "./options.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Settings:", order: 4, declare: declareDoctor };

const OUTPUT = "Output:";
const SETTINGS = "Settings:";

/** `doctor [mcp_url]`. It has no `--show-secrets`: what it prints is to be passed on. */
function declareDoctor(registry: Registry): void {
  addOverrides(
    registry.root
      .command("doctor")
      .description("check this machine, the settings and the store, and say where each setting comes from"),
  )
    .argument("[mcp_url]", "an MCP server: look for its issuer, and for a login there")
    .addOption(new Option("--online", "ask the service too: one small list, and its clock").helpGroup("Network:"))
    .addOption(new Option("--account <id>", "as lists take it").helpGroup(SETTINGS))
    .addOption(new Option("--domain <id>", "as lists take it").helpGroup(SETTINGS))
    .addOption(new Option("--pool <id>", "as lists take it").helpGroup(SETTINGS))
    .addOption(
      new Option("-o, --output <format>", "how to print (default: a text to read)")
        .choices([...FORMATS])
        .helpGroup(OUTPUT),
    )
    .addOption(new Option("--json", "the same as -o json").helpGroup(OUTPUT))
    .addOption(new Option("--jq <expression>", "filter JSON with a jq expression").helpGroup(OUTPUT))
    .addHelpText(
      "after",
      `
Asks nothing over the network but with --online or an MCP server, and changes nothing. Each
request is made once and given 10 seconds, unless --retries and --timeout say otherwise.
Where logins are sealed with a key in the keychain, that is asked too, unless --no-input is given.
What it prints holds no secret, and can be pasted into a bug report.

Ends with 0 when nothing failed; with 2 when a setting or this machine is wrong; else
with 8 when the store cannot be used; else with 5 when only online checks failed.

Examples:
  $ agentauth doctor
  $ agentauth doctor --online --json
  $ agentauth doctor https://mcp.example/mcp
  $ agentauth doctor --jq '.settings[] | select(.name == "base_url").source'`,
    )
    .action(
      registry.action<DoctorFlags>(
        async (options, context) => (await import("./run.js")).runDoctor(options, context),
        "url",
      ),
    );
}
