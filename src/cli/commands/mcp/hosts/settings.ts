import { userFolder } from "../../../../profile/home.js";
import { quote } from "../../../../redact.js";
import { changeServer, type SettingsChange, serversIn } from "../../../clients/mcp-hosts/edit.js";
import { HOST_SCOPES, type HostScope, type McpHost } from "../../../clients/mcp-hosts/host.js";
import { type Servers, SettingsSyntaxError } from "../../../clients/mcp-hosts/language.js";
import { fileOf, type HostMachine } from "../../../clients/mcp-hosts/places.js";
import { previewOf } from "../../../clients/mcp-hosts/preview.js";
import { type HostFile, readHostFile, writeHostFile } from "../../../clients/mcp-hosts/settings-file.js";
import type { CommandContext } from "../../../runtime/context.js";
import { usage } from "../entry.js";

/** The settings of a host in one scope. */
export interface HostSettings {
  host: McpHost;
  file: HostFile;
  servers: Servers;
}

/** What a run knows of its machine. */
export function machineOf({ io: { env }, machine }: CommandContext): HostMachine {
  const { platform, folder } = machine ?? { platform: process.platform, folder: process.cwd() };
  return {
    platform,
    folder,
    env,
    home: platform === "win32" ? (env["USERPROFILE"] ?? userFolder(env)) : userFolder(env),
  };
}

/** The file of a host. @throws `AgentAuthError` `usage` where the host has none in this scope */
export function settingsFileOf(name: string, host: McpHost, scope: HostScope, machine: HostMachine): string {
  const path = fileOf(host, scope, machine);
  if (path !== undefined) return path;
  const others = HOST_SCOPES.filter((one) => fileOf(host, one, machine) !== undefined);
  throw usage(
    `${name} has no settings file for the scope ${scope} on ${machine.platform}`,
    others.length > 0
      ? `use --scope ${others.join(" or ")}`
      : `agentauth mcp config ${name} <mcp_url> prints the entry`,
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
  return undefined;
}

/** An error of the settings with their file and line. */
async function namingFile<T>({ path }: HostFile, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SettingsSyntaxError)) throw error;
    const place = error.line === undefined ? path : `line ${error.line} of ${path}`;
    throw usage(
      `the host's settings in ${place} cannot be changed: ${error.message}`,
      "correct the file, or change it by hand: agentauth mcp config <host> <mcp_url> prints the entry",
    );
  }
}

/** A name from a host's settings, for messages. */
export function quoteName(name: string): string {
  return quote(name, 80);
}
