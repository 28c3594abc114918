import type { ChildProcess } from "node:child_process";
import { finished } from "node:stream/promises";
import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { commandWords } from "../../login/command-words.js";
import { type Env, loadSpawn, withoutOurs } from "../../platform/system.js";
import { quote } from "../../redact.js";
import type { Io } from "../io/io.js";
import { fileOf } from "../io/stream.js";
import { PipeClosed, writeAll } from "../io/write-all.js";
import type { AcquiredProcess, CommandContext, ProcessSignals } from "../runtime/context.js";

/** A running pager. */
export interface Pager {
  write(text: string | Uint8Array): Promise<void>;
  /** Resolves when the user has quit it. */
  end(): Promise<void>;
}

/**
 * Starts the pager: `AGENTAUTH_PAGER`, else `PAGER`, else `less`, split into words and run without a shell.
 *
 * From now on the pager handles Ctrl-C. Our own handler only stops a running list, and never exits before the pager, which
 * would lose the terminal.
 *
 * @param chops whether less cuts long lines at the edge; it then stays open also for a short text, whose ends would be lost
 * @param stop aborted with {@link PipeClosed} when the user quits the pager, and with the error of a signal
 * @returns undefined if no pager is set or none can be started
 */
export async function startPager(
  context: CommandContext,
  stop: AbortController,
  { chops }: { chops: boolean },
): Promise<Pager | undefined> {
  const own = context.acquireProcess();
  try {
    const words = pagerWords(own.env, context.io);
    const child =
      words.length === 0 ? undefined : await launch(words, own, { io: context.io, less: chops ? "RSX" : "FRX" });
    if (child) return attend(child, words[0] ?? "", { own, stop, context });
  } catch (error) {
    own.release();
    throw error;
  }
  own.release();
  return undefined;
}

/** The words of the command; none for an empty variable or `cat`. */
function pagerWords(env: Env, io: Io): string[] {
  const name = ["AGENTAUTH_PAGER", "PAGER"].find((one) => env[one] !== undefined);
  if (name === undefined) return ["less"];
  try {
    const words = commandWords(env[name] ?? "");
    return words.length === 1 && words[0] === "cat" ? [] : words;
  } catch (error) {
    if (!isAgentAuthError(error)) throw error;
    io.warn(`${name} ${quote(env[name])} is not a valid command; printing without a pager`);
    return [];
  }
}

/** The running pager; undefined, with a message, if it cannot be started. */
async function launch(
  [program = "", ...args]: string[],
  own: AcquiredProcess,
  { io, less }: { io: Io; less: string },
): Promise<ChildProcess | undefined> {
  const spawn = await loadSpawn();
  const child = spawn(program, args, {
    stdio: ["pipe", fileOf(own.stdout) ?? "pipe", fileOf(own.stderr) ?? "pipe"],
    // Our output is UTF-8 in every locale.
    env: { LESS: less, LESSCHARSET: "utf-8", ...withoutOurs(own.env) },
    shell: false,
  });
  // A pager that quits early breaks the pipe; the failed write reports that.
  child.stdin?.on("error", () => {});
  child.stdout?.pipe(own.stdout, { end: false });
  child.stderr?.pipe(own.stderr, { end: false });
  return new Promise((resolve) => {
    child.once("spawn", () => resolve(child));
    child.once("error", (error: NodeJS.ErrnoException) => {
      io.verbose(`the pager ${quote(program)} cannot be started (${error.code ?? error.message})`);
      resolve(undefined);
    });
  });
}

interface PagerContext {
  own: AcquiredProcess;
  stop: AbortController;
  context: Pick<CommandContext, "io" | "signals">;
}

function attend(child: ChildProcess, program: string, { own, stop, context }: PagerContext): Pager {
  const { stdin } = child;
  let hasAll = false;
  const release = listen(child, context.signals, (name) => {
    // Once the pager has everything, Ctrl-C is for the pager only.
    if (hasAll && name === "SIGINT") return false;
    stop.abort(new AgentAuthError("aborted", `ended by ${name}`, { class: "aborted" }));
    return true;
  });
  const gone = new Promise<number | null>((resolve) => {
    child.once("exit", (code) => {
      if (!hasAll) stop.abort(new PipeClosed("the user quit the pager"));
      resolve(code);
    });
  });
  return {
    write: (text) => (stdin === null ? Promise.resolve() : writeAll(stdin, text)),
    async end() {
      hasAll = true;
      stdin?.end();
      const code = await gone;
      if (child.stdout) await finished(child.stdout);
      const received = release();
      own.release();
      if (code)
        context.io.warn(`the pager ${quote(program)} ended with exit code ${code}; --no-pager prints without one`);
      // The signal handler of the run decides the exit code.
      if (received) context.signals.raise(received);
    },
  };
}

/**
 * Listens for SIGINT and SIGTERM. The terminal sends Ctrl-C to the pager as well.
 *
 * @returns a function that removes the listeners, and returns the signal that ends this run
 */
function listen(child: ChildProcess, signals: ProcessSignals, onSignal: (name: "SIGINT" | "SIGTERM") => boolean) {
  let received: "SIGINT" | "SIGTERM" | undefined;
  const onInt = () => {
    if (onSignal("SIGINT")) received ??= "SIGINT";
  };
  const onTerm = () => {
    onSignal("SIGTERM");
    received = "SIGTERM";
    child.kill("SIGTERM");
  };
  const releases = [signals.on("SIGINT", onInt), signals.on("SIGTERM", onTerm)];
  return () => {
    for (const release of releases) release();
    return received;
  };
}
