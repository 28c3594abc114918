import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { writeSecretFile } from "../../profile/secrets.js";
import { readConfig } from "../../profile/settings-file.js";

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
