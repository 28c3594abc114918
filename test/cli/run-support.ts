import { createMemoryIo, type MemoryIo, type MemoryIoOptions } from "../../src/cli/io/io.js";
import type { CommandContext } from "../../src/cli/runtime/context.js";
import { Redactor } from "../../src/redact.js";
import { temporaryFolder } from "../helpers/folder.js";

/** What one run of a command works with, in this process and with a folder of its own. */
export function startRun({ env, ...options }: MemoryIoOptions = {}): { deps: CommandContext; io: MemoryIo } {
  const io = createMemoryIo({ ...options, env: { AGENTAUTH_HOME: temporaryFolder(), ...env } });
  const deps: CommandContext = {
    io,
    signal: new AbortController().signal,
    argv: [],
    redactor: new Redactor(),
    now: Date.now,
    lend: () => {
      throw new Error("nothing is started here");
    },
  };
  return { deps, io };
}
