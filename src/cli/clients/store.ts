import type { GrantStore } from "../../oauth/grant/grant-store.js";
import { fileStore } from "../../store/file/file.js";
import { keyringStore } from "../../store/keychain/keyring.js";
import { memoryStore } from "../../store/memory.js";
import { type StoreChoice, storeChoiceOf } from "../config/store.js";
import type { Io } from "../io/io.js";
import type { CommandContext } from "../runtime/context.js";
import { type EngineHost, engineHost, openEngine } from "./engine/open-engine.js";

/**
 * The store of the profile, as settings and environment choose it.
 *
 * @throws `AgentAuthError` `usage` for a choice that is none
 */
export function openProfileStore(context: CommandContext): GrantStore {
  const { io, home, settings, pendingSaves } = context;
  const choice = storeChoiceOf(settings().profile.value, io.env, home());
  return pendingSaves.watch(openStore(choice, home(), io, engineHost(context)));
}

/** The store itself; a fallback to another kind of store is reported once on `io`. */
export function openStore(
  { value, fallback, secrets = { url: undefined, keys: undefined } }: StoreChoice,
  folder: string,
  io: Pick<Io, "warn" | "env">,
  host: EngineHost = { home: folder },
): GrantStore {
  switch (value) {
    case "redis":
    case "postgres":
      return openEngine(value, secrets, host).store;
    case "memory":
      return memoryStore();
    case "file":
      return fileStore(folder);
    case "keyring":
      return keyringStore(folder, {
        fallback,
        // No other program may find our settings in its environment.
        env: Object.fromEntries(Object.entries(io.env).filter(([name]) => !name.startsWith("AGENTAUTH_"))),
        onFallback: (reason) =>
          io.warn(
            `${reason}; as store_fallback says, logins are stored unsealed in files under ${folder}, and ` +
              "sealed ones cannot be read",
          ),
      });
  }
}
