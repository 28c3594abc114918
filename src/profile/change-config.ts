import { join } from "node:path";
import type { GrantStore } from "../oauth/model/grant-store.js";
import { FileLeases } from "../store/leases/file-leases.js";
import { makePrivateFolder } from "../store/private/private-file.js";
import { type Config, readConfig, writeConfig } from "./settings-file.js";

const DURATION_MS = 10_000;
const PATIENCE_MS = 20_000;

/**
 * Changes the settings file: reads it, and writes what the change makes of it, while no other process does so.
 *
 * @throws `AgentAuthError` `usage` for a file that is broken, `store_failed` for one that cannot be written
 */
export async function changeConfig(
  home: string,
  change: (config: Config) => Config | undefined,
  signal?: AbortSignal,
): Promise<void> {
  // A broken file is reported before anything is written.
  readConfig(home);
  makePrivateFolder(home);
  const options = { durationMs: DURATION_MS, patienceMs: PATIENCE_MS, once: true, ...(signal && { signal }) };
  await new FileLeases(join(home, "claims")).run(
    "settings file",
    async (lease) => {
      await lease.commit();
      const changed = change(readConfig(home));
      if (changed) writeConfig(home, changed);
    },
    options,
  );
}

/** The store of a profile that does not exist yet: a login that begins makes the profile, before the user is asked. */
export function makingProfile(store: GrantStore, name: string, home: string): GrantStore {
  const write = (config: Config) =>
    Object.hasOwn(config.profiles, name) ? undefined : { ...config, profiles: { ...config.profiles, [name]: {} } };
  let made: Promise<void> | undefined;
  const make = () => {
    made ??= changeConfig(home, write);
    return made;
  };
  // The rest is inherited: a copy would read the location of a keychain, which opens it.
  return Object.assign(Object.create(store) as GrantStore, {
    async reserve(key, dueAt) {
      await make();
      return store.reserve(key, dueAt);
    },
    async save(grant, expected) {
      await make();
      return store.save(grant, expected);
    },
  } satisfies Partial<GrantStore>);
}
