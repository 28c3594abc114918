import type { Env } from "../platform.js";
import type { Profile, STORE_FALLBACKS, StoreKind } from "./profile-settings.js";
import { checkSetting, isEngine, TAKEOVERS } from "./profile-settings.js";
import { isReference, referencedSecret, type SecretSetting } from "./secrets.js";
import { readConfig, writtenProfile } from "./settings-file.js";

/** The store of a run, and what chose it. */
export interface StoreChoice {
  value: StoreKind;
  /** `AGENTAUTH_STORE`, a profile such as `profile default`, or `default`. */
  source: string;
  /** What happens where the keychain cannot be used. */
  fallback: (typeof STORE_FALLBACKS)[number];
  /** For an engine: how it is reached and used. */
  engine?: EngineSettings;
}

/** What a profile and the environment say about an engine; what is not set is undefined. */
export interface EngineSettings {
  /** The address of the engine, with its credentials. */
  url: SecretSetting | undefined;
  /** The text of the key ring, or `none`. */
  keys: SecretSetting | undefined;
  /** When others take over an interrupted refresh, as {@link readTakeover} reads it. */
  takeover: string;
  /** Whose logins are used. */
  tenant: string | undefined;
}

/** The profile's name and what it says about the store. */
export interface StoreEntries {
  name: string;
  entries: Pick<Profile, "store" | "store_fallback" | `store_${keyof EngineSettings}`>;
}

/**
 * Which store is used: `AGENTAUTH_STORE`, else the profile's `store`, else files.
 *
 * @throws `AgentAuthError` `usage` that names the variable or the setting, its value and what is allowed
 */
export function chooseStore(env: Env, profile: StoreEntries): StoreChoice {
  const from = `profile ${profile.name}`;
  const { store, store_fallback: fallback = "none" } = profile.entries;
  checkSetting("store_fallback", fallback, `store_fallback of ${from}`);
  const choice = (value: string, source: string, where = source): StoreChoice => {
    checkSetting("store", value, where);
    const kind = value as StoreKind;
    const engine = isEngine(kind) ? { engine: engineSettings(env, profile) } : {};
    return { value: kind, source, fallback: fallback as StoreChoice["fallback"], ...engine };
  };
  const set = env["AGENTAUTH_STORE"];
  if (set) return choice(set, "AGENTAUTH_STORE");
  if (store) return choice(store, from, `store of ${from}`);
  return choice("file", "default");
}

/** {@link chooseStore} for a profile of the settings file. */
export function readStoreChoice(profile: string, env: Env, home: string | undefined): StoreChoice {
  return chooseStore(env, writtenProfile(profile, readConfig(home)));
}

/**
 * How an engine is reached and used. A variable has a secret itself, or a reference as the setting has: a container gets
 * its secrets as files.
 *
 * @throws `AgentAuthError` `usage`
 */
export function engineSettings(env: Env, { name, entries }: StoreEntries): EngineSettings {
  const secret = (key: "store_url" | "store_keys", variable: string): SecretSetting | undefined => {
    const set = env[variable];
    const [value, source] = set ? [set, variable] : [entries[key], `profile ${name}`];
    if (value === undefined) return undefined;
    return isReference(value) ? referencedSecret(value, source, env) : { read: () => value, source };
  };
  const { AGENTAUTH_STORE_TAKEOVER: set } = env;
  const takeover = set || (entries.store_takeover ?? TAKEOVERS[0]);
  checkSetting("store_takeover", takeover, set ? "AGENTAUTH_STORE_TAKEOVER" : `store_takeover of profile ${name}`);
  return {
    url: secret("store_url", "AGENTAUTH_STORE_URL"),
    keys: secret("store_keys", "AGENTAUTH_STORE_KEYS"),
    takeover,
    tenant: env["AGENTAUTH_STORE_TENANT"] || entries.store_tenant,
  };
}
