import type { Io } from "../io/io.js";
import { checkSetting, type Profile, readConfig, type STORE_FALLBACKS, type STORES } from "./file.js";
import { writtenProfile } from "./profile.js";

/** A kind of store. */
export type StoreKind = (typeof STORES)[number];

/** The store of a run, and what chose it. */
export interface StoreChoice {
  value: StoreKind;
  /** `AGENTAUTH_STORE`, a profile such as `profile default`, or `default`. */
  source: string;
  /** What happens where the keychain cannot be used. */
  fallback: (typeof STORE_FALLBACKS)[number];
}

/**
 * Which store is used: `AGENTAUTH_STORE`, else the profile's `store`, else files.
 *
 * @param profile the profile's name and what is set in it
 * @throws `AgentAuthError` `usage` that names the variable or the setting, its value and what is allowed
 */
export function chooseStore(
  env: Io["env"],
  profile: { name: string; entries: Pick<Profile, "store" | "store_fallback"> },
): StoreChoice {
  const from = `profile ${profile.name}`;
  const { store, store_fallback: fallback = "none" } = profile.entries;
  checkSetting("store_fallback", fallback, `store_fallback of ${from}`);
  const choice = (value: string, source: string, where = source): StoreChoice => {
    checkSetting("store", value, where);
    return { value: value as StoreKind, source, fallback: fallback as StoreChoice["fallback"] };
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
