import { system } from "../../../platform/system.js";
import type { ProcessSignals } from "../../runtime/context.js";

/** The keyboard signals of a terminal, which sends them to the child as well as to us. */
const KEYBOARD: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT"];
/** The other signals that ask a program to end. */
const TERMINATING: readonly NodeJS.Signals[] = ["SIGTERM", "SIGHUP"];
/** The signals that stop and continue a job; on a terminal the shell sends them to both processes. */
const JOB: readonly NodeJS.Signals[] = ["SIGTSTP", "SIGCONT", "SIGWINCH"];
/** All that Windows has. */
const ON_WINDOWS: readonly NodeJS.Signals[] = ["SIGINT", "SIGBREAK", "SIGHUP", "SIGTERM"];

/** How received signals are handled. */
export interface SignalForwarding {
  /** Whether the terminal also sends keyboard signals to the child. */
  onTerminal: boolean;
  /** Sends a signal to the child. */
  passOn(signal: NodeJS.Signals): void;
  /** Called for each terminating signal, passed on or not. */
  onTerminate(): void;
  signals: ProcessSignals;
}

/**
 * Forwards signals instead of acting on them. A console of Windows sends its signals to all its programs, and passing one
 * on would kill the child.
 *
 * @returns a function that removes the listeners
 */
export function forwardSignals({ onTerminal, passOn, onTerminate, signals }: SignalForwarding): () => void {
  const isWindows = system.name === "win32";
  const ending = isWindows ? ON_WINDOWS : [...KEYBOARD, ...TERMINATING];
  const others: readonly NodeJS.Signals[] = isWindows ? [] : ["SIGUSR1", "SIGUSR2", ...(onTerminal ? [] : JOB)];
  const releases = [...ending, ...others].map((signal) => {
    const hasReachedChild = isWindows || (onTerminal && KEYBOARD.includes(signal));
    return signals.on(signal, () => {
      if (!hasReachedChild) passOn(signal);
      if (ending.includes(signal)) onTerminate();
      // The stop signal is for the whole job.
      if (signal === "SIGTSTP") process.kill(process.pid, "SIGSTOP");
    });
  });
  return () => {
    for (const release of releases) release();
  };
}

/** The exit code of a program that a signal ended: 128 and the signal's number, as in a shell. */
export function signalExitCode(signal: NodeJS.Signals): number {
  return 128 + process.getBuiltinModule("node:os").constants.signals[signal];
}
