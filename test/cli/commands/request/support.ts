import type { CommandContext } from "../../../../src/cli/runtime/context.js";
import type { MemoryIo, MemoryIoOptions } from "../../../helpers/memory-io.js";
import { startRun } from "../../run-support.js";

/** What a command works with, all of it in memory, and what it has printed. */
export function memoryContext(
  options: MemoryIoOptions = {},
  signal = new AbortController().signal,
  flags: object = {},
): CommandContext & { io: MemoryIo } {
  return startRun(options, flags, { signal, now: () => 1_900_000_000_000 }).context;
}

/** The rejection of a promise; one that resolves is a failure. */
export function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => Promise.reject(new Error("it did not fail")),
    (error: unknown) => error,
  );
}
