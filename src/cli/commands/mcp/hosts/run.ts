import { existsSync } from "node:fs";
import { isAgentAuthError, usageError } from "../../../../errors.js";
import { hasValues, languageOf } from "../../../clients/mcp-hosts/edit.js";
import { filesOf, HOST_SCOPES, type HostScope } from "../../../clients/mcp-hosts/host.js";
import { MCP_HOSTS } from "../../../clients/mcp-hosts/hosts.js";
import { parseMcpUrlArgument } from "../../../clients/mcp-url.js";
import type { GlobalFlags } from "../../../flags/global.js";
import type { OutputFlags } from "../../../flags/output.js";
import { rowColumns } from "../../../output/columns.js";
import { formatOf, printRows } from "../../../output/writer.js";
import type { CommandContext } from "../../../runtime/context.js";
import { EXIT_CODES } from "../../../runtime/exit-codes.js";
import { type EntryFlags, entryOf, type HostEntry, originOf, printableUrl, sayNextSteps } from "./entry.js";
import { applyChange, type HostSettings, machineOf, openSettings, quoteName, readSettings } from "./settings.js";

/** Which settings a command changes, and whether it does. */
interface ChangeFlags {
  scope?: HostScope;
  dryRun?: boolean;
}

/** Options of `mcp add`. */
export interface McpAddFlags extends Omit<EntryFlags, "scope">, ChangeFlags {}

/** `mcp add`: writes the entry for a server into the host's own file. */
export async function runMcpAdd(options: McpAddFlags, context: CommandContext): Promise<undefined> {
  const { io } = context;
  const made = entryOf(options, context);
  const settings = await openSettings(options.host, options.scope, context);
  const { path } = settings.file;
  const present = presentName(made, settings, options);
  if (present !== undefined) {
    io.say(`${options.host} already has this server, as ${quoteName(present)} in ${path}: nothing was changed`);
    return;
  }
  const { name, entry, otherStyles } = made;
  const verb = Object.hasOwn(settings.servers, name) ? "updated" : "added";
  const backup = await applyChange(settings, { name, entry, otherStyles }, options.dryRun === true, context);
  if (options.dryRun === true) return;
  const stored = backup === undefined ? "" : `; the old content is in ${backup}`;
  io.say(`${verb} ${quoteName(name)} in ${path}${stored}`);
  io.say(`restart ${options.host} if it does not show the server`);
  sayNextSteps(made, options, context);
}

/**
 * The name under which the host already has the server, by the same command.
 *
 * @throws `AgentAuthError` `usage` if the name belongs to another server
 */
function presentName(made: HostEntry, { servers, file }: HostSettings, options: McpAddFlags): string | undefined {
  const { name, entry, url, otherStyles } = made;
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
  throw usageError(
    `the name ${quoteName(name)} belongs to another server in ${file.path}`,
    "--name <name> sets another name; agentauth mcp list shows the names in use",
  );
}

/** Options of `mcp remove`. */
export interface McpRemoveFlags extends GlobalFlags, ChangeFlags {
  host: string;
  /** The URL of the server, or its name in the host's settings. */
  server: string;
}

/** `mcp remove`: removes an entry of ours from the host's own file. */
export async function runMcpRemove(options: McpRemoveFlags, context: CommandContext): Promise<undefined> {
  const { io } = context;
  const settings = await openSettings(options.host, options.scope, context);
  const { path } = settings.file;
  const name = nameToRemove(settings, options);
  if (name === undefined) {
    io.say(`${options.host} has no such server in ${path}: nothing was changed`);
    return;
  }
  const backup = await applyChange(settings, { name }, options.dryRun === true, context);
  if (options.dryRun !== true) io.say(`removed ${quoteName(name)} from ${path}; the old content is in ${backup}`);
}

/**
 * The name of the entry to remove.
 *
 * @throws `AgentAuthError` `usage` if several entries fit, or if the entry is not by agentauth
 */
function nameToRemove(settings: HostSettings, { server, host }: McpRemoveFlags): string | undefined {
  const { servers, file } = settings;
  if (Object.hasOwn(servers, server)) {
    if (originOf(servers[server]).isByAgentauth) return server;
    throw usageError(
      `the server ${quoteName(server)} in ${file.path} does not use agentauth, which removes only its own entries`,
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
  const hint = `name one of them: ${names.map(quoteName).join(", ")}`;
  throw usageError(`${file.path} has several entries for this server`, hint);
}

/** Options of `mcp list`. */
export type McpListFlags = GlobalFlags & OutputFlags;

/** A server in the settings of an MCP host. */
interface HostServer {
  /** The host. */
  host: string;
  /** Whether the settings are those of the user or of the project. */
  scope: HostScope;
  /** The name of the server in the settings. */
  name: string;
  /** The address of the server, a part that may be a secret masked; null for a server that the host starts by itself. */
  url: string | null;
  /** Whether the host uses the server through agentauth. */
  by_agentauth: boolean;
  /** The file. */
  file: string;
}

const SERVERS = rowColumns(
  [
    { path: "host", header: "HOST" },
    { path: "scope", header: "SCOPE" },
    { path: "name", header: "NAME", kind: "name" },
    { path: "url", header: "URL" },
    { path: "by_agentauth", header: "AGENTAUTH", kind: "bool" },
  ],
  [{ path: "file", header: "FILE" }],
);

/** `mcp list`: the servers of every host that has settings here; exit code 7 if a file cannot be read. */
export async function runMcpList(options: McpListFlags, context: CommandContext): Promise<number> {
  const { servers, isComplete } = await readAll(context);
  const isId = formatOf(options, context.settings(), context.io) === "id";
  await printRows(isId ? servers.map(({ name }) => ({ id: name })) : servers, SERVERS, options, context);
  if (servers.length === 0) context.io.say("no MCP host has a server in its settings here");
  return isComplete ? EXIT_CODES.ok : EXIT_CODES.partial;
}

async function readAll(context: CommandContext): Promise<{ servers: HostServer[]; isComplete: boolean }> {
  const machine = machineOf(context);
  const all: HostServer[] = [];
  let isComplete = true;
  for (const [name, host] of Object.entries(MCP_HOSTS)) {
    // In the user's own folder, the files of the project are those of the user.
    const seen = new Set<string>();
    for (const scope of HOST_SCOPES) {
      for (const file of filesOf(host, scope, machine).filter((path) => existsSync(path) && !seen.has(path))) {
        seen.add(file);
        try {
          const { servers } = await readSettings(host, file, scope, machine);
          for (const [own, entry] of Object.entries(servers)) {
            const { url, isByAgentauth } = originOf(entry);
            const printable = url === undefined ? null : printableUrl(url);
            all.push({ host: name, scope, name: own, url: printable, by_agentauth: isByAgentauth, file });
          }
        } catch (error) {
          if (!isAgentAuthError(error)) throw error;
          isComplete = false;
          context.io.warn(error.message);
        }
      }
    }
  }
  return { servers: all, isComplete };
}

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
    const language = await languageOf(host);
    await io.stdout.write(language.print({ [host.key]: { [name]: entry } }));
    io.say(`merge this into ${host.file}`);
  }
  sayNextSteps(made, options, context);
}

function linkOf(options: McpConfigFlags, link: string | undefined): string {
  if (link !== undefined) return link;
  const supported = Object.keys(MCP_HOSTS).filter((key) => MCP_HOSTS[key]?.link);
  throw usageError(
    `${options.host} has no link that installs a server`,
    `leave --link out; these hosts have one: ${supported.join(", ")}`,
  );
}
