import { FORMATS } from "../../../profile/settings.js";
import { addDocumentFlags } from "../../flags/global.js";
import { addFlags } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = { group: "Settings:", order: 4, names: ["doctor"], declare: declareDoctor };

function declareDoctor({ root, run }: Registry): void {
  const command = root
    .command("doctor")
    .description("Check this machine, the settings with their sources, and the store")
    .argument("[mcp_url]", "URL of an MCP server to check: its issuer and its clock");
  addFlags(command, "Network:", [["--online", "Check the service too: one small list, and its clock"]]);
  addFlags(command, "Settings:", [["--all", "Print the settings by default too, not only those that are set"]]);
  addDocumentFlags(command, FORMATS)
    .addHelpText(
      "after",
      `
Read-only and offline, unless --online or an MCP server is given. Each request is sent once
with a timeout of 10 seconds, unless --retries or --timeout is given.
If logins are sealed with a key in the keychain, doctor reads that key, unless --no-input is given.
The output contains no secret and can be pasted into a bug report. What it warns of and
what failed is printed last.

Exit code: 0 if no check failed; 2 if a setting or this machine is wrong; else 8 if the
store cannot be used; else 5 if only online checks failed.

Examples:
  $ agentauth doctor
  $ agentauth doctor --online --json
  $ agentauth doctor https://mcp.example/mcp
  $ agentauth doctor --jq '.settings[] | select(.name == "base_url").source'`,
    )
    .action(run(() => import("./run.js"), "runDoctor", "url"));
}
