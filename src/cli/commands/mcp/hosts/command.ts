import { Argument, type Command, InvalidArgumentError } from "commander";
import { HOST_SCOPES, MCP_HOSTS } from "../../../clients/hosts.js";
import { ACCOUNT_HINT } from "../../../flags/agent.js";
import { addOutputFlags } from "../../../flags/global.js";
import { addFlags, type FlagRow } from "../../../flags/values.js";
import type { Registry } from "../../../runtime/declaration.js";

const OF_CHANGE: readonly FlagRow[] = [
  ["--scope <scope>", "Settings of the user, or of the project in the working folder (default: user)", HOST_SCOPES],
  ["--dry-run", "Print the change to stdout, and change nothing"],
];
const NAME: FlagRow = [
  "--name <name>",
  "Name of the server in the host's settings (default: from its URL)",
  serverName,
];
const OF_ENTRY: readonly FlagRow[] = [
  NAME,
  ["--command <path>", "Command that starts agentauth (default: the program that runs, by its paths)"],
  ACCOUNT_HINT,
];

export function declareHosts(group: Command, registry: Registry): void {
  const load = () => import("./run.js");
  const hosts = Object.keys(MCP_HOSTS);
  const host = () => new Argument("<host>", "Name of the MCP host").choices(hosts);
  const add = group
    .command("add")
    .description("Add a server to the settings of an MCP host")
    .addArgument(host())
    .argument("<mcp_url>", "URL of the MCP server");
  addFlags(add, undefined, [...OF_ENTRY, ...OF_CHANGE])
    .addHelpText(
      "after",
      `
Hosts: ${hosts.join(", ")}.

The entry contains no secret. Everything else in the file stays as it is; the old
content is stored beside it. Codex is changed by codex mcp add. For goose, and
where codex is not installed, the entry is printed with the file for it.

Examples:
  $ agentauth mcp add cursor https://mcp.example/mcp
  $ agentauth mcp add claude-code https://mcp.example/mcp --scope project
  $ agentauth mcp add codex https://mcp.example/mcp --name example --dry-run`,
    )
    .action(registry.run(load, "runMcpAdd", "host", "url"));
  const remove = group
    .command("remove")
    .description("Remove a server from the settings of an MCP host")
    .addArgument(host())
    .argument("[mcp_url]", "URL of the MCP server");
  addFlags(remove, undefined, [
    ["--name <name>", "Name of the server in the host's settings", serverName],
    ...OF_CHANGE,
  ])
    .addHelpText(
      "after",
      `
Only an entry that uses the server through agentauth is removed. The login stays:
agentauth logout <mcp_url> removes it.

Examples:
  $ agentauth mcp remove cursor https://mcp.example/mcp
  $ agentauth mcp remove codex --name example`,
    )
    .action(registry.run(load, "runMcpRemove", "host", "url"));
  addOutputFlags(group.command("list").description("List the servers that MCP hosts use through agentauth"))
    .addHelpText(
      "after",
      `
The settings are those of the user and of the project in the working folder. If
some cannot be read, the others are listed and the exit code is 7.

Example:
  $ agentauth mcp list --json`,
    )
    .action(registry.run(load, "runMcpList"));
  const config = group
    .command("config")
    .description("Print the MCP host settings that use a server through agentauth")
    .addArgument(host())
    .argument("<mcp_url>", "URL of the MCP server");
  addFlags(config, undefined, OF_ENTRY)
    .addHelpText(
      "after",
      `
The snippet contains no secret: the host starts agentauth mcp proxy. The file
that it belongs to is printed on stderr; agentauth mcp add writes it there.

Examples:
  $ agentauth mcp config cursor https://mcp.example/mcp
  $ agentauth mcp config claude-desktop https://mcp.example/mcp --command "$(command -v agentauth)"`,
    )
    .action(registry.run(load, "runMcpConfig", "host", "url"));
}

/** A name that every host and every language takes as it is. */
function serverName(value: string): string {
  if (/^[A-Za-z0-9_-]{1,64}$/.test(value) && value !== "__proto__") return value;
  throw new InvalidArgumentError('must be letters, digits, "-" and "_", 64 of them at most');
}
