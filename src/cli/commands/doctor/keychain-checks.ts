import { isAgentAuthError } from "../../../errors.js";
import type { StoreChoice } from "../../../profile/store-choice.js";
import type { Keychain } from "../../../store/keychain/keychain.js";
import { type Finding, ok, skipped, warning } from "./check.js";

/** Milliseconds that the keychain may take, including a prompt to the user. */
export const KEYCHAIN_CHECK_MS = 5000;

/**
 * Whether the keychain answers, if logins are sealed with a key in it. The keychain may prompt the user to unlock it, as
 * it would at the next login.
 *
 * @param store the chosen store; undefined if the choice is invalid
 * @param mayPrompt whether the user may be prompted
 * @throws `AgentAuthError` `store_failed` if the keychain cannot be used and there is no fallback
 */
export async function checkKeychain(
  store: StoreChoice | undefined,
  keychain: Keychain,
  mayPrompt: boolean,
): Promise<Finding> {
  if (store?.value !== "keyring")
    return skipped("not used: AGENTAUTH_STORE=keyring seals logins with a key in the keychain");
  if (!mayPrompt) return skipped("not checked: the keychain may prompt, and --no-input is set");
  try {
    return (await keychain.get()) === undefined
      ? ok("answers; the first login creates a key")
      : ok("answers, and has the key for this folder");
  } catch (error) {
    if (!isAgentAuthError(error) || store.fallback !== "file") throw error;
    return warning(`${error.message}: logins are stored unsealed, because of store_fallback`, error.hint);
  }
}
