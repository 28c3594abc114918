import type { GrantStore } from "../oauth/model/grant-store.js";
import { type Env, withoutOurs } from "../platform.js";
import { fileStore } from "../store/file/file.js";
import { keyringStore } from "../store/keychain/keyring.js";
import { memoryStore } from "../store/memory.js";
import { type EngineHost, openEngine } from "./engine/open-engine.js";
import { keptText } from "./settings-file.js";
import type { StoreChoice } from "./store-choice.js";

/** The store itself, in the home folder if it is in files; a fallback to another kind of store is reported once on `io`. */
export function openStore(
  { value, fallback, engine }: StoreChoice,
  home: () => string,
  io: { env: Env; warn(text: string): void },
  host: EngineHost = {},
  keychainMs?: number,
): GrantStore {
  const onEmptyFile = (path: string, kept: string) => io.warn(keptText(path, kept));
  switch (value) {
    case "redis":
    case "postgres":
      return openEngine(value, engine, host).store;
    case "memory":
      return memoryStore();
    case "file":
      return fileStore(home(), { onEmptyFile });
    case "keyring": {
      const folder = home();
      return keyringStore(folder, {
        fallback,
        timeoutMs: keychainMs,
        onEmptyFile,
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
}
