import { spawnSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";

/** A pipe of the operating system. */
export interface OutputPipe {
  /** What a child writes to; to be closed here once the child has it. */
  readonly writeEnd: number;
  /** What it wrote. */
  readonly readEnd: Readable;
}

/**
 * Makes a pipe. Node gives a child a pair of sockets instead, and a script that writes to /dev/stdout or /dev/stderr
 * cannot open those.
 *
 * @returns undefined where the system has no `mkfifo`, or no folder for temporary files that can be written
 */
export function makePipe(): OutputPipe | undefined {
  if (process.platform === "win32") return undefined;
  let folder: string | undefined;
  try {
    folder = mkdtempSync(join(tmpdir(), "agentauth-"));
    const path = join(folder, "pipe");
    if (spawnSync("mkfifo", ["-m", "600", path], { stdio: "ignore" }).status !== 0) return undefined;
    // The reader first, and without waiting: a writer waits until there is one.
    const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writeEnd = openSync(path, constants.O_WRONLY);
    return { writeEnd, readEnd: new Socket({ fd, readable: true, writable: false }) };
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
