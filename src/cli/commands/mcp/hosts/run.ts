import { existsSync } from "node:fs";
import { text } from "node:stream/consumers";
import { isDeepStrictEqual } from "node:util";
import { isAgentAuthError, usageError } from "../../../../errors.js";
import { shownUrl } from "../../../../http/address.js";
import { isJsonObject } from "../../../../http/strict-json.js";
import { loadSpawn, withoutOurs } from "../../../../platform.js";
import { requireUserFolder } from "../../../../profile/settings.js";
import { quote, Redactor, shellWord } from "../../../../redact.js";
import type { HostMachine, HostScope, McpHost } from "../../../clients/hosts.js";
import { HOST_SCOPES, MCP_HOSTS, settingsFiles, settingsPath } from "../../../clients/hosts.js";
import { isUsable, parseMcpUrlArgument } from "../../../clients/login-first.js";
import type { GlobalFlags, OutputFlags } from "../../../flags/global.js";
import { rowColumns } from "../../../output/columns.js";
import { chooseFormat, printRows } from "../../../output/writer.js";
import type { CommandContext } from "../../../runtime/context.js";
import { EXIT_CODES } from "../../../runtime/exit-codes.js";
import { changeHostFile, changeServer, merged, readHostFile, SettingsSyntaxError, serversIn } from "./settings.js";

/** Options of a command that changes settings: which ones, and whether it does. */
interface ChangeFlags {
  host: string;
  scope?: HostScope;
  dryRun?: boolean;
}

/** `mcp add`: adds the entry for a server to the host's settings. */
export async function runMcpAdd(options: EntryFlags & ChangeFlags, context: CommandContext): Promise<undefined> {
  const { io } = context;
  const made = buildEntry(options, context);
  const settings = await openSettings(options.host, options.scope, context);
  if (settings === undefined) {
    io.say(`nothing was changed: ${options.host} has no command here that adds a server`);
    return runMcpConfig(options, context);
  }
  const { name } = made;
  const { servers, where } = settings;
  const stored = Object.hasOwn(servers, name) ? servers[name] : undefined;
  if (isDeepStrictEqual(merged(stored, made.entry), stored)) {
    io.say(`${options.host} already has this server, as ${quote(name, 80)} in ${where}: nothing was changed`);
    return;
  }
  if (stored !== undefined && readServer(stored) !== made.url)
    throw usageError(
      `the name ${quote(name, 80)} belongs to another server in ${where}`,
      "--name <name> sets another name",
    );
  const done = await apply(settings, [name, made], options, context);
  if (done === undefined) return;
  io.say(`${stored === undefined ? "added" : "updated"} ${quote(name, 80)} in ${where}${done}`);
  io.say(`restart ${options.host} if it does not show the server`);
  await sayNextSteps(made, options, context);
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
  else if (made) await io.stdout.write(formatSnippet(made));
  io.say(`${made ? "this would go into" : `${quote(name, 80)} would be removed from`} ${settings.where} (--dry-run)`);
  return undefined;
}

/** `mcp remove`: removes an entry of ours from the host's settings. */
export async function runMcpRemove(
  options: GlobalFlags & ChangeFlags & { url?: string; name?: string },
  context: CommandContext,
): Promise<undefined> {
  const { host, name: named } = options;
  const url = options.url === undefined ? undefined : parseMcpUrlArgument(options.url);
  if (url === undefined && named === undefined)
    throw usageError("no server is named", `agentauth mcp remove ${host} <mcp_url>, or --name <name>`);
  const settings = await openSettings(host, options.scope, context);
  const hint = `remove it in ${host}, or in its file`;
  if (settings === undefined) throw usageError(`${host} has no command here that removes a server`, hint);
  const { servers, where } = settings;
  const names = Object.keys(servers).filter((name) => {
    const used = readServer(servers[name]);
    return used !== undefined && (url ?? used) === used && (named ?? name) === name;
  });
  if (names.length > 1)
    throw usageError(
      `${where} has several entries for this server`,
      `--name names one: ${names.map((one) => quote(one, 80)).join(", ")}`,
    );
  if (names.length === 0 && named !== undefined && Object.hasOwn(servers, named))
    throw usageError(
      `the server ${quote(named, 80)} in ${where} does not use ${url ?? "agentauth"} by agentauth`,
      hint,
    );
  const [name] = names;
  const done = name === undefined ? "" : await apply(settings, [name], options, context);
  if (name === undefined) context.io.say(`${host} has no such server in ${where}: nothing was changed`);
  else if (done !== undefined) context.io.say(`removed ${quote(name, 80)} from ${where}${done}`);
}

/** A server that an MCP host uses through agentauth. */
interface HostServer {
  /** The host. */
  host: string;
  /** Whether the settings are those of the user or of the project. */
  scope: HostScope;
  /** The name of the server in the settings. */
  name: string;
  /** The address of the server. */
  url: string;
  /** The file, or the program that lists them. */
  file: string;
}

const SERVERS = rowColumns(
  [
    { path: "host", header: "HOST" },
    { path: "scope", header: "SCOPE" },
    { path: "name", header: "NAME", kind: "name" },
    { path: "url", header: "URL", kind: "name" },
  ],
  [{ path: "file", header: "FILE" }],
);

/** `mcp list`: the servers that hosts use through agentauth; exit code 7 if some settings cannot be read. */
export async function runMcpList(options: GlobalFlags & OutputFlags, context: CommandContext): Promise<number> {
  const all: HostServer[] = [];
  let isComplete = true;
  for (const { host, scope, open } of settingsSources(context)) {
    try {
      const { servers = {}, where = "" } = (await open()) ?? {};
      for (const [name, entry] of Object.entries(servers)) {
        const url = readServer(entry);
        if (url !== undefined) all.push({ host, scope, name, url: shownUrl(url), file: where });
      }
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      isComplete = false;
      context.io.warn(error.message);
    }
  }
  const isId = chooseFormat(options, context.settings(), context.io) === "id";
  await printRows(isId ? all.map(({ name }) => ({ id: name })) : all, SERVERS, options, context);
  if (all.length === 0) context.io.say("no MCP host uses a server through agentauth here");
  return isComplete ? EXIT_CODES.ok : EXIT_CODES.partial;
}

type SettingsSource = Pick<HostServer, "host" | "scope"> & { open(): Promise<HostSettings | undefined> };

/** The settings of all hosts. In the user's own folder, the files of the project are those of the user. */
function settingsSources(context: CommandContext): SettingsSource[] {
  const machine = describeMachine(context);
  return Object.entries(MCP_HOSTS).flatMap(([host, row]): SettingsSource[] => {
    const { program } = row;
    if (program !== undefined) return [{ host, scope: "user", open: () => openProgram(program, context) }];
    const files = HOST_SCOPES.flatMap((scope) => settingsFiles(row, scope, machine).map((file) => ({ file, scope })));
    const found = files.filter(
      ({ file }, at) => existsSync(file) && files.findIndex((one) => one.file === file) === at,
    );
    return found.map(({ file, scope }) => ({ host, scope, open: async () => openFile(row, file, scope, context) }));
  });
}

/** `mcp config`: prints the host's settings for a server, and on stderr the file that they belong to. */
export async function runMcpConfig(options: EntryFlags, context: CommandContext): Promise<undefined> {
  const made = buildEntry(options, context);
  const { other } = made.host;
  await context.io.stdout.write(formatSnippet(made));
  const paths = HOST_SCOPES.flatMap((scope) => settingsPath(made.host, scope, describeMachine(context)) ?? []);
  context.io.say(`merge this into ${other?.file ?? (paths.join(", or ") || `the settings of ${options.host}`)}`);
  await sayNextSteps(made, options, context);
}

function formatSnippet({ host, name, entry }: HostEntry): string {
  return host.other?.print(name, entry) ?? `${JSON.stringify({ [host.key]: { [name]: entry } }, null, 2)}\n`;
}

interface HostSettings {
  /** Where they are, for users. */
  where: string;
  servers: Readonly<Record<string, unknown>>;
  /** Writes a server, or removes it where nothing is made. @returns what else was done, for users */
  change(name: string, made?: HostEntry): Promise<string>;
  /** The command that {@link HostSettings.change} runs, where it runs one. */
  command?(name: string, made?: HostEntry): readonly string[];
}

/** What a run knows of its machine. Few files need both folders, and either may be missing. */
function describeMachine({ io: { env }, machine }: CommandContext): HostMachine {
  const { platform = process.platform } = machine ?? {};
  return {
    platform,
    env,
    get folder() {
      return machine?.folder ?? process.cwd();
    },
    get home() {
      return (platform === "win32" && env["USERPROFILE"]) || requireUserFolder(env);
    },
  };
}

/**
 * The settings of a host that a command changes; undefined where nothing here can change them.
 *
 * @throws `AgentAuthError` `usage` where the host has none in this scope, and as {@link openFile}
 */
async function openSettings(
  name: string,
  scope: HostScope = "user",
  context: CommandContext,
): Promise<HostSettings | undefined> {
  const host = MCP_HOSTS[name] as McpHost;
  const machine = describeMachine(context);
  const path = settingsPath(host, scope, machine);
  if (path !== undefined) return openFile(host, path, scope, context);
  if (host.other && scope === "user")
    return host.program === undefined ? undefined : openProgram(host.program, context);
  throw usageError(
    `${name} has no settings that can be changed for the scope ${scope} on ${machine.platform}`,
    `agentauth mcp config ${name} <mcp_url> prints the entry`,
  );
}

/** @throws `AgentAuthError` `usage` for settings that cannot be parsed, with the line; `store_failed` */
function openFile({ key }: McpHost, path: string, scope: HostScope, context: CommandContext): HostSettings {
  const project = scope === "project" ? describeMachine(context).folder : undefined;
  const servers = namingFile(path, () => serversIn(key, readHostFile(path, project)));
  return {
    where: path,
    servers,
    async change(name, made) {
      const entry = made && merged(servers[name], made.entry);
      const change = (text: string) => changeServer(key, text, name, entry);
      const backup = namingFile(path, () => changeHostFile(path, project, change));
      return backup === undefined ? "" : `; the old content is in ${backup}`;
    },
  };
}

/** The settings that the program of a host lists and changes; undefined where it is not installed. */
async function openProgram(program: string, context: CommandContext): Promise<HostSettings | undefined> {
  const listed = await runProgram([program, "mcp", "list", "--json"], context);
  if (listed === undefined) return undefined;
  const rows = JSON.parse(listed) as { name: string; transport: Record<string, unknown> }[];
  const servers = rows.map(({ name, transport: { command, args, env, url } }) => {
    return [name, { ...(url ? { url } : { command, args }), ...(env ? { env } : {}) }] as const;
  });
  const command = (name: string, made?: HostEntry) => {
    if (made === undefined) return [program, "mcp", "remove", name];
    const env = Object.entries(made.env).flatMap(([key, value]) => ["--env", `${key}=${value}`]);
    return [program, "mcp", "add", name, ...env, "--", ...made.words];
  };
  return {
    where: `the settings of ${program}`,
    servers: Object.fromEntries(servers),
    command,
    async change(name, made) {
      await runProgram(command(name, made), context);
      return "";
    },
  };
}

/** What a program prints; undefined where it is not installed. @throws `AgentAuthError` `usage` where it fails */
async function runProgram(words: readonly string[], { io, signal }: CommandContext): Promise<string | undefined> {
  const [program = "", ...rest] = words;
  const spawn = await loadSpawn();
  const child = spawn(program, rest, { env: withoutOurs(io.env), stdio: ["ignore", "pipe", "pipe"], signal });
  const ended = new Promise<number | null>((resolve, reject) => child.on("error", reject).on("close", resolve));
  try {
    const [out, err, code] = await Promise.all([text(child.stdout ?? []), text(child.stderr ?? []), ended]);
    if (code === 0) return out;
    const line = err.split("\n").find((one) => /^error/i.test(one)) ?? err.trim();
    throw usageError(`${words.slice(0, 3).join(" ")} failed: ${quote(line, 200)}`, "run it by hand to see why");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Adds the file to an error of the settings. */
function namingFile<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof SettingsSyntaxError)) throw error;
    throw usageError(
      `the host's settings in ${path} cannot be changed: ${error.message}`,
      "correct the file, or change it by hand: agentauth mcp config <host> <mcp_url> prints the entry",
    );
  }
}

/** Options of the commands that make an entry of a host's settings. */
export interface EntryFlags extends GlobalFlags {
  host: string;
  url: string;
  name?: string;
  command?: string;
  accountHint?: string;
  scope?: string;
}

interface HostEntry {
  host: McpHost;
  url: string;
  name: string;
  /** The entry as the host wants it written down. */
  entry: Record<string, unknown>;
  /** The words that start the proxy. */
  words: readonly string[];
  /** The variables of this run that decide which store the entry uses; they are not secret. */
  env: Readonly<Record<string, string>>;
}

/** The entry that uses a server through agentauth; it holds no secret. @throws `AgentAuthError` `usage` */
export function buildEntry(options: EntryFlags, context: CommandContext): HostEntry {
  // The parser accepts only the names of hosts.
  const host = MCP_HOSTS[options.host] as McpHost;
  const url = parseMcpUrlArgument(options.url);
  checkUrl(url);
  const name = options.name ?? nameFor(url);
  const all = context.io.env;
  const names = ["AGENTAUTH_HOME", "AGENTAUTH_STORE"];
  const env = Object.fromEntries(names.flatMap((key) => (all[key] ? [[key, all[key]]] : [])));
  const words = [...startWords(options, context.program), "mcp", "proxy", url, ...loginFlags(options, context)];
  const [command = "", ...args] = words;
  return { host, url, name, env, words, entry: host.proxy(name, { command, args, env }) };
}

/** The server that an entry, in the shape of any host, uses through agentauth; undefined for any other entry. */
export function readServer(entry: unknown): string | undefined {
  if (!isJsonObject(entry)) return undefined;
  const words = [entry["command"] ?? entry["cmd"], entry["args"]].flat().filter((word) => typeof word === "string");
  // The command may have any name, which --command sets, or be Node and our script, or npx.
  const verb = [1, 2, 3, 5].find((at) => words[at] === "mcp" && words[at + 1] === "proxy");
  const proxied = verb === undefined ? undefined : words[verb + 2];
  return proxied !== undefined && URL.canParse(proxied) ? proxied : undefined;
}

/** Reports what else a user must do for an entry to work. */
export async function sayNextSteps(
  { url }: Pick<HostEntry, "url">,
  options: EntryFlags,
  context: CommandContext,
): Promise<void> {
  const { io, program } = context;
  // Caches of npx, `pnpm dlx`, `yarn dlx` and bunx are emptied at some time.
  const isCached = program !== undefined && /[\\/](?:_npx|dlx|dlx-\d+|bunx-[^\\/]+)[\\/]/.test(program[1]);
  if (isCached && options.command === undefined && options.scope !== "project")
    io.say("the host starts agentauth from a cache that may be emptied: install it, and add this again");
  if (await isLoggedIn(url, context)) return;
  const words = [url, ...loginFlags(options, context)].map((word) => shellWord(word));
  io.say(`log in once: agentauth login ${words.join(" ")}`);
}

async function isLoggedIn(url: string, context: CommandContext): Promise<boolean> {
  const logins = await context
    .agent()
    .then((agent) => agent.status(url))
    .catch(() => []);
  return logins.some(isUsable);
}

/** The words that start this program. The settings of a project are shared: paths of this machine would be wrong for others. */
function startWords({ command, scope }: EntryFlags, program: CommandContext["program"]): readonly string[] {
  if (command !== undefined) return [command];
  return program === undefined || scope === "project" ? ["agentauth"] : program;
}

/** The flags that select the login. The profile is always named: which one is selected may change. */
function loginFlags({ accountHint }: EntryFlags, context: CommandContext): string[] {
  const account = accountHint === undefined ? [] : ["--account-hint", accountHint];
  return ["--profile", context.settings().profile.value, ...account];
}

const SECRET_NAME =
  /(?<![a-z\d])(?:token|key|apikey|secret|password|passwd|pass|pwd|auth|authorization|bearer|credential|signature|sig|code|jwt|session)s?(?![a-z\d])/i;
/** Longer than a word, with digits among its letters. */
const SECRET_VALUE = /^(?=.*\d)(?=.*[a-z])[\w\-.~+/=]{20,}$/i;
/** What hosts replace in their settings: a variable of the environment, a file, or the output of a command. */
const PLACEHOLDER = /[${`]/;

/** Settings are stored, copied and shared, and so would be a secret in the URL. */
function checkUrl(url: string): void {
  for (const [name, value] of new URL(url).searchParams) {
    const words = name.replace(/([a-z\d])([A-Z])/g, "$1 $2");
    if (!SECRET_NAME.test(words) && !SECRET_VALUE.test(value) && new Redactor().redact(value) === value) continue;
    throw usageError(
      `the parameter ${quote(name, 40)} of the MCP server's URL looks like a secret, which must not be in a host's settings`,
      "leave it out: agentauth sends a token in a header; if it was a secret, replace it",
    );
  }
  // A host would send a secret of its environment or of a file to the server.
  const [found] = PLACEHOLDER.exec(url) ?? [];
  if (found === undefined) return;
  throw usageError(
    `the MCP server's URL ${quote(url, 80)} has a ${quote(found)}, with which hosts mark what they replace in their settings`,
    `write %${found.charCodeAt(0).toString(16).toUpperCase()} for it`,
  );
}

/** A name that every host accepts: the server's host name, with hyphens. */
function nameFor(url: string): string {
  const words = new URL(url).hostname.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "");
  const name = words.slice(0, 60);
  return /[A-Za-z]/.test(name) ? name : `mcp-${name}`;
}
