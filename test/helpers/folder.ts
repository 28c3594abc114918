import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The variable that names the folder of a whole run: see folder-of-run.ts. */
export const FOLDER_OF_RUN = "AGENTAUTH_TEST_FOLDER";

// Read once: a test unsets every variable that begins with AGENTAUTH_.
const folderOfRun = process.env[FOLDER_OF_RUN] ?? tmpdir();

/** A folder that goes away when the run of the tests ends. */
export function temporaryFolder(): string {
  return mkdtempSync(join(folderOfRun, "f-"));
}
