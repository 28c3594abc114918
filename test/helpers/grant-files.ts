import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { profileDigits } from "../../src/store/file/file-grants.js";

/** The paths of all files of grants in a store, temporary ones included, sorted. */
export function grantFiles(home: string): string[] {
  const folder = join(home, "grants");
  const entries = existsSync(folder) ? readdirSync(folder, { recursive: true, withFileTypes: true }) : [];
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/** The path of the only file of a grant. */
export function grantFile(home: string): string {
  const [path, ...more] = grantFiles(home).filter((one) => one.endsWith(".json"));
  if (path === undefined || more.length > 0) throw new Error("one file was expected");
  return path;
}

/** Writes the file of a grant of the profile `default` with a text of the caller's, and returns its path. */
export function writeGrantFile(home: string, text: string): string {
  const id = "0".repeat(40);
  const path = join(home, "grants", `${profileDigits("default")}${id.slice(20)}`, id, "1.json");
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}
