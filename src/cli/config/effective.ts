import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Env } from "../../platform.js";
import { type Profile, TAKEOVERS } from "../../profile/profile-settings.js";
import { writeSecretFile } from "../../profile/secrets.js";
import { firstSet, type Settings, type Sourced } from "../../profile/settings.js";
import {
  type Config,
  checkProfileName,
  locationIn,
  readConfig,
  readSettingsFile,
  type SettingsFile,
  writtenProfile,
} from "../../profile/settings-file.js";

/**
 * The file where `config set api_token -` stores a profile's token. Its name is a digest: on Windows and macOS the names
 * of the profiles `work` and `Work` would be one file, and on Windows `con` would be a device.
 */
export function tokenPath(home: string, profile: string): string {
  return join(home, "tokens", createHash("sha256").update(profile).digest("hex").slice(0, 40));
}

/** Stores a profile's API token in a separate file. @returns the reference to it, for the settings */
export function storeToken(home: string, profile: string, token: string): string {
  const path = tokenPath(home, profile);
  writeSecretFile(path, `${token}\n`);
  return `file:${path}`;
}

/**
 * Removes the file that a reference names if {@link storeToken} made it; any other file is the user's. A file that
 * another profile names stays.
 */
export function removeOwnToken(home: string, profile: string, reference: string | undefined): void {
  const path = tokenPath(home, profile);
  if (reference !== `file:${path}`) return;
  const isShared = Object.values(readConfig(home).profiles).some((other) => other.api_token === reference);
  if (!isShared) rmSync(path, { force: true });
}

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
    { key: "profile", ...checkProfileName(profile, home) },
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
  if (key === "profile")
    return source === "settings file" && profile === row.value ? { ...row, source: locationIn(file, "profile") } : row;
  return /^profile /.test(source) ? { ...row, source: `${source}: ${locationIn(file, "profiles", name, key)}` } : row;
}
