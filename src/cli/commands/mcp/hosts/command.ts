import { Argument, type Command, InvalidArgumentError, Option } from "commander";
import { HOST_SCOPES } from "../../../clients/mcp-hosts/host.js";
import { MCP_HOSTS, WRITABLE_HOSTS } from "../../../clients/mcp-hosts/hosts.js";
import { addOutputFlags } from "../../../flags/output.js";
import type { Registry } from "../../../runtime/declaration.js";
import type { McpAddFlags, McpConfigFlags, McpListFlags, McpRemoveFlags } from "./run.js";

const DRY_RUN = ["--dry-run", "Print the change to stdout, and change nothing"] as const;

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
  addEntryFlags(add)
    .addOption(scopeOption())
    .option(...DRY_RUN)
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
    .action(
      registry.action<McpAddFlags>(
        async (options, context) => (await import("./run.js")).runMcpAdd(options, context),
        "host",
        "url",
      ),
    );
}

function declareRemove(group: Command, registry: Registry): void {
  group
    .command("remove")
    .description("Remove a server from the settings of an MCP host")
    .addArgument(hostArgument(WRITABLE_HOSTS))
    .argument("<mcp_url>", "URL of the MCP server, or its name in the host's settings")
    .addOption(scopeOption())
    .option(...DRY_RUN)
    .addHelpText(
      "after",
      `
Only an entry that uses the server through agentauth is removed. The login stays:
agentauth logout <mcp_url> removes it.

Examples:
  $ agentauth mcp remove cursor https://mcp.example/mcp
  $ agentauth mcp remove codex example`,
    )
    .action(
      registry.action<McpRemoveFlags>(
        async (options, context) => (await import("./run.js")).runMcpRemove(options, context),
        "host",
        "server",
      ),
    );
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
    .action(
      registry.action<McpListFlags>(async (options, context) =>
        (await import("./run.js")).runMcpList(options, context),
      ),
    );
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
  $ agentauth mcp config vscode https://mcp.example/mcp --link
  $ agentauth mcp config claude-desktop https://mcp.example/mcp --command "$(command -v agentauth)"`,
    )
    .action(
      registry.action<McpConfigFlags>(
        async (options, context) => (await import("./run.js")).runMcpConfig(options, context),
        "host",
        "url",
      ),
    );
}

function hostArgument(names: readonly string[]): Argument {
  return new Argument("<host>", "Name of the MCP host").choices([...names]);
}

function scopeOption(): Option {
  const about = "Settings of the user, or of the project in the working folder (default: user)";
  return new Option("--scope <scope>", about).choices([...HOST_SCOPES]);
}

/** The flags of an entry in a host's settings. */
function addEntryFlags(command: Command): Command {
  return command
    .addOption(
      new Option("--name <name>", "Name of the server in the host's settings (default: from its URL)").argParser(
        serverName,
      ),
    )
    .addOption(
      new Option("--style <style>", "How the host gets the token (default: proxy)").choices([
        "proxy",
        "headers-helper",
      ]),
    )
    .option(
      "--command <path>",
      "Command that starts agentauth (default: agentauth; on Windows and macOS Node and the script, by their paths)",
    )
    .option("--account-hint <account>", "Account to use, if several are logged in at the server");
}

/** A name that every host and every language takes as it is. */
function serverName(value: string): string {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(value) || value === "__proto__") {
    throw new InvalidArgumentError('must be letters, digits, "-" and "_", 64 of them at most');
  }
  return value;
}
