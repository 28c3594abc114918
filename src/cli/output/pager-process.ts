import { type ChildProcess, spawn } from "node:child_process";
import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { commandWords } from "../../login/command-words.js";
import { quote } from "../../redact.js";
import type { Io } from "../io/io.js";
import type { LongOutput } from "../io/paged-stream.js";
import { PipeClosed, writeAll } from "../io/write-all.js";
import type { CommandContext, LentProcess } from "../runtime/context.js";

type Env = Readonly<Record<string, string | undefined>>;

/**
 * Starts the pager: `AGENTAUTH_PAGER`, else `PAGER`, else `less`, split into words and run without a shell.
 *
 * From here on Ctrl-C is the pager's: it ends the listing where that goes on still, and never leaves a pager without its
 * parent on the terminal.
 *
 * @param stop aborted with {@link PipeClosed} when the pager is left, and with the error for the signal that came
 * @returns undefined where none is wanted or none can be started
 */
export async function startPager(context: CommandContext, stop: AbortController): Promise<LongOutput | undefined> {
  const own = context.lend();
  try {
    const words = pagerWords(own.env, context.io);
    const child = words.length === 0 ? undefined : await launch(words, own.env, context.io);
    if (child) return attend(child, words[0] ?? "", { own, stop, io: context.io });
  } catch (error) {
    own.giveBack();
    throw error;
  }
  own.giveBack();
  return undefined;
}

/** The words of the command; none where an empty variable or `cat` says that none is wanted. */
function pagerWords(env: Env, io: Io): string[] {
  const name = ["AGENTAUTH_PAGER", "PAGER"].find((one) => env[one] !== undefined);
  if (name === undefined) return ["less"];
  try {
    const words = commandWords(env[name] ?? "");
    return words.length === 1 && words[0] === "cat" ? [] : words;
  } catch (error) {
    if (!isAgentAuthError(error)) throw error;
    io.warn(`${name} ${quote(env[name])} is not a command; printed without a pager`);
    return [];
  }
}

/** The running pager, or undefined with a word about why there is none. */
async function launch([program = "", ...args]: string[], env: Env, io: Io): Promise<ChildProcess | undefined> {
  const child = spawn(program, args, {
    stdio: ["pipe", "inherit", "inherit"],
    // What we print is UTF-8, whatever the locale.
    env: { LESS: "FRX", LESSCHARSET: "utf-8", ...withoutOurs(env) },
    shell: false,
  });
  // Left before it has read everything, it breaks the pipe; the write that failed tells.
  child.stdin?.on("error", () => {});
  return new Promise((resolve) => {
    child.once("spawn", () => resolve(child));
    child.once("error", (error: NodeJS.ErrnoException) => {
      io.verbose(`the pager ${quote(program)} cannot be started (${error.code ?? error.message})`);
      resolve(undefined);
    });
  });
}

/** Our own settings hold credentials, which are none of the pager's business. */
function withoutOurs(env: Env): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.toUpperCase().startsWith("AGENTAUTH_")));
}

interface Surroundings {
  own: LentProcess;
  stop: AbortController;
  io: Io;
}

function attend(child: ChildProcess, program: string, { own, stop, io }: Surroundings): LongOutput {
  const { stdin } = child;
  let hasAll = false;
  const release = answer(child, (name) => {
    // Once it has everything, Ctrl-C is between the person and the pager.
    if (hasAll && name === "SIGINT") return false;
    stop.abort(new AgentAuthError("aborted", `ended by ${name}`, { class: "aborted" }));
    return true;
  });
  const gone = new Promise<number | null>((resolve) => {
    child.once("exit", (code) => {
      if (!hasAll) stop.abort(new PipeClosed("the pager was left"));
      resolve(code);
    });
  });
  return {
    write: (text) => (stdin === null ? Promise.resolve() : writeAll(stdin, text)),
    async end() {
      hasAll = true;
      stdin?.end();
      const code = await gone;
      const told = release();
      own.giveBack();
      if (code) io.warn(`the pager ${quote(program)} ended with exit code ${code}; --no-pager prints without one`);
      // What it means for the exit code of this run is decided where every signal is heard.
      if (told) process.emit(told, told);
    },
  };
}

/**
 * Hears SIGINT and SIGTERM. A terminal's Ctrl-C has reached the pager as well, which does with it what it likes.
 *
 * @returns takes the listeners away, and tells which signal means the end of this run
 */
function answer(child: ChildProcess, onSignal: (name: "SIGINT" | "SIGTERM") => boolean) {
  let told: "SIGINT" | "SIGTERM" | undefined;
  const onInt = () => {
    if (onSignal("SIGINT")) told ??= "SIGINT";
  };
  const onTerm = () => {
    onSignal("SIGTERM");
    told = "SIGTERM";
    child.kill("SIGTERM");
  };
  process.on("SIGINT", onInt);
  process.on("SIGTERM", onTerm);
  return () => {
    process.off("SIGINT", onInt);
    process.off("SIGTERM", onTerm);
    return told;
  };
}
