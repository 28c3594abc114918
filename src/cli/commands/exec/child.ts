import { type ChildProcess, spawn } from "node:child_process";
import type { LentProcess } from "../../runtime/context.js";
import { answerSignals, signalExitCode } from "./forward-signals.js";
import { pipeOutput } from "./pipe-output.js";
import { createChildStdio, type Masked } from "./stdio.js";

/** A program to run in our place. */
export interface ChildOptions {
  command: readonly string[];
  /** Asked once, when signals are answered already, so that what is made for the child can be removed after it. */
  env(): NodeJS.ProcessEnv;
  masked: Masked;
  /** The secrets of now. */
  secrets(): readonly Buffer[];
  /** Whether a terminal sends its keyboard's signals to the child too. */
  onTerminal: boolean;
  /** Hears that a signal could not be handed to the child, which goes on. */
  onUnheard(error: NodeJS.ErrnoException): void;
  own: LentProcess;
}

/** How it went. */
export interface ChildResult {
  exitCode: number;
  /** Why an output could not be passed on to its end; undefined when it was, or when its reader has gone. */
  lost: Error | undefined;
  /** A reader has stopped reading: what was printed for it may keep this process for ever. */
  isStuck: boolean;
}

/** How long a reader that has stopped reading may keep a run that was told to end. */
const GRACE_MS = 2000;

/**
 * Runs a program, and waits until it has ended and everything that it printed is passed on.
 *
 * @throws what the system says where the program cannot be started
 */
export async function runChild(options: ChildOptions): Promise<ChildResult> {
  const { own } = options;
  const patience = createPatience();
  let child: ChildProcess | undefined;
  const release = answerSignals({
    onTerminal: options.onTerminal,
    passOn: (signal) => child?.kill(signal),
    onEnding: patience.told,
  });
  const plumbing = createChildStdio(options.masked);
  try {
    try {
      child = start(options, plumbing.stdio);
    } finally {
      plumbing.handOver();
    }
    const ending = endOf(child, options.onUnheard);
    const { out, err } = plumbing.sources(child);
    const passing = [
      out && pipeOutput(out, own.stdout, options.secrets),
      err && pipeOutput(err, own.stderr, options.secrets),
    ];
    const passed = Promise.all(passing);
    const exitCode = await ending;
    patience.childEnded();
    const failures = await Promise.race([passed, patience.over]);
    const isStuck = failures === undefined && own.stdout.writableLength + own.stderr.writableLength > 0;
    return { exitCode, lost: failures?.find(isLoss), isStuck };
  } finally {
    plumbing.close();
    patience.stop();
    release();
  }
}

function start({ command, env }: ChildOptions, stdio: ReturnType<typeof createChildStdio>["stdio"]): ChildProcess {
  const [program = "", ...words] = command;
  return spawn(program, words, { env: env(), stdio, shell: false, windowsHide: true });
}

/** A child says with the same event that it cannot be started and, much later, that it may not be sent a signal. */
function endOf(child: ChildProcess, onUnheard: ChildOptions["onUnheard"]): Promise<number> {
  return new Promise((resolve, reject) => {
    let hasStarted = false;
    child.once("spawn", () => {
      hasStarted = true;
    });
    child.on("error", (error) => (hasStarted ? onUnheard(error) : reject(error)));
    child.once("exit", (code, signal) => resolve(signal === null ? (code ?? 0) : signalExitCode(signal)));
  });
}

/** The waiting for readers, which has an end once somebody told the run to end. */
function createPatience() {
  let timer: NodeJS.Timeout | undefined;
  let wasTold = false;
  let hasEnded = false;
  let giveUp = () => {};
  const over = new Promise<undefined>((resolve) => {
    giveUp = () => resolve(undefined);
  });
  return {
    over,
    told() {
      wasTold = true;
      // The child, whose business it was, is there no more.
      if (hasEnded) giveUp();
    },
    childEnded() {
      hasEnded = true;
      if (wasTold) timer = setTimeout(giveUp, GRACE_MS);
    },
    stop: () => clearTimeout(timer),
  };
}

/** A reader that has gone is no loss. */
function isLoss(error: NodeJS.ErrnoException | undefined): error is NodeJS.ErrnoException {
  return error !== undefined && !["EPIPE", "ECONNRESET", "ERR_STREAM_DESTROYED", "EOF"].includes(error.code ?? "");
}
