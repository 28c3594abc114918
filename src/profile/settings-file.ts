import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { AgentAuthError, orUndefined, usageError, withHint } from "../errors.js";
import { isLoopbackHost, parseUrl } from "../http/address.js";
import { isJsonObject, parseStrictJson, StrictJsonError } from "../http/strict-json.js";
import { type Env, moveAway, withoutByteOrderMark } from "../platform.js";
import { quote } from "../redact.js";
import {
  checkTrustedFolder,
  makePrivateFolder,
  moveEmptyAway,
  type OnEmptyFile,
  readTrustedFile,
  writeTrustedFile,
} from "../store/private/private-file.js";
import { checkSetting, isProfileKey, PROFILE_KEYS, type Profile } from "./profile-settings.js";
import { readSecretFile, writeSecretFile } from "./secrets.js";
import { firstSet, type Sourced } from "./settings.js";

/** What other commands need to know of the sandbox that is running. */
export interface SandboxState {
  /** Its process. */
  pid: number;
  /** The base URL of its service. */
  base_url: string;
  /** The address at which clients reach it through a proxy; this machine uses the base URL, where it listens. */
  public_url?: string;
  /** The API token of its service. */
  api_token: string;
  /** The token of its admin API. */
  control_token: string;
  /** An account. */
  account_id: string;
  /** A domain of that account. */
  domain_id: string;
  /** A pool of that domain. */
  pool_id: string;
  /** The protected MCP server. */
  mcp_url: string;
}

function statePath(home: string): string {
  return join(home, "sandbox.json");
}

/** The running sandbox, or undefined; a file that a killed one left behind counts for nothing. */
export function readSandboxState(home: string | undefined): SandboxState | undefined {
  if (home === undefined) return undefined;
  const state = orUndefined(() => {
    checkTrustedFolder(home);
    return parseStrictJson(readSecretFile(statePath(home)));
  });
  return isState(state) && isAlive(state.pid) ? state : undefined;
}

function isState(value: unknown): value is SandboxState {
  if (typeof value !== "object" || value === null) return false;
  const { pid, ...texts } = value as Record<string, unknown>;
  // To ask for 0 or a negative number is to ask for a group of processes.
  if (!Number.isSafeInteger(pid) || (pid as number) <= 0) return false;
  return TEXTS.every((name) => typeof texts[name] === "string") && parseUrl(texts["base_url"]) !== undefined;
}

const TEXTS = ["base_url", "api_token", "control_token", "account_id", "domain_id", "pool_id", "mcp_url"] as const;

export function writeSandboxState(home: string, state: SandboxState): void {
  writeSecretFile(statePath(home), `${JSON.stringify(state, null, 2)}\n`);
}

/** Removes the file if it is still this process's. */
export function removeSandboxState(home: string, pid: number): void {
  const state = readSandboxState(home);
  if (state === undefined || state.pid === pid) rmSync(statePath(home), { force: true });
}

/** Removes the file that a sandbox left behind. */
export function forgetSandboxState(home: string): void {
  rmSync(statePath(home), { force: true });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

const SANDBOX_PREFIX = "sandbox_";

/**
 * Checks that a token and an address belong to the same world: the sandbox's tokens go to this machine only, and the
 * running sandbox is given no other.
 *
 * @throws `AgentAuthError` `bad_authtoken`; nothing was sent
 */
export function checkSandboxToken(
  { value: token, source }: Sourced,
  baseUrl: Sourced,
  home: string | undefined,
): string {
  const { hostname, origin } = new URL(baseUrl.value);
  if (!isLoopbackHost(hostname)) {
    if (!token.startsWith(SANDBOX_PREFIX)) return token;
    throw wrongTokenError(
      `the API token (${source}) is a sandbox's, and ${quote(baseUrl.value)} (${baseUrl.source}) is no sandbox`,
      "give the token of this service, or use the sandbox with --profile sandbox",
    );
  }
  const sandbox = readSandboxState(home);
  const isOwn = token.startsWith(SANDBOX_PREFIX) || token === sandbox?.api_token;
  if (isOwn || sandbox === undefined || new URL(sandbox.base_url).origin !== origin) return token;
  throw wrongTokenError(
    `the API token (${source}) is not the sandbox's, and ${quote(baseUrl.value)} (${baseUrl.source}) is a sandbox`,
    "unset AGENTAUTH_API_TOKEN for the sandbox, whose own token comes with --profile sandbox",
  );
}

/** As the service itself refuses a token. */
function wrongTokenError(message: string, hint: string): AgentAuthError {
  return new AgentAuthError("bad_authtoken", message, { class: "auth", hint });
}

export interface Config {
  schema: 1;
  /** The profile that is used when none is named. */
  profile: string;
  profiles: Record<string, Profile>;
}

/** The profile that is reserved for the running sandbox. It is never written down. */
export const SANDBOX_PROFILE = "sandbox";

/** A profile's name: what a shell and a file name can carry. */
export function isProfileName(name: string): boolean {
  return /^[A-Za-z0-9][\w.-]{0,63}$/.test(name) && name !== "__proto__";
}

export function configPath(home: string): string {
  return join(home, "config.json");
}

/** What is said of a file that held nothing. */
export function keptText(path: string, kept: string): string {
  return `the file ${path} held nothing, and counts as missing: it is kept as ${kept}`;
}

/** The text of the settings file; undefined if there is none. @throws `AgentAuthError` `store_failed` if others can change it */
export function readSettingsFile(home: string): SettingsFile | undefined {
  const path = configPath(home);
  const text = readTrustedFile(path, `the settings file ${path}`);
  return text === undefined ? undefined : { path, text };
}

/**
 * Reads the settings file; a missing one is an empty one, and so is that of a user without a folder. Anything in it that is not understood is an error that names
 * the location, since a setting that is silently ignored is a request sent to another server than intended.
 *
 * @param onEmpty gets the path of a file that held nothing, and the name that it has now; default: such a file is an error
 * @throws `AgentAuthError` `usage`; `store_failed` if others can change it: nothing in it is believed then
 */
export function readConfig(home: string | undefined, onEmpty?: OnEmptyFile): Config {
  const file = home === undefined ? undefined : readSettingsFile(home);
  if (file === undefined || moveEmptyAway(file.path, file.text, onEmpty))
    return { schema: 1, profile: "default", profiles: {} };
  const { path, text } = file;
  return checkConfig(parseSettings(withoutByteOrderMark(text, `the settings file ${path}`), path), file);
}

/** Checks and writes the settings file, whole or not at all. */
export function writeConfig(home: string, config: Config): void {
  const path = configPath(home);
  const checked = checkConfig(config, { path, text: "" });
  makePrivateFolder(home);
  writeTrustedFile(path, `${JSON.stringify(checked, null, 2)}\n`);
}

function parseSettings(text: string, path: string): unknown {
  try {
    return parseStrictJson(text);
  } catch (cause) {
    const why = cause instanceof StrictJsonError ? cause.message : String(cause);
    const error = invalidFileError({ path, text }, `it is not valid JSON: ${why}`);
    throw /^\0*$/.test(text) ? withHint(error, `move it away: ${moveAway(path, `${path}.broken`)}`) : error;
  }
}

function checkConfig(value: unknown, file: SettingsFile): Config {
  if (!isJsonObject(value)) throw invalidFileError(file, "it must be a JSON object");
  const { schema = 1, profile = "default", profiles = {}, ...unknown } = value;
  const unknownKey = Object.keys(unknown)[0];
  if (unknownKey !== undefined) throw invalidFileError(file, `unknown key ${quote(unknownKey)}`, unknownKey);
  if (schema !== 1) throw invalidFileError(file, `schema is ${quote(schema)}; this version reads 1`, "schema");
  if (typeof profile !== "string" || !isProfileName(profile))
    throw invalidFileError(file, `profile ${quote(profile)} is not a valid profile name`, "profile");
  if (profile === SANDBOX_PROFILE)
    throw invalidFileError(
      file,
      `the profile ${profile} cannot be the selected one: --profile ${profile} uses it`,
      "profile",
    );
  if (!isJsonObject(profiles)) throw invalidFileError(file, "profiles must be an object", "profiles");
  for (const [name, entries] of Object.entries(profiles)) checkProfile(name, entries, file);
  return { schema: 1, profile, profiles: profiles as Record<string, Profile> };
}

function checkProfile(name: string, entries: unknown, file: SettingsFile): void {
  if (!isProfileName(name))
    throw invalidFileError(file, `${quote(name)} is not a valid profile name`, "profiles", name);
  if (name === SANDBOX_PROFILE)
    throw invalidFileError(file, `the profile ${name} is reserved for the running sandbox`, "profiles", name);
  if (!isJsonObject(entries)) throw invalidFileError(file, `profiles.${name} must be an object`, "profiles", name);
  for (const [key, value] of Object.entries(entries)) {
    if (!isProfileKey(key)) {
      const known = Object.keys(PROFILE_KEYS).join(", ");
      throw invalidFileError(
        file,
        `unknown key ${quote(`profiles.${name}.${key}`)}; known are ${known}`,
        "profiles",
        name,
        key,
      );
    }
    if (typeof value !== "string")
      throw invalidFileError(file, `profiles.${name}.${key} is ${quote(value)}, not a string`, "profiles", name, key);
    checkSetting(key, value, `profiles.${name}.${key} in ${locationIn(file, "profiles", name, key)}`);
  }
}

function invalidFileError(file: SettingsFile, what: string, ...keys: string[]): AgentAuthError {
  return usageError(`the settings file ${locationIn(file, ...keys)}: ${what}`, "correct it, or move it away");
}

/** The profile in use and its source, even if there is no such profile. @param flag its value, and what messages call it */
export function chosenProfile(flag: [string | undefined, string], env: Env, { profile }: Config): Sourced {
  const inEnv = env["AGENTAUTH_PROFILE"];
  return firstSet(flag, [inEnv, "AGENTAUTH_PROFILE"]) ?? { value: profile, source: "settings file" };
}

/** The profile with its source: one that no settings file names is the default. */
export function checkProfileName(profile: Sourced, home: string | undefined): Sourced {
  const unwritten = profile.source === "settings file" && !(home !== undefined && existsSync(configPath(home)));
  return unwritten ? { ...profile, source: "default" } : profile;
}

/** The profiles that can be named; that of the sandbox where one runs. */
export function profileNames({ profiles }: Config, home: string | undefined): string[] {
  const running = readSandboxState(home) ? [SANDBOX_PROFILE] : [];
  return [...new Set(["default", ...Object.keys(profiles), ...running])];
}

/** A profile's name, and what is written down in it. */
export function writtenProfile(name: string, { profiles }: Config): { name: string; entries: Profile } {
  return { name, entries: (Object.hasOwn(profiles, name) ? profiles[name] : undefined) ?? {} };
}

/** A settings file as it was read; without a text when it is still to be written. */
export interface SettingsFile {
  path: string;
  text: string;
}

/**
 * Where in a settings file a setting is, for messages: the file, and the line of the innermost key.
 *
 * @param keys from the outermost in; they are looked for one after the other, as the file has them
 */
export function locationIn({ path, text }: SettingsFile, ...keys: string[]): string {
  let at = -1;
  for (const key of keys) {
    // A setting may be called like its profile.
    at = keyAt(text, key, at + 1);
    // The key is written with escapes: the file alone is named.
    if (at < 0) return path;
  }
  return keys.length === 0 ? path : `line ${text.slice(0, at).split("\n").length} of ${path}`;
}

/** Where a member of this name begins; the same word as a value is none. */
function keyAt(text: string, key: string, from: number): number {
  const name = JSON.stringify(key);
  for (let at = text.indexOf(name, from); at >= 0; at = text.indexOf(name, at + 1)) {
    if (/^\s*:/.test(text.slice(at + name.length, at + name.length + 100))) return at;
  }
  return -1;
}
