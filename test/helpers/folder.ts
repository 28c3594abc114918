import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

let root: string | undefined;

/** A folder that goes away with the process that made it. */
export function temporaryFolder(): string {
  if (root === undefined) {
    const made = mkdtempSync(join(tmpdir(), "agentauth-test-"));
    process.once("exit", () => rmSync(made, { recursive: true, force: true }));
    root = made;
  }
  return mkdtempSync(join(root, "f-"));
}
