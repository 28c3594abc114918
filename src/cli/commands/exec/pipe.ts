import { spawnSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";

/** A pipe of the operating system. */
export interface OutputPipe {
  /** The end that the child writes to; close it here once the child has it. */
  readonly writeEnd: number;
  /** The end to read from. */
  readonly readEnd: Readable;
}

/**
 * Creates a pipe. Node would use a pair of sockets, which a script that opens /dev/stdout or /dev/stderr cannot open.
 *
 * @returns undefined if the system has no `mkfifo`, or no writable folder for temporary files
 */
export function makePipe(): OutputPipe | undefined {
  if (process.platform === "win32") return undefined;
  let folder: string | undefined;
  try {
    folder = mkdtempSync(join(tmpdir(), "agentauth-"));
    const path = join(folder, "pipe");
    if (spawnSync("mkfifo", ["-m", "600", path], { stdio: "ignore" }).status !== 0) return undefined;
    // Opens the reader first, without blocking: opening the writer blocks until there is a reader.
    const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writeEnd = openSync(path, constants.O_WRONLY);
    return {
      writeEnd,
      readEnd: new (process.getBuiltinModule("node:net").Socket)({ fd, readable: true, writable: false }),
    };
  } catch {
    return undefined;
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

/** Closes our copy of the end that the child has. */
export function closeWriteEnd(pipe: OutputPipe): void {
  closeSync(pipe.writeEnd);
}
