import { createCommandContext } from "../../src/cli/clients/context.js";
import { type CommandContext, createPendingSaves, type RunContext } from "../../src/cli/runtime/context.js";
import { processSignals } from "../../src/cli/runtime/signals.js";
import { systemClock } from "../../src/http/deadline.js";
import { Redactor } from "../../src/redact.js";
import { temporaryFolder } from "../helpers/folder.js";
import { createMemoryIo, type MemoryIo, type MemoryIoOptions } from "../helpers/memory-io.js";

/** The context of one run in this process, with a folder of its own, and what it has printed. */
export function startRun(
  { env, ...options }: MemoryIoOptions = {},
  flags: object = {},
  changes: Partial<Omit<RunContext, "io">> = {},
): { context: CommandContext & { io: MemoryIo }; io: MemoryIo } {
  const io = createMemoryIo({ ...options, env: { AGENTAUTH_HOME: temporaryFolder(), ...env } });
  const run: RunContext = {
    io,
    signal: new AbortController().signal,
    signals: processSignals(process),
    argv: [],
    redactor: new Redactor(),
    pendingSaves: createPendingSaves(),
    clock: systemClock,
    now: Date.now,
    acquireProcess: () => {
      throw new Error("nothing is started here");
    },
    ...changes,
  };
  return { context: Object.assign(createCommandContext(run, flags), { io }), io };
}
