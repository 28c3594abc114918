import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { Env } from "../../../platform/system.js";

/** How a host starts the command that speaks MCP with it. */
export interface ProxyEntry {
  command: string;
  args: readonly string[];
  /** What the command needs in its environment; empty where that is nothing. */
  env: Readonly<Record<string, string>>;
}

/** How a host asks a command for the headers of its own requests. */
export interface HelperEntry {
  url: string;
  /** A line for a shell. */
  helper: string;
}

/** A platform that hosts run on, as in `process.platform`. */
export type HostPlatform = "linux" | "darwin" | "win32";

/** What an entry is for: every project of the user, or one project. */
export const HOST_SCOPES = ["user", "project"] as const;

/** One of {@link HOST_SCOPES}. */
export type HostScope = (typeof HOST_SCOPES)[number];

/**
 * Templates of the paths that a host reads, in the order of preference: the first file that exists is used, else the first
 * one is created. `~` is the user's folder; `{NAME|default}` is an environment variable with an absolute path.
 */
export type SettingsPaths = readonly string[] | Readonly<Partial<Record<HostPlatform, readonly string[]>>>;

/** A program that uses MCP servers, and how it wants them written down. */
export interface McpHost {
  /** Where the snippet belongs, for users. */
  readonly file: string;
  /** Where its files are; a scope without any is one that only the program itself can change. */
  readonly settingsPaths: Readonly<Partial<Record<HostScope, SettingsPaths>>>;
  readonly language: "json" | "toml" | "yaml";
  /** The key at the top of the file whose value has the servers by their names. */
  readonly key: string;
  /** The entry for a server as a command, as plain data. */
  proxy(name: string, entry: ProxyEntry): Record<string, unknown>;
  /** The entry for a server with a command for its headers; absent where the host knows no such thing. */
  helper?(entry: HelperEntry): Record<string, unknown>;
  /** A link that offers to install an entry; absent where the host knows none. */
  link?(name: string, entry: Record<string, unknown>): string;
}

/** What the files of hosts depend on. */
export interface HostMachine {
  /** As in `process.platform`. */
  readonly platform: string;
  readonly env: Env;
  /** The user's own folder. */
  readonly home: string;
  /** The folder of the project. */
  readonly folder: string;
}

/** The files that a host reads in a scope, the preferred one first; none where it has none on this platform. */
export function filesOf(host: McpHost, scope: HostScope, machine: HostMachine): string[] {
  const paths: SettingsPaths = host.settingsPaths[scope] ?? [];
  const byPlatform: Readonly<Record<string, readonly string[]>> =
    "map" in paths ? { [machine.platform]: paths } : paths;
  return (byPlatform[machine.platform] ?? []).map((template) => {
    const path = expand(template, machine);
    return isAbsolute(path) ? join(path) : join(machine.folder, path);
  });
}

/** The file to change: the first that exists, else the preferred one. */
export function fileOf(host: McpHost, scope: HostScope, machine: HostMachine): string | undefined {
  const files = filesOf(host, scope, machine);
  return files.find((file) => existsSync(file)) ?? files[0];
}

function expand(template: string, { env, home }: HostMachine): string {
  return template
    .replace(/\{(\w+)\|([^}]*)\}/, (_match, name: string, otherwise: string) => {
      const value = env[name];
      return value !== undefined && isAbsolute(value) ? value : otherwise;
    })
    .replace(/^~(?=\/|$)/, () => home);
}
