import { usageError } from "../../../../errors.js";
import { loadSpawn, withoutOurs } from "../../../../platform/system.js";
import { requireUserFolder } from "../../../../profile/settings.js";
import { quote } from "../../../../redact.js";
import { type HostMachine, type HostScope, type McpHost, settingsPath } from "../../../clients/mcp-hosts/hosts.js";
import { changeServer, merged, SettingsSyntaxError, serversIn } from "../../../clients/mcp-hosts/json.js";
import { changeHostFile, readHostFile } from "../../../clients/mcp-hosts/settings-file.js";
import type { CommandContext } from "../../../runtime/context.js";
import { type HostEntry, hostOf } from "./entry.js";

/** The settings of a host that a command reads and changes. */
export interface HostSettings {
  /** Where they are, for users. */
  where: string;
  servers: Readonly<Record<string, unknown>>;
  /** Writes a server, or removes it where nothing is made. @returns what else was done, for users */
  change(name: string, made?: HostEntry): Promise<string>;
  /** The command that {@link HostSettings.change} runs, where it runs one. */
  command?(name: string, made?: HostEntry): readonly string[];
}

/** What a run knows of its machine. Few files need both folders, and either may be missing. */
export function machineOf({ io: { env }, machine }: CommandContext): HostMachine {
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
export async function openSettings(
  name: string,
  scope: HostScope = "user",
  context: CommandContext,
): Promise<HostSettings | undefined> {
  const host = hostOf(name);
  const machine = machineOf(context);
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
export function openFile({ key }: McpHost, path: string, scope: HostScope, context: CommandContext): HostSettings {
  const project = scope === "project" ? machineOf(context).folder : undefined;
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
export async function openProgram(program: string, context: CommandContext): Promise<HostSettings | undefined> {
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
    const [out, err, code] = await Promise.all([textOf(child.stdout), textOf(child.stderr), ended]);
    if (code === 0) return out;
    const line = err.split("\n").find((text) => /^error/i.test(text)) ?? err.trim();
    throw usageError(`${words.slice(0, 3).join(" ")} failed: ${quote(line, 200)}`, "run it by hand to see why");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

async function textOf(stream: AsyncIterable<unknown> | null): Promise<string> {
  let text = "";
  for await (const chunk of stream ?? []) text += String(chunk);
  return text;
}

/** Adds the file and the line to an error of the settings. */
function namingFile<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof SettingsSyntaxError)) throw error;
    const where = error.line === undefined ? path : `line ${error.line} of ${path}`;
    throw usageError(
      `the host's settings in ${where} cannot be changed: ${error.message}`,
      "correct the file, or change it by hand: agentauth mcp config <host> <mcp_url> prints the entry",
    );
  }
}
