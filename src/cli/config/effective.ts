import { readFileSync } from "node:fs";
import type { CommandContext } from "../runtime/context.js";
import { type Config, configPath, isProfileKey, type Profile, readConfig } from "./file.js";
import { homeOf } from "./home.js";
import { placeIn, type SettingsFile } from "./location.js";
import { profileOf, writtenProfile } from "./profile.js";
import type { Settings } from "./settings.js";
import type { Sourced } from "./sourced.js";
import { chooseStore } from "./store.js";

/** A setting and what decided it; without a value where nothing did. */
export interface EffectiveSetting extends Partial<Sourced> {
  key: string;
}

/**
 * Every setting in force, with the flag, the variable or the profile that decided it, or `default`.
 *
 * @param showOrigin adds the line of the settings file to what comes from a profile
 */
export function effectiveSettings(settings: Settings, deps: CommandContext, showOrigin = false): EffectiveSetting[] {
  const home = homeOf(deps);
  const config = readConfig(home);
  const written = writtenProfile(settings.profile.value, config);
  const rows = rowsOf(settings, written.entries, chooseStore(deps.io.env, written), profileOf(settings.profile, home));
  if (!showOrigin) return rows;
  const file = settingsFile(home);
  return file === undefined ? rows : rows.map((row) => withPlace(row, written, config, file));
}

function rowsOf(
  settings: Settings,
  { store_fallback: fallback }: Profile,
  store: Sourced,
  profile: Sourced,
): EffectiveSetting[] {
  const { baseUrl, apiToken, authHeader, issuer, account, domain, pool, output, clientCert, clientKey } = settings;
  const from = `profile ${profile.value}`;
  return [
    { key: "profile", ...profile },
    { key: "base_url", ...baseUrl },
    // Where the token comes from is what a person needs to know; the token itself is nobody's business.
    { key: "api_token", ...(apiToken && { value: "(set)", source: apiToken.source }) },
    { key: "auth_header", ...(authHeader ?? { value: "Authorization: Bearer", source: "default" }) },
    { key: "issuer", ...issuer },
    { key: "account", ...account },
    { key: "domain", ...domain },
    { key: "pool", ...pool },
    { key: "output", ...output },
    { key: "store", value: store.value, source: store.source },
    {
      key: "store_fallback",
      ...(fallback === undefined ? { value: "none", source: "default" } : { value: fallback, source: from }),
    },
    { key: "client_cert", ...clientCert },
    { key: "client_key", ...clientKey },
  ];
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
    return source === "settings file" && profile === row.value ? { ...row, source: placeIn(file, "profile") } : row;
  }
  const isWritten = isProfileKey(key) && entries[key] !== undefined && /^profile /.test(source);
  return isWritten ? { ...row, source: `${source}: ${placeIn(file, "profiles", name, key)}` } : row;
}
