import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { type Env, system } from "../platform/system.js";

/** The names of the output formats, which a profile can set one of; the command line says what each prints. */
export const FORMATS = ["table", "wide", "plain", "json", "ndjson", "csv", "id"] as const;

/** The name of an output format. */
export type Format = (typeof FORMATS)[number];

/** What flags of the command line, or options of a program, can set. */
export interface SettingFlags {
  profile?: string;
  baseUrl?: string;
  account?: string;
  domain?: string;
  pool?: string;
  issuer?: string;
  output?: Format;
  clientCert?: string;
  clientKey?: string;
  useSystemCa?: boolean;
  clientMetadataUrl?: string;
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

/** The API token of the management interface. */
export interface ApiTokenSetting {
  /** @throws `AgentAuthError` where the token cannot be read, or belongs to another service */
  read(): string;
  source: string;
  /** How the profile names the token, where it does; never the token itself. */
  reference?: Sourced;
}

/** The settings of one run: flag before environment before profile before default. */
export interface Settings {
  profile: Sourced;
  /** Whether the profile is not written down yet: a login makes it. */
  isNewProfile: boolean;
  baseUrl: Sourced | undefined;
  apiToken: ApiTokenSetting | undefined;
  authHeader: Sourced | undefined;
  /** How the order of a list is sent. */
  sorting: Sourced | undefined;
  /** The only issuer to use; checked where it is used. */
  issuer: Sourced | undefined;
  /** Parameters of the authorization request, form-encoded; checked where they are used. */
  authorizeParams: Sourced | undefined;
  account: Sourced | undefined;
  domain: Sourced | undefined;
  pool: Sourced | undefined;
  output: Sourced | undefined;
  /** The file of the client certificate, and that of its key where it is another one. */
  clientCert: Sourced | undefined;
  clientKey: Sourced | undefined;
  /** `yes` where the certificate authorities of the system are trusted too. */
  useSystemCa: Sourced | undefined;
  /** The address of the client's metadata document; `none` uses none. */
  clientMetadataUrl: Sourced | undefined;
  /** The file that events are written into, as `file:PATH`. */
  audit: Sourced | undefined;
}

/** The folder that every file of ours lives under: `AGENTAUTH_HOME`, else one of the user on this platform. */
export function homeFolder(env: Env): string {
  return locateHome(env).value;
}

/** The folder, and the variable that names it or `default`. */
export function locateHome(env: Env): Sourced {
  const set = env["AGENTAUTH_HOME"];
  // Paths below it are written into the settings, which are read in other folders too.
  if (set) return { value: resolve(set), source: "AGENTAUTH_HOME" };
  const user = userFolder(env);
  // Not below AppData: Windows shows what a program from a package (MSIX), such as Claude Desktop, and those that it starts
  // create there to no other program. A login that one of them refreshes would be lost to the others.
  if (system.name === "win32") return { value: join(user, ".agentauth"), source: "default" };
  if (system.name === "darwin") {
    return { value: join(user, "Library", "Application Support", "agentauth"), source: "default" };
  }
  const config = env["XDG_CONFIG_HOME"];
  return config
    ? { value: join(config, "agentauth"), source: "XDG_CONFIG_HOME" }
    : { value: join(user, ".config", "agentauth"), source: "default" };
}

/** The user's own folder: by the environment of the run, else by the system. */
export function userFolder(env: Env): string {
  return env[system.name === "win32" ? "USERPROFILE" : "HOME"] ?? homedir();
}
