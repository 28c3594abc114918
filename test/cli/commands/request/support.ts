import { createMemoryIo, type MemoryIo, type MemoryIoOptions } from "../../../../src/cli/io/io.js";
import type { CommandContext } from "../../../../src/cli/runtime/context.js";
import { Redactor } from "../../../../src/redact.js";

/** What a command works with, all of it in memory, and what it has printed. */
export function memoryDeps(
  options: MemoryIoOptions = {},
  signal = new AbortController().signal,
): CommandContext & { io: MemoryIo } {
  return {
    io: createMemoryIo(options),
    signal,
    argv: [],
    redactor: new Redactor(),
    now: () => 1_900_000_000_000,
    lend: () => {
      throw new Error("nothing here starts a program");
    },
  };
}

/** The rejection of a promise; one that resolves is a failure. */
export function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => Promise.reject(new Error("it did not fail")),
    (error: unknown) => error,
  );
}
