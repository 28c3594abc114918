import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { Env } from "../../../platform/environment.js";
import type { HostScope, McpHost, Places } from "./host.js";

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
  const places = host.places[scope];
  const templates = places === undefined ? [] : onPlatform(places, machine.platform);
  return templates.map((template) => {
    const path = expand(template, machine);
    return isAbsolute(path) ? join(path) : join(machine.folder, path);
  });
}

/** The file to change: the first that exists, else the preferred one. */
export function fileOf(host: McpHost, scope: HostScope, machine: HostMachine): string | undefined {
  const files = filesOf(host, scope, machine);
  return files.find((file) => existsSync(file)) ?? files[0];
}

function onPlatform(places: Places, platform: string): readonly string[] {
  if (Array.isArray(places)) return places;
  const byPlatform = places as Exclude<Places, readonly string[]>;
  return platform === "linux" || platform === "darwin" || platform === "win32" ? (byPlatform[platform] ?? []) : [];
}

function expand(template: string, { env, home }: HostMachine): string {
  return template
    .replace(/\{(\w+)\|([^}]*)\}/, (_match, name: string, otherwise: string) => {
      const value = env[name];
      return value !== undefined && isAbsolute(value) ? value : otherwise;
    })
    .replace(/^~(?=\/|$)/, () => home);
}
