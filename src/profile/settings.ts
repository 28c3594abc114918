import { isAbsolute, join, posix, relative, resolve, win32 } from "node:path";
import { type AgentAuthError, usageError } from "../errors.js";
import { type Env, system } from "../platform.js";
import { quote } from "../redact.js";
import type { LoginFlags, ProfileLoginSetting } from "./login-settings.js";

/** The names of the output formats, which a profile can set one of; the command line says what each prints. */
export const FORMATS = ["table", "wide", "plain", "json", "ndjson", "csv", "id"] as const;

/** The name of an output format. */
export type Format = (typeof FORMATS)[number];

/** What flags of the command line, or options of a program, can set. */
export interface SettingFlags extends Pick<LoginFlags, "issuer" | "clientMetadataUrl"> {
  profile?: string;
  baseUrl?: string;
  account?: string;
  domain?: string;
  pool?: string;
  output?: Format;
  clientCert?: string;
  clientKey?: string;
  useSystemCa?: boolean;
}

/** A value and where it comes from, such as `--pool`, `AGENTAUTH_BASE_URL` or `profile default`. */
export interface Sourced {
  /** The value. */
  value: string;
  /** Where it comes from. */
  source: string;
}

/** The first value that is set, with its source. An empty one is not set. */
export function firstSet(...candidates: [string | undefined, string][]): Sourced | undefined {
  for (const [value, source] of candidates) if (value !== undefined && value !== "") return { value, source };
  return undefined;
}

export interface ApiTokenSetting {
  /** @throws `AgentAuthError` where the token cannot be read, or belongs to another service */
  read(): string;
  source: string;
  /** How the profile names the token, where it does; never the token itself. */
  reference?: Sourced;
}

/** The settings of one run: flag before environment before profile before default. */
export interface Settings extends Record<ProfileLoginSetting, Sourced | undefined> {
  profile: Sourced;
  /** Whether the profile is not written down yet: a login makes it. */
  isNewProfile: boolean;
  baseUrl: Sourced | undefined;
  apiToken: ApiTokenSetting | undefined;
  authHeader: Sourced | undefined;
  /** How the order of a list is sent. */
  sorting: Sourced | undefined;
  account: Sourced | undefined;
  domain: Sourced | undefined;
  pool: Sourced | undefined;
  output: Sourced | undefined;
  /** The file of the client certificate, and that of its key where it is another one. */
  clientCert: Sourced | undefined;
  clientKey: Sourced | undefined;
  /** `yes` where the certificate authorities of the system are trusted too. */
  useSystemCa: Sourced | undefined;
  /** The file that events are written into, as `file:PATH`. */
  audit: Sourced | undefined;
}

/**
 * The folder that every file of ours lives under.
 *
 * @throws `AgentAuthError` `usage` where there is none, and as {@link findHome}
 */
export function homeFolder(env: Env): string {
  const home = findHome(env);
  if (home === undefined) throw noFolderError("set AGENTAUTH_HOME to a folder that you can write to");
  return home.value;
}

/**
 * The folder of our files, and the variable that names it or `default`: `AGENTAUTH_HOME`, else one of the user on this
 * platform; undefined for a user without a folder.
 *
 * @throws `AgentAuthError` `usage` for a relative path, which would name another folder in each working folder
 */
export function findHome(env: Env): Sourced | undefined {
  const source = "AGENTAUTH_HOME";
  const set = env[source];
  if (set) {
    const value = expandUserFolder(set, env);
    if (isAbsolutePath(value)) return { value: resolve(value), source };
    throw usageError(`${source} is ${quote(set)}, a relative path`, "use an absolute path, or one that begins with ~/");
  }
  const user = userFolder(env);
  const ofUser = (...names: string[]) =>
    user === undefined ? undefined : { value: join(user, ...names), source: "default" };
  // Not below AppData: Windows shows what a program from a package (MSIX), such as Claude Desktop, and those that it starts
  // create there to no other program. A login that one of them refreshes would be lost to the others.
  if (system.name === "win32") return ofUser(".agentauth");
  if (system.name === "darwin") return ofUser("Library", "Application Support", "agentauth");
  const config = env["XDG_CONFIG_HOME"];
  // A relative one is to be ignored, by the specification of the variable.
  if (config && isAbsolutePath(config)) return { value: join(config, "agentauth"), source: "XDG_CONFIG_HOME" };
  return ofUser(".config", "agentauth");
}

/** The user's own folder: by the environment of the run, else by the system; undefined for a user without one. */
export function userFolder(env: Env): string | undefined {
  const set = env[system.name === "win32" ? "USERPROFILE" : "HOME"];
  return set && isAbsolutePath(set) ? set : system.userFolder();
}

/** {@link userFolder} where it is needed. @throws `AgentAuthError` `usage` for a user without one */
export function requireUserFolder(env: Env): string {
  const user = userFolder(env);
  if (user === undefined) throw noFolderError("set HOME to the folder of this user");
  return user;
}

/** A path with the user's own folder in place of a leading `~/`. */
export function expandUserFolder(path: string, env: Env): string {
  return path.replace(system.name === "win32" ? /^~(?=[\\/])/ : /^~(?=\/)/, () => requireUserFolder(env));
}

/** Whether a path lies in a folder, or is that folder. */
export function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return !way.startsWith("..") && !isAbsolute(way);
}

function isAbsolutePath(path: string): boolean {
  return (system.name === "win32" ? win32 : posix).isAbsolute(path);
}

function noFolderError(hint: string): AgentAuthError {
  return usageError("there is no folder for files: HOME is not set, and the system knows no folder of this user", hint);
}
