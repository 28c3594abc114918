import { existsSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { isAgentAuthError, usageError } from "../../../../errors.js";
import { quote, shellWord } from "../../../../redact.js";
import { filesOf, HOST_SCOPES, type HostScope, MCP_HOSTS, settingsPath } from "../../../clients/mcp-hosts/hosts.js";
import { merged } from "../../../clients/mcp-hosts/json.js";
import { parseMcpUrlArgument } from "../../../clients/mcp-url.js";
import type { GlobalFlags } from "../../../flags/global.js";
import type { OutputFlags } from "../../../flags/output.js";
import { rowColumns } from "../../../output/columns.js";
import { formatOf, printRows } from "../../../output/writer.js";
import type { CommandContext } from "../../../runtime/context.js";
import { EXIT_CODES } from "../../../runtime/exit-codes.js";
import { type EntryFlags, entryOf, type HostEntry, originOf, printableUrl, sayNextSteps } from "./entry.js";
import { type HostSettings, machineOf, openFile, openProgram, openSettings } from "./settings.js";

/** Options of a command that changes settings: which ones, and whether it does. */
interface ChangeFlags {
  host: string;
  scope?: HostScope;
  dryRun?: boolean;
}

/** `mcp add`: adds the entry for a server to the host's settings. */
export async function runMcpAdd(options: EntryFlags & ChangeFlags, context: CommandContext): Promise<undefined> {
  const { io } = context;
  const made = entryOf(options, context);
  const settings = await openSettings(options.host, options.scope, context);
  if (settings === undefined) {
    io.say(`nothing was changed: ${options.host} has no command here that adds a server`);
    return runMcpConfig(options, context);
  }
  const { name } = made;
  const present = presentName(made, settings, options);
  if (present !== undefined) {
    io.say(
      `${options.host} already has this server, as ${quoteName(present)} in ${settings.where}: nothing was changed`,
    );
    return;
  }
  const verb = Object.hasOwn(settings.servers, name) ? "updated" : "added";
  const done = await apply(settings, [name, made], options, context);
  if (done === undefined) return;
  io.say(`${verb} ${quoteName(name)} in ${settings.where}${done}`);
  io.say(`restart ${options.host} if it does not show the server`);
  sayNextSteps(made, options, context);
}

/** Changes the settings, or prints what would change. @returns what else was done, for users */
async function apply(
  settings: HostSettings,
  [name, made]: [name: string, made?: HostEntry],
  { dryRun }: ChangeFlags,
  { io }: CommandContext,
): Promise<string | undefined> {
  if (dryRun !== true) return settings.change(name, made);
  const command = settings.command?.(name, made).map((word) => shellWord(word));
  if (command) await io.stdout.write(`${command.join(" ")}\n`);
  // The entry alone: the lines around it may hold secrets of other servers.
  else if (made) await io.stdout.write(snippetOf(made));
  io.say(`${made ? "this would go into" : `${quoteName(name)} would be removed from`} ${settings.where} (--dry-run)`);
  return undefined;
}

/**
 * The name under which the host already has the server, by the same command.
 *
 * @throws `AgentAuthError` `usage` if the name belongs to another server
 */
function presentName(
  { name, entry, url }: HostEntry,
  { servers, where }: HostSettings,
  options: EntryFlags,
): string | undefined {
  const isSame = (stored: unknown) => isDeepStrictEqual(merged(stored, entry), stored);
  if (!Object.hasOwn(servers, name)) {
    if (options.name !== undefined) return undefined;
    return Object.keys(servers).find((one) => originOf(servers[one]).url === url && isSame(servers[one]));
  }
  if (isSame(servers[name])) return name;
  const owner = originOf(servers[name]);
  if (owner.isByAgentauth && owner.url === url) return undefined;
  throw usageError(
    `the name ${quoteName(name)} belongs to another server in ${where}`,
    "--name <name> sets another name; agentauth mcp list shows the names in use",
  );
}

/** Options of `mcp remove`: the URL of the server or its name, or the name by a flag. */
interface McpRemoveFlags extends GlobalFlags, ChangeFlags {
  server?: string;
  name?: string;
}

/** `mcp remove`: removes an entry of ours from the host's settings. */
export async function runMcpRemove(options: McpRemoveFlags, context: CommandContext): Promise<undefined> {
  const { host, server = "" } = options;
  const url = server.includes(":") ? parseMcpUrlArgument(server) : undefined;
  const named = options.name ?? (url === undefined && server !== "" ? server : undefined);
  if (url === undefined && named === undefined)
    throw usageError("no server is named", `agentauth mcp remove ${host} <mcp_url>, or --name <name>`);
  const settings = await openSettings(host, options.scope, context);
  const hint = `remove it in ${host}, or in its file`;
  if (settings === undefined) throw usageError(`${host} has no command here that removes a server`, hint);
  const { servers, where } = settings;
  const names = Object.keys(servers).filter((name) => {
    const origin = originOf(servers[name]);
    return origin.isByAgentauth && (url ?? origin.url) === origin.url && (named ?? name) === name;
  });
  if (names.length > 1)
    throw usageError(
      `${where} has several entries for this server`,
      `--name names one: ${names.map(quoteName).join(", ")}`,
    );
  if (names.length === 0 && named !== undefined && Object.hasOwn(servers, named))
    throw usageError(
      `the server ${quoteName(named)} in ${where} does not use ${url ?? "agentauth"} by agentauth`,
      hint,
    );
  const [name] = names;
  const done = name === undefined ? "" : await apply(settings, [name], options, context);
  if (name === undefined) context.io.say(`${host} has no such server in ${where}: nothing was changed`);
  else if (done !== undefined) context.io.say(`removed ${quoteName(name)} from ${where}${done}`);
  return undefined;
}

/** Options of `mcp list`. */
type McpListFlags = GlobalFlags & OutputFlags;

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
  /** The file, or the program that lists them. */
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

/** `mcp list`: the servers of every host that has settings here; exit code 7 if some cannot be read. */
export async function runMcpList(options: McpListFlags, context: CommandContext): Promise<number> {
  const all: HostServer[] = [];
  let isComplete = true;
  for (const { host, scope, open } of sourcesOf(context)) {
    try {
      const { servers = {}, where = "" } = (await open()) ?? {};
      for (const [name, entry] of Object.entries(servers)) {
        const { url, isByAgentauth } = originOf(entry);
        const printable = url === undefined ? null : printableUrl(url);
        all.push({ host, scope, name, url: printable, by_agentauth: isByAgentauth, file: where });
      }
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      isComplete = false;
      context.io.warn(error.message);
    }
  }
  const isId = formatOf(options, context.settings(), context.io) === "id";
  await printRows(isId ? all.map(({ name }) => ({ id: name })) : all, SERVERS, options, context);
  if (all.length === 0) context.io.say("no MCP host has a server in its settings here");
  return isComplete ? EXIT_CODES.ok : EXIT_CODES.partial;
}

interface SettingsSource extends Pick<HostServer, "host" | "scope"> {
  open(): Promise<HostSettings | undefined>;
}

/** The settings of all hosts. In the user's own folder, the files of the project are those of the user. */
function sourcesOf(context: CommandContext): SettingsSource[] {
  const machine = machineOf(context);
  return Object.entries(MCP_HOSTS).flatMap(([host, row]): SettingsSource[] => {
    const { program } = row;
    if (program !== undefined) return [{ host, scope: "user", open: () => openProgram(program, context) }];
    const files = HOST_SCOPES.flatMap((scope) => filesOf(row, scope, machine).map((file) => ({ file, scope })));
    const found = files.filter(
      ({ file }, at) => existsSync(file) && files.findIndex((one) => one.file === file) === at,
    );
    return found.map(({ file, scope }) => ({ host, scope, open: async () => openFile(row, file, scope, context) }));
  });
}

/** `mcp config`: prints the host's settings for a server, and on stderr the file that they belong to. */
export async function runMcpConfig(options: EntryFlags, context: CommandContext): Promise<undefined> {
  const made = entryOf(options, context);
  const { other } = made.host;
  await context.io.stdout.write(snippetOf(made));
  const paths = HOST_SCOPES.flatMap((scope) => settingsPath(made.host, scope, machineOf(context)) ?? []);
  context.io.say(`merge this into ${other?.file ?? (paths.join(", or ") || `the settings of ${options.host}`)}`);
  sayNextSteps(made, options, context);
}

function snippetOf({ host, name, entry }: HostEntry): string {
  return host.other?.print(name, entry) ?? `${JSON.stringify({ [host.key]: { [name]: entry } }, null, 2)}\n`;
}

/** A name from a host's settings, for messages. */
function quoteName(name: string): string {
  return quote(name, 80);
}
