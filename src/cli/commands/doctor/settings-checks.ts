import { existsSync } from "node:fs";
import { type AgentAuthError, isAgentAuthError } from "../../../errors.js";
import { suggest } from "../../../http/suggest.js";
import type { Env } from "../../../platform/system.js";
import { checkSetting } from "../../../profile/profile-settings.js";
import { resolveSettings } from "../../../profile/resolve-settings.js";
import { storingToken } from "../../../profile/service-settings.js";
import type { SettingFlags, Settings } from "../../../profile/settings.js";
import { type Config, configPath, profileOf, readConfig } from "../../../profile/settings-file.js";
import { quote } from "../../../redact.js";
import { ENVIRONMENT } from "../../runtime/environment.js";
import { flagText } from "../../runtime/pasted-words.js";
import { type CheckFinding, failed, ok, skipped, warning } from "./check.js";

/** The settings of this run as far as they can be read, and the problems with the others. */
export interface KnownSettings {
  settings: Settings;
  config: Config;
  /** The source of an invalid base URL; the URL is not shown, since it may contain a password. */
  wrongBaseUrl: string | undefined;
  problems: { file?: AgentAuthError; profile?: AgentAuthError; baseUrl?: AgentAuthError };
}

const EMPTY: Config = { schema: 1, profile: "default", profiles: {} };

/** Resolves every setting as `resolveSettings` does, but reports a wrong setting without hiding the others. */
export function knownSettings(flags: SettingFlags, env: Env, home: string): KnownSettings {
  const problems: KnownSettings["problems"] = {};
  let config = EMPTY;
  try {
    config = readConfig(home);
  } catch (error) {
    if (!isAgentAuthError(error)) throw error;
    problems.file = error;
  }
  const settings = resolveSettings(flags, env, config, home, flagText, (setting, error) => {
    problems[setting] = error;
  });
  const wrongBaseUrl = problems.baseUrl && (flags.baseUrl ? "--base-url" : "AGENTAUTH_BASE_URL");
  return { settings: { ...settings, profile: profileOf(settings.profile, home) }, config, wrongBaseUrl, problems };
}

/** Whether the settings file exists and is valid. */
export function checkSettingsFile({ config, problems }: KnownSettings, home: string): CheckFinding {
  if (problems.file !== undefined) throw problems.file;
  const path = configPath(home);
  if (!existsSync(path)) return ok(`${path} does not exist: nothing is set`);
  const names = Object.keys(config.profiles);
  return ok(`${path}, ${names.length === 0 ? "no profiles" : `profiles: ${names.join(", ")}`}`);
}

/** Which profile is used, and whether it exists. */
export function checkProfile({ settings, problems }: KnownSettings): CheckFinding {
  if (problems.file !== undefined) return skipped("the settings file cannot be used");
  if (problems.profile !== undefined) throw problems.profile;
  return ok(`${settings.profile.value} (${settings.profile.source})`);
}

const SET_BASE_URL = "agentauth config set base_url <url>; to try without a service: agentauth demo";

/** Whether a valid base URL is set. Tokens for MCP servers need none. */
export function checkBaseUrl({ settings: { baseUrl }, problems }: KnownSettings): CheckFinding {
  if (problems.baseUrl !== undefined) throw problems.baseUrl;
  return baseUrl ? ok(`${baseUrl.value} (${baseUrl.source})`) : skipped("not set: lists need it", SET_BASE_URL);
}

/** Whether the issuer that credentials are bound to is valid. */
export function checkIssuer({ settings: { issuer } }: KnownSettings): CheckFinding {
  if (issuer === undefined) return skipped("not set: each client with a secret or a key has its own binding");
  checkSetting("issuer", issuer.value, issuer.source);
  return ok(`${issuer.value} (${issuer.source})`);
}

/**
 * Whether the API token can be read. It is not shown.
 *
 * @param hide receives the token, so that every output masks it
 */
export function checkApiToken({ settings }: KnownSettings, hide: (token: string) => void): CheckFinding {
  const { apiToken, baseUrl } = settings;
  if (apiToken === undefined) {
    const hint = `set AGENTAUTH_API_TOKEN, or store a token: ${storingToken()}`;
    return baseUrl ? warning(`not set for ${baseUrl.value}`, hint) : skipped("not set: lists need it");
  }
  const token = apiToken.read();
  hide(token);
  if (token === "") return failed(`the token from ${apiToken.source} is empty`, "agentauth config set api_token -");
  return ok(`can be read (${apiToken.source})`);
}

const PREFIX = "AGENTAUTH_";

/** Every variable that this program reads, and the one that `exec` sets for another. */
export const KNOWN_VARIABLES: readonly string[] = [
  ...ENVIRONMENT.flatMap(([names]) => names.split(", ")).filter((name) => name.startsWith(PREFIX)),
  "AGENTAUTH_TOKEN",
];

/** Variables with our prefix that nothing reads, and misleading values. The values of unknown variables are not shown. */
export function checkVariables(env: Env, config: Config): CheckFinding {
  const known = new Set([...KNOWN_VARIABLES, ...namedByProfiles(config)]);
  const ours = Object.keys(env).filter((name) => name.toUpperCase().startsWith(PREFIX) && env[name]);
  const unknownNames = ours.filter((name) => !known.has(name)).sort();
  const remarks = [...unknownNames.map((name) => `${name} is set, but nothing reads it`), ...valueRemarks(env)];
  if (remarks.length === 0) return ok(ours.length === 0 ? "none are set" : `${ours.length} set, all known`);
  return warning(remarks.join("; "), unknownHint(unknownNames));
}

/** `env:NAME` in a profile makes any name known. */
function namedByProfiles(config: Config): string[] {
  const references = Object.values(config.profiles).flatMap(({ api_token = "", store_url = "", store_keys = "" }) => [
    api_token,
    store_url,
    store_keys,
  ]);
  return references.filter((text) => text.startsWith("env:")).map((text) => text.slice("env:".length));
}

function valueRemarks(env: Env): string[] {
  const remarks: string[] = [];
  const { AGENTAUTH_ERRORS: errors, AGENTAUTH_NO_INPUT: noInput } = env;
  if (errors && errors !== "json") remarks.push(`AGENTAUTH_ERRORS is ${quote(errors, 40)}; only "json" has an effect`);
  if (noInput && /^(?:0|false|no|off)$/i.test(noInput)) {
    remarks.push(`AGENTAUTH_NO_INPUT is ${quote(noInput)}, which counts as set like any other value`);
  }
  return remarks;
}

/** Compares names without the prefix: with it, all names look alike. */
function unknownHint(unknownNames: readonly string[]): string | undefined {
  const endings = KNOWN_VARIABLES.map((name) => name.slice(PREFIX.length));
  const suggestions = unknownNames.flatMap((name) => suggest(name.slice(PREFIX.length), endings) ?? []);
  if (suggestions.length > 0) return `did you mean ${suggestions.map((ending) => PREFIX + ending).join(", ")}?`;
  return "agentauth help environment lists the variables and their values";
}

/** Node's switch that disables certificate checks. */
export function checkTls(env: Env): CheckFinding {
  if (env["NODE_TLS_REJECT_UNAUTHORIZED"] !== "0") return ok("certificates are verified");
  return failed(
    "NODE_TLS_REJECT_UNAUTHORIZED is 0: certificates are not verified, and anyone on the network path can read every token",
    "unset NODE_TLS_REJECT_UNAUTHORIZED; trust your own certificate authority with --ca-file <file> or NODE_EXTRA_CA_CERTS",
  );
}
