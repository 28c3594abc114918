import { system } from "../../../platform/system.js";
import type { ProcessSignals } from "../../runtime/context.js";

/** The signals that ask a program to end. */
const TERMINATING: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGBREAK"]);
/** The keyboard signals of a terminal, which sends them to the child as well as to us. */
const KEYBOARD: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT"];
/** The signals that stop and continue a job; on a terminal the shell sends them to both processes. */
const JOB: readonly NodeJS.Signals[] = ["SIGTSTP", "SIGCONT", "SIGWINCH"];
const OTHERS: readonly NodeJS.Signals[] = ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"];

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
  const releases = known([...KEYBOARD, ...OTHERS, ...(onTerminal ? [] : JOB)]).map((signal) => {
    const reached = system.name === "win32" || (onTerminal && KEYBOARD.includes(signal));
    return signals.on(signal, () => {
      if (!reached) passOn(signal);
      if (TERMINATING.has(signal)) onTerminate();
      // The stop signal is for the whole job.
      if (signal === "SIGTSTP") process.kill(process.pid, "SIGSTOP");
    });
  });
  return () => {
    for (const release of releases) release();
  };
}

/** Windows supports few signals. */
function known(signals: readonly NodeJS.Signals[]): readonly NodeJS.Signals[] {
  return system.name === "win32" ? ["SIGINT", "SIGBREAK", "SIGHUP", "SIGTERM"] : signals;
}

/** The exit code of a program that a signal ended: 128 and the signal's number, as in a shell. */
export function signalExitCode(signal: NodeJS.Signals): number {
  return 128 + process.getBuiltinModule("node:os").constants.signals[signal];
}
