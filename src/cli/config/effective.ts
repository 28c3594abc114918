import { readFileSync } from "node:fs";
import type { Env } from "../../platform/system.js";
import { isProfileKey, type Profile, TAKEOVERS } from "../../profile/profile-settings.js";
import type { Settings, Sourced } from "../../profile/settings.js";
import {
  type Config,
  configPath,
  locationIn,
  profileOf,
  type SettingsFile,
  writtenProfile,
} from "../../profile/settings-file.js";

/** A setting and what decided it; without a value where nothing did. */
export interface EffectiveSetting extends Partial<Sourced> {
  /** The setting. */
  key: "profile" | "store" | keyof Profile;
}

/** What the effective settings are read from. */
export interface SettingSources {
  settings: Settings;
  config: Config;
  home: string;
  store: Sourced;
  env: Env;
}

/**
 * Every setting with the flag, the variable or the profile that decided it, or `default`. Secrets are named by where they
 * are.
 */
export function effectiveSettings({ settings, config, home, store, env }: SettingSources): EffectiveSetting[] {
  const { profile, authHeader, sorting, clientCert, clientKey } = settings;
  const token =
    settings.apiToken?.reference ?? (settings.apiToken && { value: "(set)", source: settings.apiToken.source });
  const written = writtenProfile(profile.value, config);
  const fallback = written.entries.store_fallback;
  const secret = (key: "store_url" | "store_keys", variable: string) => {
    if (env[variable]) return { value: "(set)", source: variable };
    const reference = written.entries[key];
    return reference === undefined ? {} : { value: reference, source: `profile ${profile.value}` };
  };
  const plain = (key: "store_takeover" | "store_tenant"): Sourced | undefined => {
    const variable = `AGENTAUTH_${key.toUpperCase()}`;
    const [value, source] = env[variable]
      ? [env[variable], variable]
      : [written.entries[key], `profile ${profile.value}`];
    return value === undefined ? undefined : { value, source };
  };
  return [
    { key: "profile", ...profileOf(profile, home) },
    { key: "base_url", ...settings.baseUrl },
    { key: "api_token", ...token },
    { key: "auth_header", ...(authHeader ?? { value: "Authorization: Bearer", source: "default" }) },
    { key: "sorting", ...(sorting ?? { value: "deep", source: "default" }) },
    { key: "issuer", ...settings.issuer },
    { key: "account", ...settings.account },
    { key: "domain", ...settings.domain },
    { key: "pool", ...settings.pool },
    { key: "output", ...settings.output },
    { key: "store", value: store.value, source: store.source },
    {
      key: "store_fallback",
      ...(fallback === undefined
        ? { value: "none", source: "default" }
        : { value: fallback, source: `profile ${profile.value}` }),
    },
    { key: "store_url", ...secret("store_url", "AGENTAUTH_STORE_URL") },
    { key: "store_keys", ...secret("store_keys", "AGENTAUTH_STORE_KEYS") },
    { key: "store_takeover", ...(plain("store_takeover") ?? { value: TAKEOVERS[0], source: "default" }) },
    { key: "store_tenant", ...plain("store_tenant") },
    { key: "client_cert", ...clientCert },
    { key: "client_key", ...clientKey },
    { key: "use_system_ca", ...(settings.useSystemCa ?? { value: "no", source: "default" }) },
    { key: "client_metadata_url", ...settings.clientMetadataUrl },
    { key: "audit", ...settings.audit },
  ];
}

/** {@link effectiveSettings} where what comes from a profile has its line of the settings file. */
export function settingsWithOrigin(sources: SettingSources): EffectiveSetting[] {
  const rows = effectiveSettings(sources);
  const file = settingsFile(sources.home);
  if (file === undefined) return rows;
  const written = writtenProfile(sources.settings.profile.value, sources.config);
  return rows.map((row) => withPlace(row, written, sources.config, file));
}

function settingsFile(home: string): SettingsFile | undefined {
  const path = configPath(home);
  try {
    return { path, text: readFileSync(path, "utf8") };
  } catch {
    return undefined;
  }
}

function withPlace(
  row: EffectiveSetting,
  { name, entries }: { name: string; entries: Profile },
  { profile }: Config,
  file: SettingsFile,
): EffectiveSetting {
  const { key, source } = row;
  if (source === undefined) return row;
  if (key === "profile") {
    return source === "settings file" && profile === row.value ? { ...row, source: locationIn(file, "profile") } : row;
  }
  const isWritten = isProfileKey(key) && entries[key] !== undefined && /^profile /.test(source);
  return isWritten ? { ...row, source: `${source}: ${locationIn(file, "profiles", name, key)}` } : row;
}
