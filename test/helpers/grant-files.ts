import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** The paths of all files of grants in a store, temporary ones included, sorted; those of earlier versions come first. */
export function grantFiles(home: string): string[] {
  return ["grants", "grants-by-server"].flatMap((name) => {
    const folder = join(home, name);
    const entries = existsSync(folder) ? readdirSync(folder, { recursive: true, withFileTypes: true }) : [];
    return entries
      .filter((entry) => !entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort();
  });
}

/** The path of the only file of a grant. */
export function grantFile(home: string): string {
  const [path, ...more] = grantFiles(home).filter((one) => one.endsWith(".json"));
  if (path === undefined || more.length > 0) throw new Error("one file was expected");
  return path;
}
