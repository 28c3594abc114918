import type { SpawnSyncOptionsWithStringEncoding } from "node:child_process";
import { existsSync } from "node:fs";
import { AgentAuthError, abortedError, usageError } from "../errors.js";
import { commandWords } from "../login/command-words.js";
import { readClaims } from "../oauth/token/token-checks.js";
import { type Env, loadSpawn, withoutByteOrderMark } from "../platform.js";
import { quote } from "../redact.js";
import { readPrivateFile, writePrivateFile } from "../store/private/private-file.js";
import { storeError } from "../store/store-error.js";

const MAX_BYTES = 64 * 1024;

/**
 * Reads a file that holds one secret, at most 64 KiB; a byte order mark and one line break at its end are left out.
 *
 * @throws `AgentAuthError` `store_failed`, with the command that repairs it
 */
export function readSecretFile(path: string): string {
  const text = readPrivateFile(path, MAX_BYTES);
  if (text === undefined) throw storeError(`the file ${path} cannot be read`, { code: "ENOENT" });
  return withoutByteOrderMark(text, `the file ${path}`).replace(/\r?\n$/, "");
}

/** Writes a file that only this user can read, whole or not at all. */
export const writeSecretFile: (path: string, content: string) => void = writePrivateFile;

/** A secret that is read when it is needed. */
export interface SecretSetting {
  /** @throws `AgentAuthError` if it cannot be read */
  read(): string;
  /** Where it comes from, without the secret. */
  source: string;
}

/** What names a secret: a variable, a file that only its owner can read, or a command that prints it. */
const REFERENCE = /^(env:[A-Za-z_]\w*|(file|exec):.+)$/;

/** The forms of a reference, for messages. */
export const REFERENCES = "env:NAME, file:PATH or exec:COMMAND";

/** What is known of the sources of secrets in an environment. */
interface Sources {
  /** The variables that hold a secret which was named, or a credential for one. */
  readonly variables: Set<string>;
  /** Milliseconds that a command may take. A vault may ask its user first. */
  limitMs: number;
}

const SOURCES = new WeakMap<Env, Sources>();

function sourcesIn(env: Env): Sources {
  const sources = SOURCES.get(env) ?? { variables: new Set(), limitMs: 30_000 };
  SOURCES.set(env, sources);
  return sources;
}

/** Notes the variable that a reference names. */
export function noteReference(reference: string, env: Env): void {
  if (reference.startsWith("env:")) noteSecretVariables(env, reference.slice("env:".length));
}

/** Notes variables that hold a secret. @param env the environment of the run */
export function noteSecretVariables(env: Env, ...names: readonly string[]): void {
  for (const name of names) sourcesIn(env).variables.add(name);
}

/** The environment of a program that we start, without the variables whose secrets this run has named. */
export function withoutSecretVariables(inherited: Env, env: Env): Env {
  const { variables } = sourcesIn(env);
  return Object.fromEntries(Object.entries(inherited).filter(([name]) => !variables.has(name)));
}

/** Bounds the commands that print secrets. */
export function limitSecretCommands(env: Env, limitMs: number): void {
  sourcesIn(env).limitMs = limitMs;
}

/** Whether a text names a secret. */
export function isReference(text: string): boolean {
  return REFERENCE.test(text);
}

/**
 * The secret that `env:NAME`, `file:PATH` or `exec:COMMAND` names. A command is run once for the process, or until the
 * `exp` of the token that it printed.
 */
export function referencedSecret(reference: string, from: string, env: Env): SecretSetting {
  const [kind, ...rest] = reference.split(":");
  const name = rest.join(":");
  const source = `${from}, ${name}`;
  if (kind === "file") return { read: () => readSecretFile(name), source };
  if (kind === "exec") return { read: printedSecret(name, { from, env }), source };
  noteReference(reference, env);
  return {
    source,
    read() {
      const value = env[name];
      if (value) return value;
      throw usageError(`the environment variable ${name}, named by ${from}, is not set`);
    },
  };
}

/** The secret that a text names, or that it is. */
export function secretOrReferenced(text: string, from: string, env: Env): string {
  return isReference(text) ? referencedSecret(text, from, env).read() : text;
}

/**
 * An API token as it was given, without the end of its line.
 *
 * @throws `AgentAuthError` `usage`, with what is odd about it, for a value that is no token alone
 */
export function checkApiToken(given: string, source: string): string {
  const token = given.replace(/[\r\n]+$/, "");
  const why =
    (token === "" && "is empty") ||
    (/^bearer\s/i.test(token) && 'begins with "Bearer "') ||
    (/^(["']).*\1$/s.test(token) && "is in quotes") ||
    (!/^[\x21-\x7e]+$/.test(token) && "has a blank, a line break or a character that is not ASCII");
  if (why === false) return token;
  throw usageError(`the API token (${source}) ${why}`, "give the token alone");
}

/** The secret that a flag names: by a reference, or by the path of a file. */
export function namedSecret(named: string, from: string, env: Env): string {
  return isReference(named) ? referencedSecret(named, from, env).read() : readSecretFile(named);
}

function printedSecret(command: string, options: CommandOptions): () => string {
  let known = { secret: "", endsAt: 0 };
  return () => {
    if (known.endsAt > Date.now()) return known.secret;
    const secret = secretLineSync(splitWords(command, options.from), options);
    const exp = readClaims(secret)?.claims["exp"];
    known = { secret, endsAt: typeof exp === "number" ? exp * 1000 : Number.POSITIVE_INFINITY };
    return secret;
  };
}

export interface CommandOptions {
  /** What names the command, for messages. */
  from: string;
  /** The environment of the run, which bounds it; default: 30 seconds. */
  env?: Env | undefined;
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
export function splitWords(command: string, from: string): string[] {
  const words = commandWords(command, existsSync, (reason) => secretCommandError(`the command of ${from} ${reason}`));
  if (words.length === 0) throw secretCommandError(`the command of ${from} is empty`);
  return words;
}

/**
 * Runs a command, and waits for it.
 *
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
    timeout: readTimeLimit(options),
    windowsHide: true,
  };
  const { spawnSync } = process.getBuiltinModule("node:child_process");
  const { error, ...ended } = spawnSync(program, args, run);
  const { code } = (error ?? {}) as NodeJS.ErrnoException;
  return oneLine(readOutput(words, { ...ended, code }, options), options);
}

/** {@link secretLineSync} without waiting. */
export async function secretLine(words: readonly string[], options: CommandOptions): Promise<string> {
  return oneLine(await commandOutput(words, options), options);
}

/** What a command prints, of any number of lines; else as {@link secretLineSync}. */
export async function commandOutput(words: readonly string[], options: CommandOptions): Promise<string> {
  const { signal } = options;
  const [program = "", ...args] = words;
  const start = await loadSpawn();
  // After that wait: a signal that has fired reports it to no listener that is added later.
  if (signal?.aborted) throw abortedError(signal);
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
    const timer = setTimeout(() => stop("ETIMEDOUT"), readTimeLimit(options));
    signal?.addEventListener("abort", onAbort);
    for (const name of ["stdout", "stderr"] as const)
      child[name]?.setEncoding("utf8").on("data", (part: string) => {
        size += Buffer.byteLength(part);
        if (size > MAX_BYTES) stop("ENOBUFS");
        else printed[name] += part;
      });
    const end = (how: CommandEnd) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      resolve({ ...printed, ...how, ...(code !== undefined && { code }) });
    };
    child.on("error", (error: NodeJS.ErrnoException) => end({ code: error.code }));
    child.on("close", (status) => end({ status }));
  });
  if (signal?.aborted) throw abortedError(signal);
  return readOutput(words, ended, options);
}

function readTimeLimit({ env = {} }: CommandOptions): number {
  return sourcesIn(env).limitMs;
}

function readOutput([program]: readonly string[], ended: CommandEnd, options: CommandOptions): string {
  const { from } = options;
  const { code, status, stdout = "", stderr = "" } = ended;
  const what = `the command ${quote(program)} of ${from}`;
  if (code === "ETIMEDOUT") {
    const message = `${what} did not end within ${readTimeLimit(options) / 1000} s, and was stopped`;
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
