import { Argument, type Command, Option } from "commander";
import { HOST_SCOPES } from "../../../clients/mcp-hosts/host.js";
import { WRITABLE_HOSTS } from "../../../clients/mcp-hosts.js";
import { addOutputFlags } from "../../../flags/output.js";
import type { Registry } from "../../../runtime/registry.js";
import { addEntryFlags } from "../entry-flags.js";
import type { McpAddFlags } from "./run-add.js";
import type { McpListFlags } from "./run-list.js";
import type { McpRemoveFlags } from "./run-remove.js";

const host = () => new Argument("<host>", "Name of the MCP host").choices([...WRITABLE_HOSTS]);
const scope = () =>
  new Option(
    "--scope <scope>",
    "Settings of the user, or of the project in the working folder (default: user)",
  ).choices([...HOST_SCOPES]);
const DRY_RUN = ["--dry-run", "Print the change to stdout, and change nothing"] as const;

const ADD_HELP = `
Hosts: ${WRITABLE_HOSTS.join(", ")}.

The entry contains no secret: the host starts agentauth mcp proxy. Comments and
everything else in the file stay as they are; the old content is stored beside
it, with .agentauth.bak in its name. A file that cannot be parsed is not
changed. Adding a server again changes nothing.

Examples:
  $ agentauth mcp add cursor https://mcp.example/mcp
  $ agentauth mcp add claude-code https://mcp.example/mcp --scope project
  $ agentauth mcp add codex https://mcp.example/mcp --name example --dry-run`;

/** `mcp add`. */
export function declareMcpAdd(group: Command, registry: Registry): void {
  const add = group
    .command("add")
    .description("Add a server to the settings of an MCP host")
    .addArgument(host())
    .argument("<mcp_url>", "URL of the MCP server");
  addEntryFlags(add)
    .addOption(scope())
    .option(...DRY_RUN)
    .addHelpText("after", ADD_HELP)
    .action(
      registry.action<McpAddFlags>(
        async (options, context) => (await import("./run-add.js")).runMcpAdd(options, context),
        "host",
        "url",
      ),
    );
}

/** `mcp remove`. */
export function declareMcpRemove(group: Command, registry: Registry): void {
  group
    .command("remove")
    .description("Remove a server from the settings of an MCP host")
    .addArgument(host())
    .argument("<mcp_url>", "URL of the MCP server, or its name in the host's settings")
    .addOption(scope())
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
        async (options, context) => (await import("./run-remove.js")).runMcpRemove(options, context),
        "host",
        "server",
      ),
    );
}

/** `mcp list`. */
export function declareMcpList(group: Command, registry: Registry): void {
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
        (await import("./run-list.js")).runMcpList(options, context),
      ),
    );
}
