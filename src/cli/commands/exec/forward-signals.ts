import { constants } from "node:os";

/** Ways to tell a program to end. */
const ENDING: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"]);
/** What a terminal's keyboard sends, to the child as well as to us. */
const KEYBOARD: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT"];
/** What stops and continues a job; on a terminal the shell sees to that, for both of us. */
const JOB: readonly NodeJS.Signals[] = ["SIGTSTP", "SIGCONT", "SIGWINCH"];
const OTHERS: readonly NodeJS.Signals[] = ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"];

/** What is done with the signals that we get. */
export interface SignalUse {
  /** Whether a terminal sends its keyboard's signals to the child too. */
  onTerminal: boolean;
  /** Hands a signal to the child. */
  passOn(signal: NodeJS.Signals): void;
  /** Hears of each signal that means the end, passed on or not. */
  onEnding(): void;
}

/** Answers signals in place of their effect on us. @returns what takes this back */
export function answerSignals({ onTerminal, passOn, onEnding }: SignalUse): () => void {
  const listeners: [NodeJS.Signals, () => void][] = known([...KEYBOARD, ...OTHERS, ...(onTerminal ? [] : JOB)]).map(
    (signal) => {
      const reached = onTerminal && KEYBOARD.includes(signal);
      return [
        signal,
        () => {
          if (!reached) passOn(signal);
          if (ENDING.has(signal)) onEnding();
          // Whoever stops us means the job.
          if (signal === "SIGTSTP") process.kill(process.pid, "SIGSTOP");
        },
      ];
    },
  );
  for (const [signal, listener] of listeners) process.on(signal, listener);
  return () => {
    for (const [signal, listener] of listeners) process.off(signal, listener);
  };
}

/** Windows has few of them. */
function known(signals: readonly NodeJS.Signals[]): readonly NodeJS.Signals[] {
  if (process.platform !== "win32") return signals;
  return signals.filter((signal) => signal === "SIGINT" || signal === "SIGTERM" || signal === "SIGHUP");
}

/** The exit code of a program that a signal ended: 128 and the signal's number, as a shell has it. */
export function signalExitCode(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}
