import { COMMANDS } from "../../src/cli/commands/all.gen.js";
import { buildProgram } from "../../src/cli/program.js";
import { createPendingSaves } from "../../src/cli/runtime/context.js";
import { processSignals } from "../../src/cli/runtime/signals.js";
import { systemClock } from "../../src/http/deadline.js";
import { Redactor } from "../../src/redact.js";
import { createMemoryIo } from "./memory-io.js";

/** The command tree as the program declares it, for a command line; nothing in it is run. */
export function declaredProgram(argv: readonly string[] = []) {
  const run = {
    io: createMemoryIo(),
    signal: new AbortController().signal,
    signals: processSignals(process),
    argv,
    redactor: new Redactor(),
    pendingSaves: createPendingSaves(),
    clock: systemClock,
    now: Date.now,
    acquireProcess: () => {
      throw new Error("nothing is run here");
    },
  };
  return buildProgram(run, { text: "", error: "" }, { commands: COMMANDS }).root;
}
