import { hasValues } from "../../../clients/mcp-hosts/edit.js";
import type { HostScope } from "../../../clients/mcp-hosts/host.js";
import { originOf } from "../../../clients/mcp-hosts/origin.js";
import type { CommandContext } from "../../../runtime/context.js";
import { type EntryFlags, entryOf, type HostEntry, sayNextSteps, usage } from "../entry.js";
import { applyChange, type HostSettings, machineOf, quoteName, readSettings, settingsFileOf } from "./settings.js";

/** Options of `mcp add`. */
export interface McpAddFlags extends EntryFlags {
  scope?: HostScope;
  dryRun?: boolean;
}

/** `mcp add`: writes the entry for a server into the host's own file. */
export async function runMcpAdd(options: McpAddFlags, context: CommandContext): Promise<undefined> {
  const { scope = "user", dryRun: isDryRun = false } = options;
  const made = entryOf(options, context);
  const machine = machineOf(context);
  const path = settingsFileOf(options.host, made.host, scope, machine);
  const settings = await readSettings(made.host, path, scope, machine);
  const present = presentName(made, settings, options);
  if (present !== undefined) {
    context.io.say(`${options.host} already has this server, as ${quoteName(present)} in ${path}: nothing was changed`);
    return undefined;
  }
  const { name, entry, otherStyles } = made;
  const verb = Object.hasOwn(settings.servers, name) ? "updated" : "added";
  const backup = await applyChange(settings, { name, entry, otherStyles }, isDryRun, context);
  if (isDryRun) {
    context.io.say("nothing was changed (--dry-run)");
    return undefined;
  }
  const stored = backup === undefined ? "" : `; the old content is in ${backup}`;
  context.io.say(`${verb} ${quoteName(name)} in ${path}${stored}`);
  context.io.say(`restart ${options.host} if it does not show the server`);
  sayNextSteps(made, options, context);
  return undefined;
}

/**
 * The name under which the host already has the server, by the same command.
 *
 * @throws `AgentAuthError` `usage` if the name belongs to another server
 */
function presentName(
  { name, entry, url, otherStyles }: HostEntry,
  { servers, file }: HostSettings,
  options: McpAddFlags,
) {
  if (!Object.hasOwn(servers, name)) {
    if (options.name !== undefined) return undefined;
    const { name: _name, ...values } = entry;
    return Object.keys(servers).find(
      (other) => originOf(servers[other]).url === url && hasValues(servers[other], values, otherStyles),
    );
  }
  const stored = servers[name];
  if (hasValues(stored, entry, otherStyles)) return name;
  const { url: owner, isByAgentauth } = originOf(stored);
  if (isByAgentauth && owner === url) return undefined;
  throw usage(
    `the name ${quoteName(name)} belongs to another server in ${file.path}`,
    "--name <name> sets another name; agentauth mcp list shows the names in use",
  );
}
