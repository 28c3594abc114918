import { isAgentAuthError } from "../../../errors.js";
import type { Keychain } from "../../../store/keychain/keychain.js";
import type { StoreChoice } from "../../config/store.js";
import { type Finding, ok, skipped, warning } from "./check.js";

/** Milliseconds that the keychain may take, a question to the person included. */
export const KEYCHAIN_CHECK_MS = 5000;

/**
 * Whether the keychain answers, where logins are sealed with a key in it. It may ask a person to unlock it, as it would
 * at the next login.
 *
 * @param store what was chosen; undefined where that is none
 * @param mayAsk whether a person may be asked
 * @throws `AgentAuthError` `store_failed` where the keychain cannot be used, and nothing else was allowed
 */
export async function checkKeychain(
  store: StoreChoice | undefined,
  keychain: Keychain,
  mayAsk: boolean,
): Promise<Finding> {
  if (store?.value !== "keyring")
    return skipped("not used: AGENTAUTH_STORE=keyring would seal logins with a key in it");
  if (!mayAsk) return skipped("not asked: it may want to ask somebody, and --no-input is set");
  try {
    return (await keychain.get()) === undefined
      ? ok("answers; a key is made at the first login")
      : ok("answers, and has the key for this folder");
  } catch (error) {
    if (!isAgentAuthError(error) || store.fallback !== "file") throw error;
    return warning(`${error.message}: logins are kept unsealed, as store_fallback says`, error.hint);
  }
}
