import { existsSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import type { Env } from "../../../platform/system.js";

/** The text of a host's settings cannot be read, or has a form that is not changed. */
export class SettingsSyntaxError extends Error {
  /** The line of the file, counted from 1, where it is known. */
  readonly line: number | undefined;

  constructor(rule: string, line?: number) {
    super(rule);
    this.line = line;
  }
}

/** The servers in a host's settings by their names. */
export type Servers = Readonly<Record<string, unknown>>;

/** How settings in one language are read and changed. A change leaves the rest of the text as it is. */
export interface SettingsLanguage {
  /**
   * The whole settings as plain data.
   *
   * @throws {@link SettingsSyntaxError}
   */
  parse(text: string, key: string): Readonly<Record<string, unknown>>;
  /** Settings as text that ends in a line break. */
  print(settings: object): string;
  /** The text with a new server. */
  add(text: string, key: string, name: string, entry: object): string;
  /** The text with these values in the entry of a server; its other values stay, and one that is undefined is removed. */
  update(text: string, key: string, name: string, entry: object): string;
  /** The text without a server. */
  remove(text: string, key: string, name: string): string;
}

/** The line of a position, counted from 1. */
export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}

/** Where the line of a position starts. */
export function lineStart(text: string, offset: number): number {
  return text.lastIndexOf("\n", offset - 1) + 1;
}

/** Where the line after a position starts. */
export function lineEnd(text: string, offset: number): number {
  return text.indexOf("\n", offset) + 1 || text.length;
}

/** The line break of a text: its first one, else that of Unix. */
export function lineBreakOf(text: string): "\r\n" | "\n" {
  return /^[^\n]*\r\n/.test(text) ? "\r\n" : "\n";
}

/** The text with other lines in the place of a part; the line before them is ended, and they get the text's line breaks. */
export function spliceLines(text: string, from: number, to: number, lines: string): string {
  const eol = lineBreakOf(text);
  const before = text.slice(0, from);
  const separator = before === "" || before.endsWith("\n") ? "" : eol;
  return before + separator + lines.replaceAll("\n", eol) + text.slice(to);
}

/** Whether a value is an object with keys. */
export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

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
 * one is created. `~` is the user's folder; `{NAME|default}` is an environment variable with an absolute path. A template
 * that begins with `?` counts only where the folder of its file exists.
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
  return (byPlatform[machine.platform] ?? []).flatMap((template) => {
    const isConditional = template.startsWith("?");
    const path = expand(isConditional ? template.slice(1) : template, machine);
    const file = isAbsolute(path) ? join(path) : join(machine.folder, path);
    return isConditional && !existsSync(dirname(file)) ? [] : file;
  });
}

/** The file to change: the first that exists, else the preferred one. */
export function settingsPath(host: McpHost, scope: HostScope, machine: HostMachine): string | undefined {
  const files = filesOf(host, scope, machine);
  return files.find((file) => existsSync(file)) ?? files[0];
}

function expand(template: string, machine: HostMachine): string {
  return template
    .replace(/\{(\w+)\|([^}]*)\}/, (_match, name: string, otherwise: string) => {
      const value = machine.env[name];
      return value !== undefined && isAbsolute(value) ? value : otherwise;
    })
    .replace(/^~(?=\/|$)/, () => machine.home);
}
