import type { Env } from "../../platform/system.js";
import { type Profile, TAKEOVERS } from "../../profile/profile-settings.js";
import { firstSet, type Settings, type Sourced } from "../../profile/settings.js";
import {
  type Config,
  locationIn,
  profileOf,
  readSettingsFile,
  type SettingsFile,
  writtenProfile,
} from "../../profile/settings-file.js";

/** A setting and what decided it; without a value where nothing did. */
export interface EffectiveSetting extends Partial<Sourced> {
  /** The setting. */
  key: "profile" | "store" | keyof Profile;
}

export interface SettingSources {
  settings: Settings;
  config: Config;
  home: string | undefined;
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
  const from = `profile ${profile.value}`;
  const ofStore = (key: "store_url" | "store_keys" | "store_takeover" | "store_tenant", isSecret: boolean) => {
    const variable = `AGENTAUTH_${key.toUpperCase()}`;
    return firstSet([env[variable] && (isSecret ? "(set)" : env[variable]), variable], [written.entries[key], from]);
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
    { key: "store_fallback", ...firstSet([written.entries.store_fallback, from], ["none", "default"]) },
    { key: "store_url", ...ofStore("store_url", true) },
    { key: "store_keys", ...ofStore("store_keys", true) },
    { key: "store_takeover", ...(ofStore("store_takeover", false) ?? { value: TAKEOVERS[0], source: "default" }) },
    { key: "store_tenant", ...ofStore("store_tenant", false) },
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
  const file = sources.home === undefined ? undefined : readSettingsFile(sources.home);
  if (file === undefined) return rows;
  const written = writtenProfile(sources.settings.profile.value, sources.config);
  return rows.map((row) => withPlace(row, written, sources.config, file));
}

function withPlace(
  row: EffectiveSetting,
  { name }: { name: string },
  { profile }: Config,
  file: SettingsFile,
): EffectiveSetting {
  const { key, source } = row;
  if (source === undefined) return row;
  if (key === "profile") {
    return source === "settings file" && profile === row.value ? { ...row, source: locationIn(file, "profile") } : row;
  }
  return /^profile /.test(source) ? { ...row, source: `${source}: ${locationIn(file, "profiles", name, key)}` } : row;
}
