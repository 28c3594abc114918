import { usageError } from "../../../../errors.js";
import { requireUserFolder } from "../../../../profile/settings.js";
import { quote } from "../../../../redact.js";
import { changeServer, type SettingsChange, serversIn } from "../../../clients/mcp-hosts/edit.js";
import {
  HOST_SCOPES,
  type HostMachine,
  type HostScope,
  lineAt,
  type McpHost,
  type Servers,
  SettingsSyntaxError,
  settingsPath,
} from "../../../clients/mcp-hosts/host.js";
import { type HostFile, readHostFile, writeHostFile } from "../../../clients/mcp-hosts/settings-file.js";
import type { CommandContext } from "../../../runtime/context.js";
import { hostOf } from "./entry.js";

/** The settings of a host in one scope. */
export interface HostSettings {
  host: McpHost;
  file: HostFile;
  servers: Servers;
}

/** What a run knows of its machine. */
export function machineOf({ io: { env }, machine }: CommandContext): HostMachine {
  const { platform = process.platform } = machine ?? {};
  return {
    platform,
    env,
    // Few files need them, and either may be missing.
    get folder() {
      return machine?.folder ?? process.cwd();
    },
    get home() {
      return (platform === "win32" && env["USERPROFILE"]) || requireUserFolder(env);
    },
  };
}

/**
 * Reads the settings of a host that a command changes.
 *
 * @throws `AgentAuthError` `usage` where the host has no file in this scope, and as {@link readSettings}
 */
export async function openSettings(
  name: string,
  scope: HostScope = "user",
  context: CommandContext,
): Promise<HostSettings> {
  const host = hostOf(name);
  const machine = machineOf(context);
  const path = settingsPath(host, scope, machine);
  if (path !== undefined) return readSettings(host, path, scope, machine);
  const other = HOST_SCOPES.find((one) => settingsPath(host, one, machine) !== undefined);
  throw usageError(
    `${name} has no settings file for the scope ${scope} on ${machine.platform}`,
    other === undefined ? `agentauth mcp config ${name} <mcp_url> prints the entry` : `use --scope ${other}`,
  );
}

/**
 * Reads the settings of a host.
 *
 * @throws `AgentAuthError` `usage` for settings that cannot be parsed, with the line; `store_failed`
 */
export async function readSettings(
  host: McpHost,
  path: string,
  scope: HostScope,
  machine: HostMachine,
): Promise<HostSettings> {
  const file = readHostFile(path, scope === "project" ? machine.folder : undefined);
  const servers = await namingFile(file, () => serversIn(host, file.text));
  return { host, file, servers };
}

/** Changes one server, or prints the change. @returns the path of the backup, where there is one */
export async function applyChange(
  { host, file }: HostSettings,
  change: SettingsChange,
  isDryRun: boolean,
  { io, redactor }: CommandContext,
): Promise<string | undefined> {
  const text = await namingFile(file, () => changeServer(host, file.text, change));
  if (!isDryRun) return writeHostFile(file, text);
  await io.stdout.write(redactor.redact(previewOf(file.path, file.text, text)));
  io.say("nothing was changed (--dry-run)");
  return undefined;
}

/**
 * The change of a text, as lines with "-" and "+" under the file and the line. Only what changes is shown: the lines around
 * it may hold secrets of other servers.
 */
function previewOf(path: string, before: string, after: string): string {
  const shortest = Math.min(before.length, after.length);
  let start = 0;
  while (start < shortest && before[start] === after[start]) start++;
  let end = 0;
  while (end < shortest - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end++;
  const removed = linesOf(before.slice(start, before.length - end));
  const added = linesOf(after.slice(start, after.length - end));
  const head = [`--- ${path}`, `+++ ${path}`, `@@ line ${lineAt(before, start)} @@`];
  return `${[...head, ...removed.map((line) => `-${line}`), ...added.map((line) => `+${line}`)].join("\n")}\n`;
}

/** Without the comma that separates the change from what is before it, and without empty lines around it. */
function linesOf(text: string): string[] {
  const lines = text.replace(/^,(?=\s)/, "").split(/\r?\n/);
  const isText = (line: string) => /\S/.test(line);
  return lines.slice(lines.findIndex(isText), lines.findLastIndex(isText) + 1);
}

/** An error of the settings with their file and line. */
async function namingFile<T>({ path }: HostFile, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SettingsSyntaxError)) throw error;
    const where = error.line === undefined ? path : `line ${error.line} of ${path}`;
    throw usageError(
      `the host's settings in ${where} cannot be changed: ${error.message}`,
      "correct the file, or change it by hand: agentauth mcp config <host> <mcp_url> prints the entry",
    );
  }
}

/** A name from a host's settings, for messages. */
export function quoteName(name: string): string {
  return quote(name, 80);
}
