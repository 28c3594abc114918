/** Output to a terminal goes through the user's pager, as in git: less exits by itself if one screen is enough. */

import type { ChildProcess } from "node:child_process";
import { finished } from "node:stream/promises";
import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { commandWords } from "../../login/command-words.js";
import { type Env, loadSpawn, withoutOurs } from "../../platform/system.js";
import type { Format } from "../../profile/settings.js";
import { quote } from "../../redact.js";
import { type Io, type OutStream, PipeClosed, type ProgressText } from "../io/io.js";
import { fileOf } from "../io/stream.js";
import { writeAll } from "../io/write-all.js";
import type { AcquiredProcess, CommandContext, ProcessSignals } from "../runtime/context.js";
import { isCi } from "../runtime/environment.js";

/** The flags that decide whether a pager is used. */
export interface PagerFlags {
  format: Format;
  /** `false` for `--no-pager`. */
  pager?: boolean;
  /** `false` for `--no-input`, and if an AI agent runs us. */
  input?: boolean;
}

/**
 * Runs the work with an output that starts the pager at its first text, and waits until the user quits the pager.
 * Messages are held until then. Without an interactive terminal, the work gets the output unchanged.
 *
 * @throws what the work throws; {@link PipeClosed} if the user quits the pager before it has everything
 */
export async function withPager(
  context: CommandContext,
  flags: PagerFlags,
  work: (context: CommandContext) => Promise<void>,
): Promise<void> {
  if (!isInteractive(context, flags)) return work(context);
  const stop = new AbortController();
  const follow = () => stop.abort(context.signal.reason);
  if (context.signal.aborted) follow();
  else context.signal.addEventListener("abort", follow, { once: true });
  let pager: Promise<Pager | undefined> | undefined;
  const start = async () => {
    // A line of a wide table is cut at the edge, and the arrow keys move it: less has no other way to stay readable.
    const started = await startPager(context, stop, { chops: flags.format === "wide" });
    if (started) messages.hold();
    return started;
  };
  const terminal = context.io.stdout;
  const stdout = inPlaceOf(terminal, {
    async write(text) {
      if (text.length === 0) return;
      pager ??= start();
      await ((await pager) ?? terminal).write(text);
    },
  });
  const messages = heldMessages(context.io, stdout);
  try {
    const [outcome] = await Promise.allSettled([work(context.with({ io: messages.io, signal: stop.signal }))]);
    await (await pager)?.end();
    // Whatever error the work throws after the user quits the pager.
    if (stop.signal.reason instanceof PipeClosed) throw stop.signal.reason;
    if (outcome.status === "rejected") throw outcome.reason;
  } finally {
    context.signal.removeEventListener("abort", follow);
    messages.release();
  }
}

function isInteractive({ io }: CommandContext, { format, pager, input }: PagerFlags): boolean {
  if (!io.stdout.isTTY || format === "ndjson" || pager === false || input === false) return false;
  if (io.env["AGENTAUTH_NO_INPUT"] || io.env["TERM"] === "dumb") return false;
  return !isCi(io.env);
}

/** The same with some other members. It reads the rest when it is used: a copy would open standard input at once. */
function inPlaceOf<T extends object>(original: T, members: Partial<T>): T {
  return Object.assign(Object.create(original) as T, members);
}

/** An {@link Io} whose messages can be held back. */
interface HeldMessages {
  /** The `Io` to print with. */
  readonly io: Io;
  /** Holds back messages from now on, and stops all progress. */
  hold(): void;
  /** Prints the held messages, and prints later ones at once again. */
  release(): void;
}

/** Wraps an `Io`; output goes to `stdout`. Nothing is held at first. */
export function heldMessages(io: Io, stdout: OutStream = io.stdout): HeldMessages {
  const held: (() => void)[] = [];
  const shown = new Set<ProgressText>();
  let isHeld = false;
  const holdable = (print: (text: string) => void) => (text: string) => {
    if (isHeld) held.push(() => print(text));
    else print(text);
  };
  return {
    io: inPlaceOf(io, {
      stdout,
      say: holdable(io.say),
      verbose: holdable(io.verbose),
      warn: holdable(io.warn),
      progress() {
        if (isHeld) return { update() {}, stop() {} };
        const progress = io.progress();
        shown.add(progress);
        return progress;
      },
    }),
    hold() {
      isHeld = true;
      for (const progress of shown) progress.stop();
    },
    release() {
      isHeld = false;
      for (const print of held.splice(0)) print();
    },
  };
}

/** A running pager. */
interface Pager {
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
async function startPager(
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
