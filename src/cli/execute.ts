import { CommanderError } from "commander";
import { isAgentAuthError } from "../errors.js";
import { systemClock } from "../http/deadline.js";
import { Redactor } from "../redact.js";
import { createIo, type Io, PipeClosed } from "./io/io.js";
import { reportError } from "./output/errors.js";
import { buildProgram } from "./program.js";
import { type AgentMode, agentMode, withholdSecrets } from "./runtime/agent-mode.js";
import { createPendingSaves, type Host, type RunContext } from "./runtime/context.js";
import type { CommandDeclaration } from "./runtime/declaration.js";
import { EXIT_CODES, exitCodeFor } from "./runtime/exit-codes.js";
import { cliHint } from "./runtime/hints.js";
import { listenForSignals, processSignals, type SignalHandling } from "./runtime/signals.js";
import { hideSecretWords, type ParserError, toUsageError } from "./runtime/usage-error.js";

/** Parses and runs one command line of these commands, prints the error, and returns the exit code. */
export async function run(
  argv: readonly string[],
  host: Host,
  commands: readonly CommandDeclaration[],
): Promise<number> {
  const args = beforeDashes(argv);
  const io = createIo(host, {
    quiet: args.includes("--quiet") || args.includes("-q"),
    verbose:
      Boolean(host.env["AGENTAUTH_LOG"]) ||
      args.some((word) => word === "--verbose" || word === "-v" || word === "--debug"),
    color: !args.includes("--no-color"),
  });
  const redactor = new Redactor();
  hideSecretWords(args, redactor);
  withholdSecrets(io.env, host.env, redactor);
  const { clock = systemClock, execPath, argv: [, script] = [] } = host;
  const pendingSaves = createPendingSaves(clock);
  const onDelay = () => io.with({ quiet: false }).say("Saving a refreshed token before exiting…");
  const signals = listenForSignals(host, { pendingSaves, onDelay });
  const cleanups: (() => Promise<void>)[] = [];
  const context: RunContext = {
    io,
    signal: signals.signal,
    signals: processSignals(host),
    argv,
    redactor,
    program: execPath && script ? [execPath, script] : undefined,
    pendingSaves,
    clock,
    now: () => clock.epoch(),
    machine: host.machine,
    acquireProcess: signals.acquireProcess,
    onExit: (work) => void cleanups.push(work),
  };
  const printed: { text: string; error: string } = { text: "", error: "" };
  const agent = agentMode(io.env, io.stdout, context.now);
  // Node itself would print an unhandled error: with its secrets, and with escape sequences.
  host.on("uncaughtException", (error) => {
    try {
      reportError(error, { io, json: wantsJson(args, io, agent), redactor, debug: args.includes("--debug") });
    } catch {
      host.stderr.write("error: a bug in agentauth, and another one in reporting it\n");
    }
    signals.leave(EXIT_CODES.internal);
  });
  try {
    const program = buildProgram(context, printed, { commands, agent, word: argv[0] });
    try {
      const exitCode = await program.run(argv);
      return signals.exitCode() ?? exitCode;
    } finally {
      if (printed.text) await io.stdout.write(printed.text);
    }
  } catch (thrown) {
    return await finish(thrown, { argv: args, io, redactor, signals, printed, agent });
  } finally {
    // Before the connection to the engine is closed.
    if (pendingSaves.isUnderWay()) {
      onDelay();
      await pendingSaves.settled();
    }
    await Promise.all(cleanups.map((end) => end()));
    await flushOutput(io);
    signals.stop();
  }
}

interface FailedRun {
  argv: readonly string[];
  io: Io;
  redactor: Redactor;
  signals: SignalHandling;
  printed: { text: string; error: string };
  agent: AgentMode | undefined;
}

async function finish(thrown: unknown, { argv, io, redactor, signals, printed, agent }: FailedRun): Promise<number> {
  if (thrown instanceof PipeClosed) return EXIT_CODES.ok;
  if (thrown instanceof CommanderError) {
    if (thrown.exitCode === 0) return EXIT_CODES.ok;
    // A group without a command: its help is the output, not an error.
    if (thrown.code === "commander.help") {
      await io.stdout.write(printed.error);
      return EXIT_CODES.ok;
    }
  }
  const known = thrown instanceof CommanderError ? toUsageError(thrown as ParserError) : thrown;
  const error = isAgentAuthError(known) ? cliHint(known) : known;
  const json = wantsJson(argv, io, agent);
  const exitCode = signals.exitCode();
  const shown = reportError(error, { io, json, exitCode, redactor, debug: argv.includes("--debug") });
  return exitCode ?? exitCodeFor(shown.class);
}

/** A command line that cannot be parsed still decides the format of its errors. */
function wantsJson(argv: readonly string[], io: Io, agent: AgentMode | undefined): boolean {
  if (io.env["AGENTAUTH_ERRORS"] === "json" || argv.includes("--json")) return true;
  const formats = argv.flatMap((word, index) => {
    const value = /^(?:-[qv]*o=?|--output=|--format=)(.+)$/.exec(word)?.[1];
    return value ?? (/^(?:-[qv]*o|--output|--format)$/.test(word) ? (argv[index + 1] ?? "") : []);
  });
  if (formats.some((format) => /^(?:nd)?json$/.test(format))) return true;
  if (agent === undefined || formats.length > 0 || argv.includes("--jq")) return false;
  agent.announce(io);
  return true;
}

function beforeDashes(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf("--");
  return end < 0 ? argv : argv.slice(0, end);
}

async function flushOutput(io: Io): Promise<void> {
  await Promise.all([io.stdout.write("").catch(() => {}), io.stderr.write("").catch(() => {})]);
}
