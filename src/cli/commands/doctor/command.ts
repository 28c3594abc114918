import { Option } from "commander";
import { FORMATS } from "../../../profile/settings.js";
import { addPolicyFlags } from "../../flags/policy.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";
import type { DoctorFlags } from "./options.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Settings:", order: 4, names: ["doctor"], declare: declareDoctor };

const OUTPUT = "Output:";
const SETTINGS = "Settings:";

/** `doctor [mcp_url]`. It has no `--show-secrets`: its output is made to be shared. */
function declareDoctor(registry: Registry): void {
  addPolicyFlags(
    registry.root.command("doctor").description("Check this machine, the settings with their sources, and the store"),
  )
    .argument("[mcp_url]", "URL of an MCP server to check: its issuer, and the login there")
    .addOption(new Option("--online", "Check the service too: one small list, and its clock").helpGroup("Network:"))
    .addOption(new Option("--account <id>", "Account to list with --online").helpGroup(SETTINGS))
    .addOption(new Option("--domain <id>", "Domain to list with --online").helpGroup(SETTINGS))
    .addOption(new Option("--pool <id>", "Pool to list with --online").helpGroup(SETTINGS))
    .addOption(
      new Option("-o, --output <format>", "Output format (default: text for reading)")
        .choices([...FORMATS])
        .helpGroup(OUTPUT),
    )
    .addOption(new Option("--json", "Same as -o json").helpGroup(OUTPUT))
    .addOption(new Option("--jq <expression>", "Filter JSON with a jq expression").helpGroup(OUTPUT))
    .addHelpText(
      "after",
      `
Read-only and offline, unless --online or an MCP server is given. Each request is sent once
with a timeout of 10 seconds, unless --retries or --timeout is given.
If logins are sealed with a key in the keychain, doctor reads that key, unless --no-input is given.
The output contains no secret and can be pasted into a bug report.

Exit code: 0 if no check failed; 2 if a setting or this machine is wrong; else 8 if the
store cannot be used; else 5 if only online checks failed.

Examples:
  $ agentauth doctor
  $ agentauth doctor --online --json
  $ agentauth doctor https://mcp.example/mcp
  $ agentauth doctor --jq '.settings[] | select(.name == "base_url").source'`,
    )
    .action(
      registry.action<DoctorFlags>(async (options, deps) => (await import("./run.js")).runDoctor(options, deps), "url"),
    );
}
