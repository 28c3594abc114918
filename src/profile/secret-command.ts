import { type SpawnSyncOptionsWithStringEncoding, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { AgentAuthError, abortedError, usageError } from "../errors.js";
import { commandWords } from "../login/command-words.js";
import { loadSpawn } from "../platform/system.js";
import { quote } from "../redact.js";

/** Milliseconds that a command may take: a vault may ask its user first. */
const LIMIT_MS = 30_000;
const MAX_BYTES = 64 * 1024;

/** How a command is run. */
export interface CommandOptions {
  /** What names the command, for messages. */
  from: string;
  /** Milliseconds that it may take. Default 30,000. */
  limitMs?: number | undefined;
  /** Aborts it. */
  signal?: AbortSignal | undefined;
}

/** How a command ended; `code` is that of the system, such as `ENOENT`, `ETIMEDOUT` or `ENOBUFS`. */
interface CommandEnd {
  code?: string | undefined;
  status?: number | null | undefined;
  stdout?: string | undefined;
  stderr?: string | undefined;
}

/** The words of a command: quotes group them, nothing is expanded, and no shell runs them. */
export function wordsOf(command: string, from: string): string[] {
  const words = commandWords(command, existsSync, (reason) => secretCommandError(`the command of ${from} ${reason}`));
  if (words.length === 0) throw secretCommandError(`the command of ${from} is empty`);
  return words;
}

/**
 * Runs a command, and waits for it.
 *
 * @returns the one line that it prints
 * @throws `AgentAuthError` `usage` if it cannot be started, fails, or prints anything but one line of at most 64 KiB;
 * `timeout` if it does not end
 */
export function secretLineSync(words: readonly string[], options: CommandOptions): string {
  const [program = "", ...args] = words;
  const run: SpawnSyncOptionsWithStringEncoding = {
    encoding: "utf8",
    killSignal: "SIGKILL",
    maxBuffer: MAX_BYTES,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: options.limitMs ?? LIMIT_MS,
    windowsHide: true,
  };
  const { error, ...ended } = spawnSync(program, args, run);
  return oneLine(
    outputOf(words, { ...ended, code: (error as NodeJS.ErrnoException | undefined)?.code }, options),
    options,
  );
}

/** {@link secretLineSync} without waiting. */
export async function secretLine(words: readonly string[], options: CommandOptions): Promise<string> {
  return oneLine(await commandOutput(words, options), options);
}

/** What a command prints, of any number of lines; else as {@link secretLineSync}. */
export async function commandOutput(words: readonly string[], options: CommandOptions): Promise<string> {
  const { limitMs = LIMIT_MS, signal } = options;
  if (signal?.aborted) throw abortedError(signal);
  const [program = "", ...args] = words;
  const start = await loadSpawn();
  const ended = await new Promise<CommandEnd>((resolve) => {
    const child = start(program, args, { stdio: ["ignore", "pipe", "pipe"], windowsHide: true });
    const printed = { stdout: "", stderr: "" };
    let [size, code] = [0, undefined as string | undefined];
    const stop = (why: string) => {
      code ??= why;
      child.kill("SIGKILL");
      // A process that the command left behind may hold them open.
      for (const name of ["stdout", "stderr"] as const) child[name]?.destroy();
    };
    const onAbort = () => stop("ABORT_ERR");
    const timer = setTimeout(() => stop("ETIMEDOUT"), limitMs);
    signal?.addEventListener("abort", onAbort);
    for (const name of ["stdout", "stderr"] as const) {
      child[name]?.setEncoding("utf8").on("data", (part: string) => {
        size += Buffer.byteLength(part);
        if (size > MAX_BYTES) stop("ENOBUFS");
        else printed[name] += part;
      });
    }
    const end = (how: CommandEnd) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      resolve({ ...printed, ...how, ...(code !== undefined && { code }) });
    };
    child.on("error", (error: NodeJS.ErrnoException) => end({ code: error.code }));
    child.on("close", (status) => end({ status }));
  });
  if (signal?.aborted) throw abortedError(signal);
  return outputOf(words, ended, options);
}

function outputOf(
  [program]: readonly string[],
  ended: CommandEnd,
  { from, limitMs = LIMIT_MS }: CommandOptions,
): string {
  const { code, status, stdout = "", stderr = "" } = ended;
  const what = `the command ${quote(program)} of ${from}`;
  if (code === "ETIMEDOUT") {
    const message = `${what} did not end within ${limitMs / 1000} s, and was stopped`;
    throw new AgentAuthError("timeout", message, { class: "unavailable", hint: "run it by hand: it may wait for you" });
  }
  if (code === "ENOBUFS") throw secretCommandError(`${what} printed more than ${MAX_BYTES} bytes, and was stopped`);
  if (code !== undefined)
    throw secretCommandError(`${what} cannot be started (${code})`, "name a program, by its path or on PATH");
  if (status !== 0) {
    const how = status == null ? "was killed" : `failed with exit code ${status}`;
    const [said = ""] = stderr.split(/\r?\n/).filter((line) => line.trim() !== "");
    throw secretCommandError(`${what} ${how}${said && `: ${quote(said)}`}`);
  }
  return stdout;
}

function oneLine(text: string, { from }: CommandOptions): string {
  const line = text.replace(/\r?\n$/, "");
  if (line === "") throw secretCommandError(`the command of ${from} printed nothing`);
  if (/[\r\n]/.test(line)) throw secretCommandError(`the command of ${from} printed more than one line`);
  return line;
}

function secretCommandError(message: string, hint = "it must print the secret alone, in one line"): AgentAuthError {
  return usageError(message, hint);
}
