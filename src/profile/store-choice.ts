import { randomBytes } from "node:crypto";
import { isAgentAuthError, usageError } from "../errors.js";
import { isJsonObject, parseStrictJson } from "../http/strict-json.js";
import type { Env } from "../platform.js";
import { quote } from "../redact.js";
import { KEY_BYTES, type KeyRing, type KeyRingOptions, keyRing } from "../store/seal/key-ring.js";
import type { Profile, STORE_FALLBACKS, StoreKind } from "./profile-settings.js";
import { checkSetting, isEngine, NO_KEYS, TAKEOVERS } from "./profile-settings.js";
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

const MEMBERS = ["current", "keys", "name_key"] as const;

export function newKeys(): string {
  const key = () => randomBytes(KEY_BYTES).toString("base64url");
  return `${JSON.stringify({ current: "k1", keys: { k1: key() }, name_key: key() }, null, 2)}\n`;
}

/**
 * The key ring of `store_keys`.
 *
 * @param purpose what needs it, for the message if it is missing
 * @param hide receives each key, so that every output masks it
 * @throws `AgentAuthError` `usage` if it is missing or not as {@link newKeys} writes it; no message shows a key
 */
export function readKeys(
  setting: SecretSetting | undefined,
  purpose: string,
  hide: (secret: string) => void = () => {},
): KeyRing | "none" {
  if (setting === undefined)
    throw usageError(
      `${purpose} needs a key ring, and store_keys is not set`,
      "make one with agentauth store keys <path>, then set AGENTAUTH_STORE_KEYS=file:<path>; none stores logins unsealed",
    );
  const text = setting.read();
  if (text === NO_KEYS) return "none";
  hide(text);
  const options = parse(text, setting.source);
  for (const key of [...Object.values(options.keys), options.nameKey]) hide(String(key));
  try {
    return keyRing(options);
  } catch (error) {
    if (!isAgentAuthError(error)) throw error;
    throw usageError(`store_keys (${setting.source}): ${error.message.replace("nameKey", "name_key")}`, error.hint);
  }
}

function parse(text: string, source: string): KeyRingOptions {
  const details = (problem: string) =>
    usageError(`store_keys (${source}) ${problem}`, "agentauth store keys <path> makes a key ring");
  let value: unknown;
  try {
    value = parseStrictJson(text);
  } catch {
    // The parser's message may quote a key.
    throw details("is not valid JSON");
  }
  if (!isJsonObject(value)) throw details("must be a JSON object");
  const { current, keys, name_key: nameKey } = value;
  const unknownKey = Object.keys(value).find((name) => !MEMBERS.some((known) => known === name));
  if (unknownKey !== undefined)
    throw details(`has an unknown member ${quote(unknownKey)}; known are ${MEMBERS.join(", ")}`);
  if (typeof current !== "string") throw details("has no current: the id of the key that seals");
  if (!isJsonObject(keys)) throw details("has no keys: an object with each key by its id");
  const wrongKey = Object.entries({ ...keys }).find(([, key]) => typeof key !== "string");
  if (wrongKey) throw details(`has a key ${quote(wrongKey[0])} that is not a string`);
  if (typeof nameKey !== "string") throw details("has no name_key");
  return { current, keys: keys as Record<string, string>, nameKey };
}
