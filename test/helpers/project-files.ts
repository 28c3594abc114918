import { readdirSync } from "node:fs";
import { join } from "node:path";

/** Written by others, or by a run. */
const FOREIGN = ["node_modules", "coverage", "dist"];

/** The paths of the project's own files below a folder. */
export function projectFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (!entry.isDirectory()) return [path];
    return FOREIGN.includes(entry.name) ? [] : projectFiles(path);
  });
}
