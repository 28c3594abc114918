import type { GrantStore } from "../oauth/grant/grant-store.js";
import { withoutOurs } from "../platform/environment.js";
import { fileStore } from "../store/file/file.js";
import { KEYCHAIN_TIMEOUT } from "../store/keychain/keychain.js";
import { keyringStore } from "../store/keychain/keyring.js";
import { memoryStore } from "../store/memory.js";
import { type StoreChoice, storeChoiceOf } from "./store-choice.js";
import type { Io } from "../cli/io/io.js";
import type { CommandContext } from "../cli/runtime/context.js";
import { type EngineHost, engineHost, openEngine } from "./engine/open-engine.js";

/**
 * The store of the profile, as settings and environment choose it.
 *
 * @throws `AgentAuthError` `usage` for a choice that is none
 */
export function openProfileStore(context: CommandContext): GrantStore {
  const { io, home, settings, pendingSaves } = context;
  const choice = storeChoiceOf(settings().profile.value, io.env, home());
  return pendingSaves.watch(openStore(choice, home(), io, engineHost(context), keychainPatience(io)));
}

/** How long the keychain may wait for its user's password, in milliseconds: where there is a terminal, a person may type it. */
export function keychainPatience({ stdin, stderr }: { stdin: { isTTY: boolean }; stderr: { isTTY: boolean } }): number {
  return stdin.isTTY && stderr.isTTY ? 60_000 : KEYCHAIN_TIMEOUT;
}

/** The store itself; a fallback to another kind of store is reported once on `io`. */
export function openStore(
  { value, fallback, engine }: StoreChoice,
  folder: string,
  io: Pick<Io, "warn" | "env">,
  host: EngineHost = { home: folder },
  keychainMs?: number,
): GrantStore {
  switch (value) {
    case "redis":
    case "postgres":
      return openEngine(value, engine, host).store;
    case "memory":
      return memoryStore();
    case "file":
      return fileStore(folder);
    case "keyring":
      return keyringStore(folder, {
        fallback,
        timeoutMs: keychainMs,
        // No other program may find our settings in its environment.
        env: withoutOurs(io.env),
        onFallback: (reason) =>
          io.warn(
            `${reason}; as store_fallback says, logins are stored unsealed in files under ${folder}, and ` +
              "sealed ones cannot be read",
          ),
      });
  }
}
