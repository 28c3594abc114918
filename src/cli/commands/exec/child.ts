import { type ChildProcess, type StdioOptions, spawnSync } from "node:child_process";
import { closeSync, constants, fstatSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { usageError } from "../../../errors.js";
import { loadSpawn, runnableFileText, shellSyntax, system, withVariable } from "../../../platform.js";
import { withoutSecretVariables } from "../../../profile/secrets.js";
import { MASK, quote } from "../../../redact.js";
import type { Io, OutStream } from "../../io/io.js";
import { fileDescriptor } from "../../io/stream.js";
import { outputError } from "../../io/write-all.js";
import { formatError } from "../../output/errors.js";
import { agentMode } from "../../runtime/agent-mode.js";
import type { AcquiredProcess, CommandContext, ProcessSignals } from "../../runtime/context.js";
import { exitCodeFor } from "../../runtime/exit-codes.js";

/**
 * Replaces every secret in a stream of chunks by a mask, also across chunk boundaries: the leftmost first, and of several
 * at one position the longest.
 *
 * @param secrets none of them empty
 */
export function createMasker(secrets: readonly Buffer[]) {
  const byFirstByte = Array.from({ length: 256 }, (): Buffer[] => []);
  const longestFirst = [...secrets].sort((a, b) => b.length - a.length);
  for (const secret of longestFirst) byFirstByte[secret[0] ?? 0]?.push(secret);
  let held: Buffer = Buffer.alloc(0);
  return {
    /** The masked bytes so far; what may be the start of a secret is held back, less bytes than the longest one has. */
    push(chunk: Uint8Array): Buffer {
      const { done, rest } = mask(Buffer.concat([held, chunk]), byFirstByte, false);
      // A copy, so that the whole chunk does not stay in memory.
      held = Buffer.from(rest);
      return done;
    },
    /** The bytes that were held back, at the end of the stream. */
    end(): Buffer {
      const { done } = mask(held, byFirstByte, true);
      held = Buffer.alloc(0);
      return done;
    },
  };
}

const MASK_BYTES = Buffer.from(MASK);

function mask(bytes: Buffer, byFirstByte: readonly Buffer[][], isEnd: boolean): { done: Buffer; rest: Buffer } {
  const parts: Buffer[] = [];
  let from = 0;
  let at = 0;
  while (at < bytes.length) {
    const candidates = byFirstByte[bytes[at] ?? 0] ?? [];
    const found =
      candidates.length === 0 ? undefined : candidates.find((secret) => matchesAt(bytes, at, secret, isEnd));
    if (found === undefined) {
      at++;
      continue;
    }
    // The next chunk decides whether it is the secret.
    if (at + found.length > bytes.length) break;
    parts.push(bytes.subarray(from, at), MASK_BYTES);
    at += found.length;
    from = at;
  }
  return { done: Buffer.concat([...parts, bytes.subarray(from, at)]), rest: bytes.subarray(at) };
}

/** Whether a secret with the byte at a position is there; also its start, if the bytes end in it and are not the last. */
function matchesAt(bytes: Buffer, at: number, secret: Buffer, isEnd: boolean): boolean {
  const end = Math.min(at + secret.length, bytes.length);
  if (isEnd && end - at < secret.length) return false;
  // The second byte rules out most, and costs less than a comparison of buffers.
  if (end - at > 1 && bytes[at + 1] !== secret[1]) return false;
  return bytes.compare(secret, 0, end - at, at, end) === 0;
}

/** A shorter form would match unrelated text. */
const SHORTEST = 6;

/**
 * The forms in which a program may print a token: as it is, URL-encoded, JSON-escaped, and in base64 at any position of the encoded text; empty for a token of
 * fewer than six characters.
 */
export function listEncodings(token: string): string[] {
  if (token.length < SHORTEST) return [];
  const json = JSON.stringify(token).slice(1, -1);
  const forms = [token, json, json.replaceAll("/", "\\/"), ...urlForms(token), ...base64Forms(token)];
  return [...new Set(forms)].filter((form) => form.length >= SHORTEST);
}

function urlForms(token: string): string[] {
  const component = encodeURIComponent(token);
  const form = new URLSearchParams([["", token]]).toString().slice(1);
  // Some programs do not encode the slash.
  const forms = [component, component.replaceAll("%2F", "/"), form];
  return [...forms, ...forms.map((text) => text.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()))];
}

/**
 * Base64 encodes three bytes at a time, so a text inside another has three forms. Characters that share bits with the
 * neighbouring text are left out; at the end of the text, the last characters are the token's own.
 */
function base64Forms(token: string): string[] {
  const bytes = Buffer.from(token);
  const forms = [0, 1, 2].flatMap((before) => {
    const padded = Buffer.concat([Buffer.alloc(before), bytes])
      .toString("base64")
      .slice(Math.ceil((before * 8) / 6));
    const whole = Math.floor(((before + bytes.length) * 8) / 6) - Math.ceil((before * 8) / 6);
    return [padded, padded.replace(/=+$/, ""), padded.slice(0, whole)];
  });
  return [...forms, ...forms.map((text) => text.replaceAll("+", "-").replaceAll("/", "_"))];
}

/** What is needed of a run. */
type ChildContext = Pick<CommandContext, "io" | "redactor" | "signal" | "signals" | "acquireProcess"> & {
  pendingSaves: Pick<CommandContext["pendingSaves"], "settled">;
};

/** What a command gets beside our environment. */
export interface Handover {
  readonly variable: readonly [name: string, value: string];
  /** Masked in each output that is not a terminal; undefined if the command gets no secret. */
  readonly secrets?: readonly Buffer[];
}

export interface ChildResult {
  exitCode: number;
  /** Why an output could not be passed on completely; undefined if it was, or if its reader has closed it. */
  lost: Error | undefined;
  /** A reader has stopped reading: its pending output may block this process forever. */
  isStuck: boolean;
}

/** How long a reader that has stopped reading may delay the exit after a signal. */
const GRACE_MS = 2000;

/** Runs a command in our place, and reports a failure. @param stop called when it has ended @returns the exit code */
export async function runCommand(
  command: readonly string[],
  handover: Handover,
  context: ChildContext,
  stop?: () => Promise<void>,
): Promise<number> {
  const own = context.acquireProcess();
  try {
    const { exitCode, lost, isStuck } = await runChild(command, handover, context, own).finally(stop);
    if (isStuck) {
      await context.pendingSaves.settled();
      own.exit(exitCode);
    }
    if (lost === undefined || exitCode !== 0) return exitCode;
    const error = outputError("the command's output cannot be passed on", lost);
    return await report(error, exitCodeFor(error.class), context);
  } catch (error) {
    if (!isStartFailure(error)) throw error;
    return await reportStartFailure(command[0] ?? "", error, context);
  } finally {
    own.release();
  }
}

/**
 * Runs a program, and waits until it has ended and all its output is passed on.
 *
 * @throws the system's error if the program cannot be started
 */
export async function runChild(
  command: readonly string[],
  { variable, secrets }: Handover,
  { io, signal, signals }: Pick<CommandContext, "io" | "signal" | "signals">,
  own: AcquiredProcess,
): Promise<ChildResult> {
  const isMasked = ({ isTTY }: OutStream) => secrets !== undefined && !isTTY;
  const masked = { stdout: isMasked(io.stdout), stderr: isMasked(io.stderr) };
  const spawn = await loadSpawn();
  const readerTimeout = createReaderTimeout();
  let child: ChildProcess | undefined;
  const onTerminal = io.stdin.isTTY || io.stdout.isTTY || io.stderr.isTTY;
  const release = forwardSignals(signals, onTerminal, {
    passOn: (signal) => child?.kill(signal),
    onTerminate: readerTimeout.signalled,
  });
  const pipes = openStdio(masked, own);
  try {
    try {
      // A signal that came before the handlers were installed is not passed on.
      signal.throwIfAborted();
      const [program = "", ...args] = command;
      const env = withVariable(withoutSecretVariables(own.env, io.env), ...variable);
      child = spawn(program, args, { env, stdio: pipes.stdio, shell: false, windowsHide: true });
    } finally {
      closeWriteEnds(pipes);
    }
    const ending = waitForExit(child, io);
    if (child.stdin !== null) own.stdin.on("error", () => {}).pipe(child.stdin.on("error", () => {}));
    const out = pipes.out?.readEnd ?? child.stdout;
    const err = pipes.err?.readEnd ?? child.stderr;
    const passed = Promise.all([
      out && passOutput(out, own.stdout, (masked.stdout && secrets) || []),
      err && passOutput(err, own.stderr, (masked.stderr && secrets) || []),
    ]);
    const exitCode = await ending;
    const failures = await Promise.race([passed, readerTimeout.expired()]);
    const isStuck = failures === undefined && own.stdout.writableLength + own.stderr.writableLength > 0;
    return { exitCode, lost: failures?.find(isLoss), isStuck };
  } finally {
    for (const source of [pipes.out?.readEnd, pipes.err?.readEnd, child?.stdout, child?.stderr]) source?.destroy();
    readerTimeout.stop();
    release();
  }
}

/**
 * Node reports a failed start and, much later, a failed signal with the same event. On Windows a program that is not
 * found can be reported after `cmd.exe` was started for it.
 */
function waitForExit(child: ChildProcess, io: Io): Promise<number> {
  return new Promise((resolve, reject) => {
    let hasStarted = false;
    child.once("spawn", () => {
      hasStarted = true;
    });
    child.on("error", (error: NodeJS.ErrnoException) => {
      if (!hasStarted || isStartFailure(error)) reject(error);
      // It continues to run.
      else io.warn(`the command could not be sent a signal: ${error.code ?? error.message}`);
    });
    child.once("exit", (code, signal) =>
      resolve(signal === null ? (code ?? 0) : 128 + process.getBuiltinModule("node:os").constants.signals[signal]),
    );
  });
}

/** Bounds the wait for readers, once a signal has asked the run to end. */
function createReaderTimeout() {
  let timer: NodeJS.Timeout | undefined;
  let wasSignalled = false;
  let giveUp = () => {};
  return {
    signalled() {
      wasSignalled = true;
      giveUp();
    },
    /** Waits from the end of the child: for a while if a signal has ended it, else until one comes. */
    expired: () =>
      new Promise<undefined>((resolve) => {
        giveUp = () => resolve(undefined);
        if (wasSignalled) timer = setTimeout(giveUp, GRACE_MS);
      }),
    stop: () => clearTimeout(timer),
  };
}

/** A reader that closed its end is no loss. */
function isLoss(error: NodeJS.ErrnoException | null | undefined): error is NodeJS.ErrnoException {
  return error != null && !["EPIPE", "ECONNRESET", "ERR_STREAM_DESTROYED", "EOF"].includes(error.code ?? "");
}

/** Whether the command failed to start, rather than our own code before it. */
export function isStartFailure(error: unknown): boolean {
  return error instanceof Error && /^spawn\b/.test((error as NodeJS.ErrnoException).syscall ?? "");
}

/** Reports why a command did not start. @returns the exit code */
export function reportStartFailure(command: string, cause: unknown, context: ReportContext): Promise<number> {
  const { code = "no reason reported" } = cause as NodeJS.ErrnoException;
  const { exitCode, what, hint } = explain(code);
  const message = `the command ${quote(command)} ${what} (${code})`;
  return report(usageError(message, hint, cause), exitCode, context);
}

type ReportContext = Pick<ChildContext, "io" | "redactor">;

/** Reports an error. @returns the exit code */
export async function report(error: unknown, exitCode: number, { io, redactor }: ReportContext): Promise<number> {
  const json = io.env["AGENTAUTH_ERRORS"] === "json" || agentMode(io.env, io.stdout) !== undefined;
  const text = formatError(error, { json, colors: io.stderr.colors, redactor, exitCode });
  // If stderr is closed, the exit code alone reports the failure.
  await io.stderr.write(text).catch(() => {});
  return exitCode;
}

/** With the exit codes that `env` and shells use. */
function explain(code: string): { exitCode: number; what: string; hint?: string } {
  if (["ENOENT", "ENOTDIR"].includes(code)) {
    const hint = `give the path of a program, or the name of one in PATH; for shell syntax: -- ${shellSyntax()}`;
    return { exitCode: 127, what: "is not found", hint };
  }
  if (["EACCES", "EPERM", "ENOEXEC"].includes(code))
    return { exitCode: 126, what: "cannot be run", hint: `a program must be ${runnableFileText()}` };
  return { exitCode: 125, what: "cannot be started" };
}

/** The keyboard signals of a terminal, which sends them to the child as well as to us. */
const KEYBOARD: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT"];
/** The other signals that ask a program to end. */
const TERMINATING: readonly NodeJS.Signals[] = ["SIGTERM", "SIGHUP"];
/** The signals that stop and continue a job; on a terminal the shell sends them to both processes. */
const JOB: readonly NodeJS.Signals[] = ["SIGTSTP", "SIGCONT", "SIGWINCH"];
/** All that Windows has. */
const ON_WINDOWS: readonly NodeJS.Signals[] = ["SIGINT", "SIGBREAK", "SIGHUP", "SIGTERM"];

/**
 * Forwards signals instead of acting on them. A console of Windows sends its signals to all its programs, and passing one
 * on would kill the child.
 *
 * @param onTerminal whether the terminal also sends keyboard signals to the child
 * @param handlers `passOn` sends a signal to the child; `onTerminate` is called for each terminating one, passed on or not
 * @returns a function that removes the listeners
 */
export function forwardSignals(
  signals: ProcessSignals,
  onTerminal: boolean,
  { passOn, onTerminate }: { passOn(signal: NodeJS.Signals): void; onTerminate(): void },
): () => void {
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

interface OutputPipe {
  readonly writeEnd: number;
  readonly readEnd: Readable;
}

interface ChildStdio {
  readonly stdio: StdioOptions;
  /** Our pipes; undefined where the child inherits the stream, gets a pipe of Node, or has both outputs in the other one. */
  readonly out: OutputPipe | undefined;
  readonly err: OutputPipe | undefined;
}

/** Opens pipes for the masked outputs, and for streams of ours that are no file of the system; a child inherits the rest. */
export function openStdio(
  masked: { stdout: boolean; stderr: boolean },
  own: Pick<AcquiredProcess, "stdin" | "stdout" | "stderr">,
): ChildStdio {
  const [inFile, outFile, errFile] = [
    fileDescriptor(own.stdin),
    fileDescriptor(own.stdout),
    fileDescriptor(own.stderr),
  ];
  const readsOut = masked.stdout || outFile === undefined;
  const readsErr = masked.stderr || errFile === undefined;
  const out = readsOut ? makePipe() : undefined;
  // Two pipes would lose the order of outputs that share one file.
  const isShared = out !== undefined && masked.stderr && isSameFile(outFile, errFile);
  const err = readsErr && !isShared ? makePipe() : undefined;
  const outEnd = readsOut ? (out?.writeEnd ?? "pipe") : "inherit";
  const errEnd = readsErr ? (err?.writeEnd ?? "pipe") : "inherit";
  return { stdio: [inFile === undefined ? "pipe" : "inherit", outEnd, isShared ? outEnd : errEnd], out, err };
}

function isSameFile(outFile: number | undefined, errFile: number | undefined): boolean {
  if (outFile === undefined || errFile === undefined) return false;
  const [out, err] = [fstatSync(outFile), fstatSync(errFile)];
  return out.dev === err.dev && out.ino === err.ino;
}

/**
 * Creates a pipe. Node would use a pair of sockets, which a script that opens /dev/stdout or /dev/stderr cannot open.
 *
 * @returns undefined if the system has no `mkfifo`, or no writable folder for temporary files
 */
function makePipe(): OutputPipe | undefined {
  if (process.platform === "win32") return undefined;
  let folder: string | undefined;
  try {
    folder = mkdtempSync(join(tmpdir(), "agentauth-"));
    const path = join(folder, "pipe");
    if (spawnSync("mkfifo", ["-m", "600", path], { stdio: "ignore" }).status !== 0) return undefined;
    // Opens the reader first, without blocking: opening the writer blocks until there is a reader.
    const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writeEnd = openSync(path, constants.O_WRONLY);
    const { Socket } = process.getBuiltinModule("node:net");
    return { writeEnd, readEnd: new Socket({ fd, readable: true, writable: false }) };
  } catch {
    return undefined;
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

/** Closes our copies of the ends that the child has: only then a read ends when the child ends. */
export function closeWriteEnds({ out, err }: ChildStdio): void {
  for (const pipe of [out, err]) if (pipe) closeSync(pipe.writeEnd);
}

/**
 * Passes on the output of a child, with secrets masked, at the pace of its reader. When the reader closes its end, the
 * child's pipe is closed, as in a shell pipeline.
 *
 * @returns the error; undefined if everything was passed on
 */
export async function passOutput(
  source: Readable,
  target: Writable,
  secrets: readonly Buffer[],
): Promise<NodeJS.ErrnoException | undefined> {
  const masker = createMasker(secrets);
  try {
    // On an error, leaving this loop closes the source.
    for await (const chunk of source) await write(target, masker.push(chunk as Buffer));
    await write(target, masker.end());
    return undefined;
  } catch (error) {
    return error as NodeJS.ErrnoException;
  }
}

function write(target: Writable, bytes: Buffer): Promise<void> {
  if (bytes.length === 0) return Promise.resolve();
  return new Promise((resolve, reject) => {
    target.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}
