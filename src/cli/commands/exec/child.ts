import type { ChildProcess } from "node:child_process";
import { spawner } from "../../../platform/system.js";
import type { LentProcess, ProcessSignals } from "../../runtime/context.js";
import { forwardSignals, signalExitCode } from "./forward-signals.js";
import { isStartFailure } from "./start-failure.js";
import { closeWriteEnds, type Masked, openStdio, passOutput } from "./stdio.js";

/** The program to run. */
export interface ChildOptions {
  command: readonly string[];
  /** Called once, after the signal handlers are installed, so that files made for the child are removed in any case. */
  env(): NodeJS.ProcessEnv;
  masked: Masked;
  /** The current secrets. */
  secrets(): readonly Buffer[];
  /** Whether the terminal also sends keyboard signals to the child. */
  onTerminal: boolean;
  /** Called when a signal could not be sent to the child, which continues to run. */
  onSignalFailure(error: NodeJS.ErrnoException): void;
  own: LentProcess;
  signals: ProcessSignals;
}

/** The result of a run. */
export interface ChildResult {
  exitCode: number;
  /** Why an output could not be passed on completely; undefined if it was, or if its reader has closed it. */
  lost: Error | undefined;
  /** A reader has stopped reading: its pending output may block this process forever. */
  isStuck: boolean;
}

/** How long a reader that has stopped reading may delay the exit after a signal. */
const GRACE_MS = 2000;

/**
 * Runs a program, and waits until it has ended and all its output is passed on.
 *
 * @throws the system's error if the program cannot be started
 */
export async function runChild(options: ChildOptions): Promise<ChildResult> {
  const { own } = options;
  const spawn = await spawner();
  const readerTimeout = createReaderTimeout();
  let child: ChildProcess | undefined;
  const release = forwardSignals({
    onTerminal: options.onTerminal,
    passOn: (signal) => child?.kill(signal),
    onTerminate: readerTimeout.signalled,
    signals: options.signals,
  });
  const pipes = openStdio(options.masked, own);
  try {
    try {
      const [program = "", ...words] = options.command;
      child = spawn(program, words, { env: options.env(), stdio: pipes.stdio, shell: false, windowsHide: true });
    } finally {
      closeWriteEnds(pipes);
    }
    const ending = endOf(child, options.onSignalFailure);
    if (child.stdin !== null) own.stdin.on("error", () => {}).pipe(child.stdin.on("error", () => {}));
    const out = pipes.out?.readEnd ?? child.stdout;
    const err = pipes.err?.readEnd ?? child.stderr;
    const passed = Promise.all([
      out && passOutput(out, own.stdout, options.masked.stdout ? options.secrets : () => []),
      err && passOutput(err, own.stderr, options.masked.stderr ? options.secrets : () => []),
    ]);
    const exitCode = await ending;
    readerTimeout.childEnded();
    const failures = await Promise.race([passed, readerTimeout.expired]);
    const isStuck = failures === undefined && own.stdout.writableLength + own.stderr.writableLength > 0;
    return { exitCode, lost: failures?.find(isLoss), isStuck };
  } finally {
    for (const source of [pipes.out?.readEnd, pipes.err?.readEnd, child?.stdout, child?.stderr]) source?.destroy();
    readerTimeout.stop();
    release();
  }
}

/**
 * Node reports a failed start and, much later, a failed signal with the same event. On Windows a program that is not
 * found can be reported after `cmd.exe` was started for it.
 */
function endOf(child: ChildProcess, onSignalFailure: ChildOptions["onSignalFailure"]): Promise<number> {
  return new Promise((resolve, reject) => {
    let hasStarted = false;
    child.once("spawn", () => {
      hasStarted = true;
    });
    child.on("error", (error) => (hasStarted && !isStartFailure(error) ? onSignalFailure(error) : reject(error)));
    child.once("exit", (code, signal) => resolve(signal === null ? (code ?? 0) : signalExitCode(signal)));
  });
}

/** Bounds the wait for readers, once a signal has asked the run to end. */
function createReaderTimeout() {
  let timer: NodeJS.Timeout | undefined;
  let wasSignalled = false;
  let hasEnded = false;
  let giveUp = () => {};
  const expired = new Promise<undefined>((resolve) => {
    giveUp = () => resolve(undefined);
  });
  return {
    expired,
    signalled() {
      wasSignalled = true;
      // The child, which the signal was for, has already ended.
      if (hasEnded) giveUp();
    },
    childEnded() {
      hasEnded = true;
      if (wasSignalled) timer = setTimeout(giveUp, GRACE_MS);
    },
    stop: () => clearTimeout(timer),
  };
}

/** A reader that closed its end is no loss. */
function isLoss(error: NodeJS.ErrnoException | null | undefined): error is NodeJS.ErrnoException {
  return error != null && !["EPIPE", "ECONNRESET", "ERR_STREAM_DESTROYED", "EOF"].includes(error.code ?? "");
}
