import { rmSync } from "node:fs";
import { join } from "node:path";
import { writeSecretFile } from "./secret-file.js";

/** The file where `config set api_token -` stores a profile's token. */
function tokenPath(home: string, profile: string): string {
  return join(home, "tokens", profile);
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

/** Removes the file that a reference names if {@link storeToken} made it; any other file is the user's. */
export function removeOwnToken(home: string, profile: string, reference: string | undefined): void {
  const path = tokenPath(home, profile);
  if (reference === `file:${path}`) rmSync(path, { force: true });
}
