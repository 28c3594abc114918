import { snippetText } from "../../../clients/mcp-hosts/snippet.js";
import { MCP_HOSTS } from "../../../clients/mcp-hosts.js";
import type { CommandContext } from "../../../runtime/context.js";
import { type EntryFlags, entryOf, sayNextSteps, usage } from "../entry.js";

/** Options of `mcp config`. */
export interface McpConfigFlags extends EntryFlags {
  /** Print a link in place of the settings. */
  link?: boolean;
}

/** `mcp config`: prints the host's settings for a server, and on stderr the file that they belong to. */
export async function runMcpConfig(options: McpConfigFlags, context: CommandContext): Promise<undefined> {
  const { io } = context;
  const made = entryOf(options, context);
  const { host, name, entry } = made;
  if (options.link === true) {
    await io.stdout.write(`${linkOf(options, host.link?.(name, entry))}\n`);
    io.say("open this link: the host asks before it adds the server");
  } else {
    await io.stdout.write(snippetText(host.language, { [host.key]: { [name]: entry } }));
    io.say(`merge this into ${host.file}`);
  }
  sayNextSteps(made, options, context);
  return undefined;
}

function linkOf(options: McpConfigFlags, link: string | undefined): string {
  if (link !== undefined) return link;
  const supported = Object.keys(MCP_HOSTS).filter((key) => MCP_HOSTS[key]?.link);
  throw usage(
    `${options.host} has no link that installs a server`,
    `leave --link out; these hosts have one: ${supported.join(", ")}`,
  );
}
