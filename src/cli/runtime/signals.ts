import { AgentAuthError } from "../../errors.js";
import { system } from "../../platform.js";
import type { ProcessLike } from "../io/io.js";
import type { AcquiredProcess, Host, PendingSaves, ProcessSignals } from "./context.js";
import { EXIT_CODES } from "./exit-codes.js";

/** The signals that end a run: the keyboard, `kill`, and a closed terminal or a broken connection. */
const ENDINGS = {
  SIGINT: EXIT_CODES.aborted,
  SIGTERM: EXIT_CODES.terminated,
  SIGHUP: EXIT_CODES.hungUp,
  /** Ctrl-Break of a console of Windows. */
  SIGBREAK: EXIT_CODES.aborted,
} as const satisfies Partial<Record<NodeJS.Signals, number>>;

type EndingSignal = keyof typeof ENDINGS;

export type SignalHost = Pick<Host, keyof ProcessLike | "on" | "off" | "exit">;

/** The ending of a run by signals. */
export interface SignalHandling {
  /** Fires on the first one. */
  readonly signal: AbortSignal;
  /** Leaves the signals to the caller. */
  acquireProcess(): AcquiredProcess;
  /** The exit code of the first one that came. */
  exitCode(): number | undefined;
  /** Ends the process: at once, or after a pending refresh is saved. The first exit code counts. */
  leave(exitCode: number): void;
  /** The run has ended: no remaining work is waited for, and the next signal ends the process. */
  stop(): void;
}

/** The signals of a process, for commands that act on them. */
export function processSignals(host: Pick<Host, "on" | "off" | "emit">): ProcessSignals {
  return {
    on(name, listener) {
      host.on(name, listener);
      return () => void host.off(name, listener);
    },
    raise: (name) => void host.emit(name, name),
  };
}

/** How long a reader that has stopped reading may delay the end of a run. */
const GRACE_MS = 5000;

/**
 * The first signal ends the current work in good order. A second one ends the process at once, except for a refresh that the
 * issuer may have obeyed: its answer is the session.
 */
export function listenForSignals(
  host: SignalHost,
  { pendingSaves, onDelay }: { pendingSaves: Pick<PendingSaves, "isUnderWay" | "settled">; onDelay(): void },
): SignalHandling {
  const controller = new AbortController();
  let code: number | undefined;
  let grace: NodeJS.Timeout | undefined;
  let isAcquired = false;
  let hasStopped = false;
  let isLeaving = false;
  const leave = (exitCode: number) => {
    if (isLeaving) return;
    if (!pendingSaves.isUnderWay()) host.exit(exitCode);
    isLeaving = true;
    void pendingSaves.settled().then(() => host.exit(exitCode));
  };
  const listenerFor = (name: EndingSignal) => () => {
    if (isAcquired) return;
    if (code !== undefined || hasStopped) {
      if (pendingSaves.isUnderWay() && !isLeaving) onDelay();
      leave(code ?? ENDINGS[name]);
      return;
    }
    const exitCode = ENDINGS[name];
    code = exitCode;
    // Other pending work, such as a token to be saved, has its own deadline.
    grace = setInterval(() => host.stdout.writableLength > 0 && leave(exitCode), GRACE_MS);
    grace.unref();
    controller.abort(new AgentAuthError("aborted", `ended by ${name}`, { class: "aborted" }));
  };
  const onHangUp = listenerFor("SIGHUP");
  host.on("SIGINT", listenerFor("SIGINT"));
  host.on("SIGTERM", listenerFor("SIGTERM"));
  host.on("SIGHUP", onHangUp);
  // No other system has it.
  if (system.name === "win32") host.on("SIGBREAK", listenerFor("SIGBREAK"));
  return {
    signal: controller.signal,
    acquireProcess() {
      const { stdout, stderr, env } = host;
      isAcquired = true;
      // Without a listener SIGHUP ends the process, rather than being ignored.
      host.off("SIGHUP", onHangUp);
      const release = () => {
        if (isAcquired) host.on("SIGHUP", onHangUp);
        isAcquired = false;
      };
      return {
        // Node opens standard input on the first access.
        get stdin() {
          return host.stdin;
        },
        ...{ stdout, stderr, env, release },
        exit: (exitCode) => host.exit(exitCode),
      };
    },
    exitCode: () => code,
    leave,
    stop() {
      clearInterval(grace);
      hasStopped = true;
    },
  };
}
