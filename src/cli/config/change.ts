import { join } from "node:path";
import { type Config, readConfig, writeConfig } from "../../profile/settings-file.js";
import { FileLeases } from "../../store/leases/file-leases.js";
import { makePrivateFolder } from "../../store/private/private-file.js";

const DURATION_MS = 10_000;
const PATIENCE_MS = 20_000;

/**
 * Changes the settings file: reads it, and writes what the change makes of it, while no other process does so.
 *
 * @param change returns the new settings, or undefined for no change
 * @throws `AgentAuthError` `usage` for a file that is broken, `store_failed` for one that cannot be written
 */
export async function changeConfig(
  home: string,
  change: (config: Config) => Config | undefined,
  signal: AbortSignal,
): Promise<void> {
  // A broken file is reported before anything is written.
  readConfig(home);
  makePrivateFolder(home);
  const options = { durationMs: DURATION_MS, patienceMs: PATIENCE_MS, once: true, signal };
  await new FileLeases(join(home, "claims")).run(
    "settings file",
    async (lease) => {
      await lease.commit();
      const changed = change(readConfig(home));
      if (changed) await writeConfig(home, changed);
    },
    options,
  );
}
