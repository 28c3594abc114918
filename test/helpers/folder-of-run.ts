import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FOLDER_OF_RUN } from "./folder.js";

/**
 * Makes the folder of all temporary folders, and removes it after the last test: a worker is ended before it could remove
 * thousands of files. Vitest calls it for each project.
 */
export default function folderOfRun(): (() => void) | undefined {
  if (process.env[FOLDER_OF_RUN] !== undefined) return undefined;
  const made = mkdtempSync(join(tmpdir(), "agentauth-test-"));
  process.env[FOLDER_OF_RUN] = made;
  return () => rmSync(made, { recursive: true, force: true });
}
