import { Argument, type Command, InvalidArgumentError } from "commander";
import { HOST_SCOPES } from "../../../clients/mcp-hosts/host.js";
import { MCP_HOSTS, WRITABLE_HOSTS } from "../../../clients/mcp-hosts/hosts.js";
import { ACCOUNT_HINT } from "../../../flags/agent.js";
import { addOutputFlags } from "../../../flags/output.js";
import { addFlags, type FlagRow } from "../../../flags/values.js";
import type { Registry } from "../../../runtime/declaration.js";

/** The flags of a change of a host's settings. */
const OF_CHANGE: readonly FlagRow[] = [
  ["--scope <scope>", "Settings of the user, or of the project in the working folder (default: user)", HOST_SCOPES],
  ["--dry-run", "Print the change to stdout, and change nothing"],
];

const load = () => import("./run.js");

/** The commands for the settings of MCP hosts. */
export function declareHosts(group: Command, registry: Registry): void {
  declareAdd(group, registry);
  declareRemove(group, registry);
  declareList(group, registry);
  declareConfig(group, registry);
}

function declareAdd(group: Command, registry: Registry): void {
  const add = group
    .command("add")
    .description("Add a server to the settings of an MCP host")
    .addArgument(hostArgument(WRITABLE_HOSTS))
    .argument("<mcp_url>", "URL of the MCP server");
  addFlags(addEntryFlags(add), undefined, OF_CHANGE)
    .addHelpText(
      "after",
      `
Hosts: ${WRITABLE_HOSTS.join(", ")}.

The entry contains no secret: the host starts agentauth mcp proxy. Comments and
everything else in the file stay as they are; the old content is stored beside
it, with .agentauth.bak in its name. A file that cannot be parsed is not
changed. Adding a server again changes nothing.

Examples:
  $ agentauth mcp add cursor https://mcp.example/mcp
  $ agentauth mcp add claude-code https://mcp.example/mcp --scope project
  $ agentauth mcp add codex https://mcp.example/mcp --name example --dry-run`,
    )
    .action(registry.run(load, "runMcpAdd", "host", "url"));
}

function declareRemove(group: Command, registry: Registry): void {
  const remove = group
    .command("remove")
    .description("Remove a server from the settings of an MCP host")
    .addArgument(hostArgument(WRITABLE_HOSTS))
    .argument("<mcp_url>", "URL of the MCP server, or its name in the host's settings");
  addFlags(remove, undefined, OF_CHANGE)
    .addHelpText(
      "after",
      `
Only an entry that uses the server through agentauth is removed. The login stays:
agentauth logout <mcp_url> removes it.

Examples:
  $ agentauth mcp remove cursor https://mcp.example/mcp
  $ agentauth mcp remove codex example`,
    )
    .action(registry.run(load, "runMcpRemove", "host", "server"));
}

function declareList(group: Command, registry: Registry): void {
  addOutputFlags(group.command("list").description("List the servers in the settings of all MCP hosts"))
    .addHelpText(
      "after",
      `
The settings are those of the user, and those of the project in the working
folder. A part of a URL that may be a secret is masked. If a file cannot be read,
the others are listed and the exit code is 7.

Example:
  $ agentauth mcp list --json`,
    )
    .action(registry.run(load, "runMcpList"));
}

function declareConfig(group: Command, registry: Registry): void {
  const config = group
    .command("config")
    .description("Print the MCP host settings that use a server through agentauth")
    .addArgument(hostArgument(Object.keys(MCP_HOSTS)))
    .argument("<mcp_url>", "URL of the MCP server");
  addEntryFlags(config)
    .option("--link", "Print a link that installs the server, for hosts that have one")
    .addHelpText(
      "after",
      `
Hosts: ${Object.keys(MCP_HOSTS).join(", ")}.

The snippet contains no secret: the host starts agentauth mcp proxy or, with
--style headers-helper, runs agentauth token for the header of each connection.
The snippet is printed on stdout, and the file that it belongs to on stderr.
agentauth mcp add writes it into that file.

Examples:
  $ agentauth mcp config cursor https://mcp.example/mcp
  $ agentauth mcp config claude-code https://mcp.example/mcp --style headers-helper
  $ agentauth mcp config vscode https://mcp.example/mcp --link`,
    )
    .action(registry.run(load, "runMcpConfig", "host", "url"));
}

function hostArgument(names: readonly string[]): Argument {
  return new Argument("<host>", "Name of the MCP host").choices([...names]);
}

/** The flags of an entry in a host's settings. */
function addEntryFlags(command: Command): Command {
  return addFlags(command, undefined, [
    ["--name <name>", "Name of the server in the host's settings (default: from its URL)", serverName],
    ["--style <style>", "How the host gets the token (default: proxy)", ["proxy", "headers-helper"]],
    ["--command <path>", "Command that starts agentauth (default: this program, by its path)"],
    ACCOUNT_HINT,
  ]);
}

/** A name that every host and every language takes as it is. */
function serverName(value: string): string {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(value) || value === "__proto__") {
    throw new InvalidArgumentError('must be letters, digits, "-" and "_", 64 of them at most');
  }
  return value;
}
