import type { HostScope } from "../../../clients/mcp-hosts/host.js";
import type { Servers } from "../../../clients/mcp-hosts/language.js";
import { originOf } from "../../../clients/mcp-hosts/origin.js";
import { parseMcpUrlArgument } from "../../../clients/mcp-url.js";
import type { GlobalFlags } from "../../../flags/global.js";
import type { CommandContext } from "../../../runtime/context.js";
import { hostOf, usage } from "../entry.js";
import { applyChange, machineOf, quoteName, readSettings, settingsFileOf } from "./settings.js";

/** Options of `mcp remove`. */
export interface McpRemoveFlags extends GlobalFlags {
  host: string;
  /** The URL of the server, or its name in the host's settings. */
  server: string;
  scope?: HostScope;
  dryRun?: boolean;
}

/** `mcp remove`: removes an entry of ours from the host's own file. */
export async function runMcpRemove(options: McpRemoveFlags, context: CommandContext): Promise<undefined> {
  const { scope = "user", dryRun: isDryRun = false } = options;
  const host = hostOf(options.host);
  const machine = machineOf(context);
  const path = settingsFileOf(options.host, host, scope, machine);
  const settings = await readSettings(host, path, scope, machine);
  const name = nameIn(settings.servers, options, path);
  if (name === undefined) {
    context.io.say(`${options.host} has no such server in ${path}: nothing was changed`);
    return undefined;
  }
  const backup = await applyChange(settings, { name }, isDryRun, context);
  if (isDryRun) context.io.say("nothing was changed (--dry-run)");
  else context.io.say(`removed ${quoteName(name)} from ${path}; the old content is in ${backup}`);
  return undefined;
}

/**
 * The name of the entry to remove.
 *
 * @throws `AgentAuthError` `usage` if several entries fit, or if the entry is not by agentauth
 */
function nameIn(servers: Servers, { server, host }: McpRemoveFlags, path: string): string | undefined {
  if (Object.hasOwn(servers, server)) {
    if (originOf(servers[server]).isByAgentauth) return server;
    throw usage(
      `the server ${quoteName(server)} in ${path} does not use agentauth, which removes only its own entries`,
      `remove it in ${host}, or in the file`,
    );
  }
  if (!server.includes(":")) return undefined;
  const url = parseMcpUrlArgument(server);
  const names = Object.keys(servers).filter((name) => {
    const origin = originOf(servers[name]);
    return origin.isByAgentauth && origin.url === url;
  });
  if (names.length < 2) return names[0];
  throw usage(`${path} has several entries for this server`, `name one of them: ${names.map(quoteName).join(", ")}`);
}
