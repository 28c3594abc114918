import { existsSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import type { Env } from "../../platform.js";

/** How a host starts the command that speaks MCP with it, and what that needs in its environment. */
interface ProxyEntry {
  command: string;
  args: readonly string[];
  env: Readonly<Record<string, string>>;
}

/** What an entry is for: every project of the user, or one project. */
export const HOST_SCOPES = ["user", "project"] as const;

/** One of {@link HOST_SCOPES}. */
export type HostScope = (typeof HOST_SCOPES)[number];

/** A program that uses MCP servers, and how it wants them written down. */
export interface McpHost {
  /** The JSON files that it reads for the user, the preferred one first; none where it has none on this platform. */
  readonly user?: (folders: Folders) => readonly string[];
  /** The same of a project, in its folder. */
  readonly project?: readonly string[];
  /** The key at the top of the file whose value has the servers by their names. */
  readonly key: string;
  /** The entry for a server as a command, as plain data. */
  proxy(name: string, entry: ProxyEntry): Record<string, unknown>;
  /** For settings in another language: an entry as text, and the file that it belongs to. */
  readonly other?: { readonly file: string; print(name: string, entry: Record<string, unknown>): string };
  /** The program of the host that changes them. */
  readonly program?: string;
}

/** What the files of hosts depend on: the platform, the user's own folder, and that of the project. */
export interface HostMachine {
  readonly platform: string;
  readonly env: Env;
  readonly home: string;
  readonly folder: string;
}

type Folders = ReturnType<typeof userFolders>;

/** Where programs keep their settings; a variable with a relative path does not count. */
function userFolders({ platform, env, home }: HostMachine) {
  const named = (name: string, ...otherwise: string[]) => {
    const value = env[name];
    return value !== undefined && isAbsolute(value) ? value : join(home, ...otherwise);
  };
  const config = named("XDG_CONFIG_HOME", ".config");
  const roaming = named("APPDATA", "AppData", "Roaming");
  const library = join(home, "Library", "Application Support");
  const programs = { win32: roaming, darwin: library }[platform] ?? config;
  return { platform, home, named, config, roaming, programs };
}

/** The files that a host reads in a scope, the preferred one first. */
export function settingsFiles(host: McpHost, scope: HostScope, machine: HostMachine): string[] {
  if (scope === "user") return [...(host.user?.(userFolders(machine)) ?? [])];
  return (host.project ?? []).map((file) => join(machine.folder, file));
}

/** The file to change: the first that exists, else the preferred one. */
export function settingsPath(host: McpHost, scope: HostScope, machine: HostMachine): string | undefined {
  const files = settingsFiles(host, scope, machine);
  return files.find((file) => existsSync(file)) ?? files[0];
}

const command = (_name: string, { command, args, env }: ProxyEntry) => ({ command, args, ...unlessEmpty("env", env) });
const stdio = (name: string, entry: ProxyEntry) => ({ type: "stdio", ...command(name, entry) });

/** A host with an object `mcpServers`, as most of them have, in a file below the user's own folder. */
function mcpServers(file: string, ...project: string[]): McpHost {
  return { key: "mcpServers", proxy: command, user: ({ home }) => [join(home, file)], project };
}

/** The hosts by the names that they have on the command line. */
export const MCP_HOSTS: Readonly<Record<string, McpHost>> = {
  antigravity: mcpServers(".gemini/config/mcp_config.json", ".agents/mcp_config.json"),
  "claude-code": {
    ...mcpServers(".claude.json", ".mcp.json"),
    user: ({ named }) => [join(named("CLAUDE_CONFIG_DIR"), ".claude.json")],
    proxy: stdio,
  },
  "claude-desktop": { ...mcpServers(""), user: filesOfClaudeDesktop },
  cline: {
    ...mcpServers(""),
    user: ({ home, programs }) => {
      const file = "settings/cline_mcp_settings.json";
      const inCode = join(programs, "Code/User/globalStorage/saoudrizwan.claude-dev", file);
      return [join(home, ".cline/data", file), inCode];
    },
  },
  codex: {
    key: "mcp_servers",
    proxy: command,
    other: { file: "~/.codex/config.toml, or .codex/config.toml in a project that you trust", print: printToml },
    program: "codex",
  },
  cursor: mcpServers(".cursor/mcp.json", ".cursor/mcp.json"),
  "gemini-cli": mcpServers(".gemini/settings.json", ".gemini/settings.json"),
  goose: {
    key: "extensions",
    proxy: (name, { command: cmd, args, env: envs }) => {
      return { type: "stdio", name, enabled: true, cmd, args, envs, timeout: 300 };
    },
    other: {
      file: "~/.config/goose/config.yaml, on Windows %APPDATA%\\Block\\goose\\config\\config.yaml",
      print: printYaml,
    },
  },
  opencode: {
    key: "mcp",
    user: ({ home }) => ["opencode.json", "opencode.jsonc"].map((file) => join(home, ".config/opencode", file)),
    project: ["opencode.json", "opencode.jsonc"],
    proxy: (_name, { command, args, env }) => {
      return { type: "local", command: [command, ...args], enabled: true, ...unlessEmpty("environment", env) };
    },
  },
  vscode: {
    key: "servers",
    user: ({ programs }) => [join(programs, "Code/User/mcp.json")],
    project: [".vscode/mcp.json"],
    proxy: stdio,
  },
  windsurf: mcpServers(".codeium/windsurf/mcp_config.json"),
  zed: {
    key: "context_servers",
    user: ({ platform, home, config, roaming }) => {
      const byPlatform: Record<string, string> = { win32: join(roaming, "Zed"), linux: join(config, "zed") };
      return [join(byPlatform[platform] ?? join(home, ".config/zed"), "settings.json")];
    },
    project: [".zed/settings.json"],
    proxy: (_name, { command, args, env }) => ({ command, args, env }),
  },
};

/** On Windows, a Claude Desktop that is installed as a package (MSIX) has elsewhere what it keeps in its `%APPDATA%`. */
function filesOfClaudeDesktop({ platform, named, roaming, programs }: Folders): string[] {
  const file = "Claude/claude_desktop_config.json";
  if (platform !== "win32") return platform === "darwin" ? [join(programs, file)] : [];
  const packages = join(named("LOCALAPPDATA", "AppData", "Local"), "Packages");
  const packaged = join(packages, "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", file);
  return [...(existsSync(dirname(packaged)) ? [packaged] : []), join(roaming, file)];
}

function unlessEmpty(key: string, env: ProxyEntry["env"]): object {
  return Object.keys(env).length === 0 ? {} : { [key]: env };
}

/** Tables of TOML, whose strings are those of JSON but for one character. */
function printToml(name: string, { env, ...entry }: Record<string, unknown>): string {
  const table = (path: string, values: object) => {
    const lines = Object.entries(values).map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`);
    return `[mcp_servers.${path}]\n${lines.join("")}`.replaceAll("\u007f", "\\u007f");
  };
  return env === undefined ? table(name, entry) : `${table(name, entry)}\n${table(`${name}.env`, env as object)}`;
}

/** YAML, which has JSON in it. */
function printYaml(name: string, entry: Record<string, unknown>): string {
  const lines = Object.entries(entry).map(([key, value]) => `    ${key}: ${JSON.stringify(value)}\n`);
  return `extensions:\n  ${JSON.stringify(name)}:\n${lines.join("")}`;
}
