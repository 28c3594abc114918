import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { writeSecretFile } from "../../profile/secrets.js";
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

/**
 * The file where `config set api_token -` stores a profile's token. Its name is a digest: on Windows and macOS the names
 * of the profiles `work` and `Work` would be one file, and on Windows `con` would be a device.
 */
export function tokenPath(home: string, profile: string): string {
  return join(home, "tokens", createHash("sha256").update(profile).digest("hex").slice(0, 40));
}

/**
 * Stores a profile's API token in a separate file.
 *
 * @returns the reference to it, for the settings
 */
export function storeToken(home: string, profile: string, token: string): string {
  const path = tokenPath(home, profile);
  writeSecretFile(path, `${token}\n`);
  return `file:${path}`;
}

/**
 * Removes the file that a reference names if {@link storeToken} made it; any other file is the user's. A file that
 * another profile names stays.
 */
export function removeOwnToken(home: string, profile: string, reference: string | undefined): void {
  const path = tokenPath(home, profile);
  if (reference !== `file:${path}`) return;
  const isShared = Object.values(readConfig(home).profiles).some((other) => other.api_token === reference);
  if (!isShared) rmSync(path, { force: true });
}
