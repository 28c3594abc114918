import type { GrantStore } from "../../oauth/model/grant-store.js";
import { makingProfile } from "../../profile/change-config.js";
import type { EngineHost } from "../../profile/engine/open-engine.js";
import { openStore } from "../../profile/open-store.js";
import { KEYCHAIN_TIMEOUT } from "../../store/keychain/keychain.js";
import type { CommandContext } from "../runtime/context.js";

/**
 * The store of the profile, as settings and environment choose it.
 *
 * @throws `AgentAuthError` `usage` for a choice that is none
 */
export function openProfileStore(context: CommandContext): GrantStore {
  const { io, home, pendingSaves } = context;
  const store = openStore(context.storeChoice(), home, io, engineHost(context), keychainPatience(io));
  const { profile, isNewProfile } = context.settings();
  return pendingSaves.watch(isNewProfile ? makingProfile(store, profile.value, home()) : store);
}

/** How long the keychain may wait for its user's password, in milliseconds: where there is a terminal, a person may type it. */
export function keychainPatience({ stdin, stderr }: { stdin: { isTTY: boolean }; stderr: { isTTY: boolean } }): number {
  return stdin.isTTY && stderr.isTTY ? 60_000 : KEYCHAIN_TIMEOUT;
}

/** What a run opens an engine with. */
export function engineHost({ redactor, onExit }: Pick<CommandContext, "redactor" | "onExit">): EngineHost {
  return { hide: (secret) => redactor.add(secret), onExit };
}
