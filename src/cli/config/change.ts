import { join } from "node:path";
import { isAgentAuthError } from "../../errors.js";
import { makePrivateFolder } from "../../store/file/private-file.js";
import { noLinks } from "../../store/file/published-file.js";
import { FileLeases } from "../../store/leases/file-leases.js";
import { type Config, readConfig, writeConfig } from "./file.js";

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
  const work = async () => {
    const changed = change(readConfig(home));
    if (changed) await writeConfig(home, changed);
  };
  // A broken file is reported before anything is written.
  readConfig(home);
  makePrivateFolder(home);
  let isBegun = false;
  try {
    const options = { durationMs: DURATION_MS, patienceMs: PATIENCE_MS, once: true, signal };
    await new FileLeases(join(home, "claims")).run(
      "settings file",
      async (lease) => {
        isBegun = true;
        await lease.commit();
        await work();
      },
      options,
    );
  } catch (error) {
    // Settings need no hard links; logins do, and report it themselves.
    if (isBegun || !hasNoLinks(error)) throw error;
    await work();
  }
}

function hasNoLinks(error: unknown): boolean {
  const cause = isAgentAuthError(error) ? (error.cause as NodeJS.ErrnoException | undefined) : undefined;
  return noLinks(cause?.code) !== undefined;
}
