import type { Io } from "../io/io.js";
import { checkSetting, type Profile, readConfig, type STORE_FALLBACKS, type STORES } from "./file.js";
import { writtenProfile } from "./profile.js";
import { isReference, referencedSecret, type SecretSetting } from "./secret-reference.js";

/** A kind of store. */
export type StoreKind = (typeof STORES)[number];

/** The store of a run, and what chose it. */
export interface StoreChoice {
  value: StoreKind;
  /** `AGENTAUTH_STORE`, a profile such as `profile default`, or `default`. */
  source: string;
  /** What happens where the keychain cannot be used. */
  fallback: (typeof STORE_FALLBACKS)[number];
  /** For an engine: its address and its keys. */
  secrets?: StoreSecrets;
}

/** The kinds of stores that are engines, which other machines use too. */
export type EngineKind = Extract<StoreKind, "redis" | "postgres">;

/** Whether a kind of store is an engine. */
export function isEngine(kind: StoreKind): kind is EngineKind {
  return kind === "redis" || kind === "postgres";
}

/** The secrets of an engine; what is not set is undefined. */
export interface StoreSecrets {
  /** The address of the engine, with its credentials. */
  url: SecretSetting | undefined;
  /** The text of the key ring, or `none`. */
  keys: SecretSetting | undefined;
}

/** The profile's name and what it says about the store. */
export interface StoreEntries {
  name: string;
  entries: Pick<Profile, "store" | "store_fallback" | "store_url" | "store_keys">;
}

/**
 * Which store is used: `AGENTAUTH_STORE`, else the profile's `store`, else files.
 *
 * @param profile the profile's name and what is set in it
 * @throws `AgentAuthError` `usage` that names the variable or the setting, its value and what is allowed
 */
export function chooseStore(env: Io["env"], profile: StoreEntries): StoreChoice {
  const from = `profile ${profile.name}`;
  const { store, store_fallback: fallback = "none" } = profile.entries;
  checkSetting("store_fallback", fallback, `store_fallback of ${from}`);
  const choice = (value: string, source: string, where = source): StoreChoice => {
    checkSetting("store", value, where);
    const kind = value as StoreKind;
    const secrets = isEngine(kind) ? { secrets: storeSecrets(env, profile) } : {};
    return { value: kind, source, fallback: fallback as StoreChoice["fallback"], ...secrets };
  };
  const set = env["AGENTAUTH_STORE"];
  if (set) return choice(set, "AGENTAUTH_STORE");
  if (store) return choice(store, from, `store of ${from}`);
  return choice("file", "default");
}

/** {@link chooseStore} for a profile of the settings file. */
export function storeChoiceOf(profile: string, env: Io["env"], home: string): StoreChoice {
  return chooseStore(env, writtenProfile(profile, readConfig(home)));
}

/**
 * Where the secrets of an engine are. A variable has the secret itself, or a reference as the setting has: a container
 * gets its secrets as files.
 */
export function storeSecrets(env: Io["env"], { name, entries }: StoreEntries): StoreSecrets {
  const secret = (key: "store_url" | "store_keys", variable: string): SecretSetting | undefined => {
    const set = env[variable];
    const [value, source] = set ? [set, variable] : [entries[key], `profile ${name}`];
    if (value === undefined) return undefined;
    return isReference(value) ? referencedSecret(value, source, env) : { read: () => value, source };
  };
  return { url: secret("store_url", "AGENTAUTH_STORE_URL"), keys: secret("store_keys", "AGENTAUTH_STORE_KEYS") };
}
