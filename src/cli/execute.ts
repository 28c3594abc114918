import { CommanderError } from "commander";
import { isAgentAuthError } from "../errors.js";
import { Redactor } from "../redact.js";
import { createIo, type Io, PipeClosed } from "./io/io.js";
import { reportError } from "./output/errors.js";
import { buildProgram } from "./program.js";
import { type AgentMode, agentMode } from "./runtime/agent-mode.js";
import type { RunContext } from "./runtime/context.js";
import { EXIT_CODES, exitCodeOf } from "./runtime/exit-codes.js";
import { cliHint } from "./runtime/hints.js";
import type { Host } from "./runtime/host.js";
import { pendingSaves } from "./runtime/pending-saves.js";
import { hideSecretWords } from "./runtime/secret-flags.js";
import { listenForSignals, type SignalHandling } from "./runtime/signals.js";
import { type ParserError, usageError } from "./runtime/usage-error.js";

const SECRET_VARIABLES = [
  "AGENTAUTH_API_TOKEN",
  "AGENTAUTH_CLIENT_SECRET",
  "AGENTAUTH_ID_TOKEN",
  "AGENTAUTH_IDP_CLIENT_SECRET",
  "AGENTAUTH_SUBJECT_TOKEN",
];

/** Parses and runs one command line, prints what went wrong, and gives the exit code. */
export async function runProgram(argv: readonly string[], host: Host): Promise<number> {
  const words = beforeDashes(argv);
  const io = createIo(host, {
    quiet: words.includes("--quiet") || words.includes("-q"),
    verbose: words.some((word) => word === "--verbose" || word === "-v" || word === "--debug"),
    color: !words.includes("--no-color"),
  });
  const redactor = new Redactor();
  hideSecretWords(words, redactor);
  for (const name of SECRET_VARIABLES) {
    redactor.add(io.env[name] ?? "");
    // A browser or another program that is started must not find our secrets in its environment.
    delete (host.env as Record<string, string | undefined>)[name];
  }
  const interruption = listenForSignals(host, {
    renewals: pendingSaves,
    onDelay: () => io.with({ quiet: false }).say("a renewed token is on its way and is saved first; then this ends"),
  });
  const context: RunContext = {
    io,
    signal: interruption.signal,
    argv,
    redactor,
    now: Date.now,
    lend: interruption.lend,
  };
  const asked: { text: string; error: string } = { text: "", error: "" };
  const agent = agentMode(io.env, io.stdout);
  // What nobody awaits would be printed by Node itself: with its secrets, and as a terminal acts on it.
  host.on("uncaughtException", (error) => {
    try {
      reportError(error, { io, json: wantsJson(words, io, agent), redactor, debug: words.includes("--debug") });
    } catch {
      host.stderr.write("error: a bug in agentauth, and another one in telling it\n");
    }
    interruption.leave(EXIT_CODES.internal);
  });
  try {
    const program = buildProgram(context, asked, agent);
    try {
      const exitCode = await program.run(argv);
      return interruption.exitCode() ?? exitCode;
    } finally {
      if (asked.text) await io.stdout.write(asked.text);
    }
  } catch (thrown) {
    return await settle(thrown, { argv: words, io, redactor, interruption, asked, agent });
  } finally {
    await flushed(io);
    interruption.stop();
  }
}

interface Ending {
  argv: readonly string[];
  io: Io;
  redactor: Redactor;
  interruption: SignalHandling;
  asked: { text: string; error: string };
  agent: AgentMode | undefined;
}

async function settle(thrown: unknown, { argv, io, redactor, interruption, asked, agent }: Ending): Promise<number> {
  if (thrown instanceof PipeClosed) return EXIT_CODES.ok;
  if (thrown instanceof CommanderError) {
    if (thrown.exitCode === 0) return EXIT_CODES.ok;
    // A group without a command: what it can do is the answer, not a complaint.
    if (thrown.code === "commander.help") {
      await io.stdout.write(asked.error);
      return EXIT_CODES.ok;
    }
  }
  const known = thrown instanceof CommanderError ? usageError(thrown as ParserError) : thrown;
  const error = isAgentAuthError(known) ? cliHint(known) : known;
  const json = wantsJson(argv, io, agent);
  const exitCode = interruption.exitCode();
  const shown = reportError(error, { io, json, exitCode, redactor, debug: argv.includes("--debug") });
  return exitCode ?? exitCodeOf(shown.class);
}

/** Also a command line that cannot be parsed says in which form its errors are wanted. */
function wantsJson(argv: readonly string[], io: Io, agent: AgentMode | undefined): boolean {
  if (io.env["AGENTAUTH_ERRORS"] === "json" || argv.includes("--json")) return true;
  const formats = argv.flatMap((word, index) => {
    const value = /^(?:-[qv]*o=?|--output=|--format=)(.+)$/.exec(word)?.[1];
    return value ?? (/^(?:-[qv]*o|--output|--format)$/.test(word) ? (argv[index + 1] ?? "") : []);
  });
  if (formats.some((format) => /^(?:nd)?json$/.test(format))) return true;
  if (agent === undefined || formats.length > 0 || argv.includes("--jq")) return false;
  agent.tell(io);
  return true;
}

function beforeDashes(argv: readonly string[]): readonly string[] {
  const end = argv.indexOf("--");
  return end < 0 ? argv : argv.slice(0, end);
}

/** Waits until what was printed has left, whoever reads it. */
async function flushed(io: Io): Promise<void> {
  await Promise.all([io.stdout.write("").catch(() => {}), io.stderr.write("").catch(() => {})]);
}
