import { AgentAuthError } from "../../errors.js";
import type { ProcessLike } from "../io/io.js";
import type { LentProcess } from "./context.js";
import { EXIT_CODES } from "./exit-codes.js";
import type { PendingSaves } from "./pending-saves.js";

/** What ends a run: the keyboard, somebody's `kill`, and a terminal that was closed or a connection that broke. */
const ENDINGS = {
  SIGINT: EXIT_CODES.aborted,
  SIGTERM: EXIT_CODES.terminated,
  SIGHUP: EXIT_CODES.hungUp,
} as const satisfies Partial<Record<NodeJS.Signals, number>>;

type Ending = keyof typeof ENDINGS;

/** What is needed of the process. */
export interface SignalHost extends Pick<ProcessLike, "stdout" | "stderr" | "env"> {
  on(event: Ending, listener: () => void): unknown;
  off(event: Ending, listener: () => void): unknown;
  exit(code: number): never;
}

/** The ending of a run by signals. */
export interface SignalHandling {
  /** Fires on the first one. */
  readonly signal: AbortSignal;
  /** Leaves them to somebody else. */
  lend(): LentProcess;
  /** The exit code of the first one that came. */
  exitCode(): number | undefined;
  /** Ends the process: at once, or once the renewal that is under way is saved. The first code that is given counts. */
  leave(exitCode: number): void;
  /** The run has ended: whatever goes on still is waited for by nobody, and the next signal ends the process. */
  stop(): void;
}

/** What the ending of a run depends on. */
export interface SignalOptions {
  renewals: Pick<PendingSaves, "isUnderWay" | "settled">;
  /** Hears once that a signal does not end the process at once, because a renewal is to be saved first. */
  onDelay(): void;
}

/** How long a reader that has stopped reading may keep a run that was told to end. */
const GRACE_MS = 5000;

/**
 * The first signal ends the work in hand in good order. A second one ends the process at once, but for a renewal that the
 * issuer may have obeyed: its answer is the session.
 */
export function listenForSignals(host: SignalHost, { renewals, onDelay }: SignalOptions): SignalHandling {
  const controller = new AbortController();
  let code: number | undefined;
  let grace: NodeJS.Timeout | undefined;
  let isLent = false;
  let isOver = false;
  let isLeaving = false;
  const leave = (exitCode: number) => {
    if (isLeaving) return;
    if (!renewals.isUnderWay()) host.exit(exitCode);
    isLeaving = true;
    void renewals.settled().then(() => host.exit(exitCode));
  };
  const hear = (name: Ending) => () => {
    if (isLent) return;
    if (code !== undefined || isOver) {
      if (renewals.isUnderWay() && !isLeaving) onDelay();
      leave(code ?? ENDINGS[name]);
      return;
    }
    const exitCode = ENDINGS[name];
    code = exitCode;
    // Whatever else is in hand, such as a token to be saved, has its own deadline.
    grace = setInterval(() => host.stdout.writableLength > 0 && leave(exitCode), GRACE_MS);
    grace.unref();
    controller.abort(new AgentAuthError("aborted", `ended by ${name}`, { class: "aborted" }));
  };
  const onHangUp = hear("SIGHUP");
  host.on("SIGINT", hear("SIGINT"));
  host.on("SIGTERM", hear("SIGTERM"));
  host.on("SIGHUP", onHangUp);
  return {
    signal: controller.signal,
    lend() {
      const { stdout, stderr, env } = host;
      isLent = true;
      // Who does not answer it ends by it, rather than that nobody hears it.
      host.off("SIGHUP", onHangUp);
      const giveBack = () => {
        if (isLent) host.on("SIGHUP", onHangUp);
        isLent = false;
      };
      return { stdout, stderr, env, giveBack, exit: (exitCode) => host.exit(exitCode) };
    },
    exitCode: () => code,
    leave,
    stop() {
      clearInterval(grace);
      isOver = true;
    },
  };
}
