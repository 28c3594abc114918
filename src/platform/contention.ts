import { system } from "./system.js";

/** What Windows answers for a file that another program has open, such as a virus scanner, or that is being removed. */
const CONTENTION = new Set(["EPERM", "EACCES", "EBUSY"]);
const PATIENCE_MS = 1000;
const PAUSE_MS = { first: 2, most: 50 };

/** Whether an error means that another program uses the file at this moment: on Windows alone. */
export function isContention(error: unknown): boolean {
  return system.name === "win32" && CONTENTION.has(codeOf(error) ?? "");
}

/**
 * Does work on files, and on Windows repeats it for up to a second while another program uses one of them.
 *
 * @param work a system call that changes nothing if it fails
 */
export function patiently<T>(work: () => T): T {
  let until: number | undefined;
  for (let pause = PAUSE_MS.first; ; pause = Math.min(pause * 2, PAUSE_MS.most)) {
    try {
      return work();
    } catch (error) {
      until ??= performance.now() + PATIENCE_MS;
      if (!isContention(error) || performance.now() > until) throw error;
      block(pause);
    }
  }
}

/** The system's name for an error. */
export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}

/** Blocks: a lease and the file under it must not be left in the middle of a step. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
