import { rmSync } from "node:fs";
import { join } from "node:path";
import { writeSecretFile } from "./secret-file.js";

/** The file that `config set api_token -` keeps a profile's token in. */
function tokenPath(home: string, profile: string): string {
  return join(home, "tokens", profile);
}

/**
 * Keeps a profile's API token in a file of its own.
 *
 * @returns the reference to it, for the settings
 */
export function keepToken(home: string, profile: string, token: string): string {
  const path = tokenPath(home, profile);
  writeSecretFile(path, `${token}\n`);
  return `file:${path}`;
}

/** Removes the file that a reference names if it is one that {@link keepToken} made; every other is somebody else's. */
export function removeOwnToken(home: string, profile: string, reference: string | undefined): void {
  const path = tokenPath(home, profile);
  if (reference === `file:${path}`) rmSync(path, { force: true });
}
