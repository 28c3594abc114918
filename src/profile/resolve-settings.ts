import { type AgentAuthError, isAgentAuthError, usageError } from "../errors.js";
import { parseBaseUrl } from "../http/address.js";
import { suggestionHint } from "../http/suggest.js";
import type { Env } from "../platform.js";
import { quote, shellWord } from "../redact.js";
import { loginSettings, type ProfileLoginSetting } from "./login-settings.js";
import { checkSetting, isEngine, type Profile, type StoreKind } from "./profile-settings.js";
import { checkApiToken, isReference, noteReference, referencedSecret } from "./secrets.js";
import type { ApiTokenSetting, SettingFlags, Settings, Sourced } from "./settings.js";
import { findHome, firstSet } from "./settings.js";
import {
  type Config,
  checkSandboxToken,
  chosenProfile,
  isProfileName,
  profileNames,
  readConfig,
  readSandboxState,
  SANDBOX_PROFILE,
} from "./settings-file.js";

/**
 * Every setting of a run, by the settings file too.
 *
 * @param nameOf what messages call a flag
 * @throws `AgentAuthError` `usage` as {@link resolveSettings}, and for a settings file that cannot be used
 */
export function readSettings(
  flags: SettingFlags,
  env: Env,
  nameOf: (flag: keyof SettingFlags) => string,
  rules: SettingRules = {},
): Settings {
  const home = findHome(env)?.value;
  return resolveSettings(flags, env, readConfig(home), home, nameOf, rules);
}

/** What {@link resolveSettings} accepts. */
export interface SettingRules {
  /** Gets the error of what is wrong, which then counts as not set; default: throws it. */
  onWrong?: (setting: "profile" | "baseUrl", error: AgentAuthError) => void;
  /** Whether a named profile may be one that does not exist yet, for a login that makes it. */
  acceptsNewProfile?: boolean;
}

/**
 * Decides every setting.
 *
 * @throws `AgentAuthError` `usage` for a value that is wrong, or a named profile that does not exist
 */
export function resolveSettings(
  flags: SettingFlags,
  env: Env,
  config: Config,
  home: string | undefined,
  nameOf: (flag: keyof SettingFlags) => string,
  { onWrong, acceptsNewProfile = false }: SettingRules = {},
): Settings {
  const unlessWrong = <T>(setting: "profile" | "baseUrl", read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      if (!isAgentAuthError(error) || onWrong === undefined) throw error;
      onWrong(setting, error);
      return undefined;
    }
  };
  type Candidate = [value: string | undefined, source: string];
  const flag = (name: Exclude<keyof SettingFlags, "useSystemCa">): Candidate => [flags[name], nameOf(name)];
  const profile = chosenProfile(flag("profile"), env, config);
  // In an engine that the environment names, a profile may be a user of a program, whom no settings file knows.
  const isUnknown = ![...profileNames(config, home), SANDBOX_PROFILE].includes(profile.value);
  const isForeign = isUnknown && isEngine(env["AGENTAUTH_STORE"] as StoreKind);
  const found = isForeign ? {} : unlessWrong("profile", () => profileEntries(profile, config, home, acceptsNewProfile));
  const entries = found ?? {};
  const from = `profile ${profile.value}`;
  const named = firstSet(flag("baseUrl"), [env["AGENTAUTH_BASE_URL"], "AGENTAUTH_BASE_URL"], [entries.base_url, from]);
  const hasToken = Boolean(env["AGENTAUTH_API_TOKEN"] || entries.api_token);
  // A token without an address belongs to a service whose address is missing.
  const sandbox = named || hasToken ? undefined : sandboxEntries(home);
  const [ofService, fromService] = sandbox ? [sandbox, RUNNING_SANDBOX] : [entries, from];
  const address = named ?? firstSet([ofService.base_url, fromService]);
  const baseUrl = address && unlessWrong("baseUrl", () => parsedBaseUrl(address));
  const usesSystemCa = flags.useSystemCa ? "yes" : undefined;
  return {
    profile,
    isNewProfile: isUnknown && !isForeign && found !== undefined,
    baseUrl,
    apiToken: checkedToken(apiToken(ofService, baseUrl, env, fromService), baseUrl, home),
    authHeader: firstSet([ofService.auth_header, fromService]),
    sorting: firstSet([ofService.sorting, fromService]),
    ...loginSettingsInForce(flags, env, entries, { nameOf, from }),
    account: firstSet(flag("account"), [ofService.account, fromService]),
    domain: firstSet(flag("domain"), [ofService.domain, fromService]),
    pool: firstSet(flag("pool"), [ofService.pool, fromService]),
    output: firstSet(flag("output"), [entries.output, from]),
    clientCert: firstSet(flag("clientCert"), [entries.client_cert, from]),
    // The profile's key is that of the profile's certificate.
    clientKey: firstSet(flag("clientKey"), [flags.clientCert ? undefined : entries.client_key, from]),
    useSystemCa: firstSet([usesSystemCa, nameOf("useSystemCa")], [entries.use_system_ca, from]),
    audit: firstSet([env["AGENTAUTH_AUDIT"], "AGENTAUTH_AUDIT"], [entries.audit, from]),
  };
}

/** The settings of a login that a profile can set; a flag that is no text adds to them where it is used. */
function loginSettingsInForce(
  flags: SettingFlags,
  env: Env,
  entries: Profile,
  { nameOf, from }: { nameOf: (flag: keyof SettingFlags) => string; from: string },
): Record<ProfileLoginSetting, Sourced | undefined> {
  const texts: Readonly<Record<string, string | undefined>> = { ...entries };
  const inForce = loginSettings().flatMap(({ name, variable, profile }) => {
    if (profile === undefined) return [];
    const typed: unknown = Reflect.get(flags, name);
    const text = typeof typed === "string" ? typed : undefined;
    const flag = nameOf(name as keyof SettingFlags);
    const set = variable && env[variable];
    return [[name, firstSet([text, flag], [set, variable ?? ""], [texts[profile.key], from])]];
  });
  return Object.fromEntries(inForce) as Record<ProfileLoginSetting, Sourced | undefined>;
}

function parsedBaseUrl({ value, source }: Sourced): Sourced {
  checkSetting("base_url", value, source);
  return { value: parseBaseUrl(value, source), source };
}

/** A token alone; a sandbox never gets that of a real service, nor a real service that of a sandbox. */
function checkedToken(
  token: ApiTokenSetting | undefined,
  baseUrl: Sourced | undefined,
  home: string | undefined,
): ApiTokenSetting | undefined {
  if (token === undefined) return token;
  const { source } = token;
  const read = () => {
    const value = checkApiToken(token.read(), source);
    return baseUrl === undefined ? value : checkSandboxToken({ value, source }, baseUrl, home);
  };
  return { ...token, read };
}

interface Entries extends Profile {
  /** The sandbox's own token, which no settings file has. */
  sandbox_token?: string;
}

/** What names the service of a run that has no address of one while a sandbox runs. */
export const RUNNING_SANDBOX = "the running sandbox";

function sandboxEntries(home: string | undefined): Entries | undefined {
  const state = readSandboxState(home);
  if (!state) return undefined;
  const { account_id: account, domain_id: domain, pool_id: pool } = state;
  return { base_url: state.base_url, sandbox_token: state.api_token, account, domain, pool };
}

function profileEntries(profile: Sourced, config: Config, home: string | undefined, acceptsNew: boolean): Entries {
  const { value: name, source } = profile;
  if (!isProfileName(name))
    throw usageError(`${source} ${quote(name)} is not a valid profile name: letters, digits, "-", "_" and "."`);
  const own = Object.hasOwn(config.profiles, name) ? config.profiles[name] : undefined;
  if (own) return own;
  // Without a sandbox it is empty: its logins are stored all the same.
  if (name === SANDBOX_PROFILE) return sandboxEntries(home) ?? {};
  // The default profile need not be written down; a name that the user typed must be.
  if (name === "default" || acceptsNew) return {};
  const flag = `--profile ${shellWord(name)}`;
  const create = `to make it: agentauth login <mcp_url> ${flag}, or for lists agentauth config set base_url <url> ${flag}`;
  const hint = suggestionHint(name, profileNames(config, home), create);
  throw usageError(`there is no profile ${quote(name)} (${source})`, hint);
}

function apiToken(entries: Entries, baseUrl: Sourced | undefined, env: Env, from: string): ApiTokenSetting | undefined {
  const { api_token: reference, sandbox_token: sandbox, base_url: bound } = entries;
  // It is kept from other programs also where it is not used, or not for this service.
  noteReference(reference ?? "", env);
  const inEnv = env["AGENTAUTH_API_TOKEN"]?.replace(/[\r\n]+$/, "");
  if (inEnv) {
    const source = "AGENTAUTH_API_TOKEN";
    return isReference(inEnv) ? referencedSecret(inEnv, source, env) : { read: () => inEnv, source };
  }
  if (reference === undefined && sandbox === undefined) return undefined;
  const named = { reference: { value: reference ?? "(that of the sandbox)", source: from } };
  // A profile's token goes to the profile's service alone, whatever sets another base URL.
  if (baseUrl && (bound === undefined || new URL(bound).origin !== new URL(baseUrl.value).origin))
    return {
      ...named,
      source: from,
      read() {
        throw usageError(
          `the API token of ${from} belongs to ${bound ?? "no base_url yet"}, not to ${baseUrl.value} (${baseUrl.source})`,
          "give the token for this address in AGENTAUTH_API_TOKEN, or use another profile",
        );
      },
    };
  if (sandbox !== undefined) return { ...named, read: () => sandbox, source: from };
  return { ...named, ...referencedSecret(reference ?? "", from, env) };
}
