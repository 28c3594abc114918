import { spawn } from "node:child_process";
import { system } from "./system.js";

/**
 * What starts a program by its name, without a shell. On Windows that finds `.cmd` and `.bat` by `PATHEXT`, and quotes
 * each argument for the `cmd.exe` that runs them. Call it at once: an error is an event of the child.
 */
export async function spawner(): Promise<typeof spawn> {
  if (system.name !== "win32") return spawn;
  const { crossSpawn } = await import("#packages/cross-spawn");
  return crossSpawn as typeof spawn;
}
