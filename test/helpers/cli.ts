import { type ChildProcess, spawn } from "node:child_process";
import { type EventEmitter, once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ManagementClient } from "../../src/index.js";
import { type SandboxOptions, startSandbox } from "../../src/sandbox/index.js";
import { plant, watch } from "./canaries.js";
import { temporaryFolder } from "./folder.js";
import { type HostOptions, RunInProcess, type SentRequest, type StartedChild } from "./in-process.js";

/** The program as a user starts it. */
export const BIN = fileURLToPath(new URL("../../bin/agentauth.cjs", import.meta.url));

export interface RunOptions extends Omit<HostOptions, "env"> {
  /** Added to an environment that has nothing but PATH, HOME and AGENTAUTH_HOME. */
  env?: Record<string, string | undefined>;
  stdin?: string;
  /** The working folder, which only a separate process can have: the run gets one. */
  cwd?: string;
  /** Sends a signal once stdout has this many characters. */
  signalAfter?: { characters: number; signal: NodeJS.Signals };
  /** Sends SIGINT when it fires. */
  signal?: AbortSignal;
}

/** Options of a run in a separate process. */
export type ProcessOptions = Pick<RunOptions, "env" | "stdin" | "cwd" | "signalAfter">;

export interface CliResult {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** A run in this process, and what it did. */
export interface CliRun extends CliResult {
  children: readonly StartedChild[];
  requests: readonly SentRequest[];
}

export { temporaryFolder };

let sharedHome: string | undefined;

/** The environment of a run: nothing of the one that the tests run in but the way to the programs. */
export function cleanEnv(extra: Record<string, string | undefined> = {}): Record<string, string> {
  sharedHome ??= temporaryFolder();
  const env = { PATH: process.env["PATH"], HOME: sharedHome, AGENTAUTH_HOME: join(sharedHome, "settings"), ...extra };
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

/** A run that is under way: in this process, or in a separate one. */
export type Started = EventEmitter &
  Pick<ChildProcess, "stdin" | "stdout" | "stderr" | "exitCode" | "signalCode"> & {
    readonly pid?: number | undefined;
    kill(signal?: NodeJS.Signals): boolean;
  };

/** Starts the program in this process; its stdout and stderr are pipes without a reader yet. */
export function startCli(args: readonly string[], options: RunOptions = {}): Started {
  return options.cwd !== undefined ? startProcess(args, options) : startRun(args, options);
}

function startRun(args: readonly string[], options: RunOptions): RunInProcess {
  const env = cleanEnv(options.env);
  const run = new RunInProcess(args, { ...options, env });
  watch(run, args, env);
  options.signal?.addEventListener("abort", () => run.kill("SIGINT"), { once: true });
  return run;
}

/** Runs the program to its end, in this process. */
export async function runCli(args: readonly string[], options: RunOptions = {}): Promise<CliResult> {
  return ended(startCli(args, options), options);
}

/** Runs the program to its end in this process, and returns what it did as well. */
export async function traceCli(args: readonly string[], options: Omit<RunOptions, "cwd"> = {}): Promise<CliRun> {
  const run = startRun(args, options);
  return { ...(await ended(run, options)), children: run.children, requests: run.requests };
}

/** Starts the program in a separate process; its stdout and stderr are pipes without a reader yet. */
export function startProcess(args: readonly string[], options: ProcessOptions = {}): ChildProcess {
  if (!existsSync(new URL("../../dist/cli/main.cjs", import.meta.url))) {
    throw new Error("this test runs the built program: npm run build");
  }
  const env = cleanEnv(options.env);
  const child = spawn(process.execPath, [BIN, ...args], { cwd: options.cwd, env, stdio: "pipe" });
  watch(child, args, env);
  running.add(child);
  child.once("exit", () => running.delete(child));
  return child;
}

// A test that fails does not get to the end of what it started.
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Runs the program to its end, in a separate process: where the process is the point. */
export async function runProcess(args: readonly string[], options: ProcessOptions = {}): Promise<CliResult> {
  return ended(startProcess(args, options), options);
}

async function ended(
  child: Started,
  { stdin, signalAfter }: Pick<RunOptions, "stdin" | "signalAfter">,
): Promise<CliResult> {
  let sent = false;
  const out = collect(child.stdout, (length) => {
    if (signalAfter === undefined || sent || length < signalAfter.characters) return;
    sent = true;
    child.kill(signalAfter.signal);
  });
  const err = collect(child.stderr);
  child.stdin?.on("error", () => {});
  child.stdin?.end(stdin ?? "");
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  return { code, signal, stdout: out(), stderr: err() };
}

/** Everything that a stream says, as text. */
export function collect(
  stream: NodeJS.ReadableStream | null,
  onData: (length: number) => void = () => {},
): () => string {
  const chunks: Buffer[] = [];
  let length = 0;
  stream?.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    length += chunk.length;
    onData(length);
  });
  return () => Buffer.concat(chunks).toString("utf8");
}

/** Waits until something holds. A test that waits in vain runs into its own timeout. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** A sandbox in this process, the program pointed at it by the environment, and the library for comparison. */
export async function startTestbed(options: SandboxOptions = {}) {
  const sandbox = await startSandbox({ accounts: 1, domains: 2, pools: 2, devices: 60, ...options });
  const env = { AGENTAUTH_BASE_URL: sandbox.baseUrl, AGENTAUTH_API_TOKEN: sandbox.apiToken };
  plant("control token", sandbox.controlToken);
  const { account, domain, pool } = sandbox.ids;
  return {
    sandbox,
    env,
    service: new ManagementClient({ baseUrl: sandbox.baseUrl, token: sandbox.apiToken }),
    domains: ["domains", "list", "--account", account],
    pools: ["pools", "list", "--domain", domain],
    devices: ["devices", "list", "--pool", pool],
    run: (args: readonly string[], more: RunOptions = {}) => runCli(args, { ...more, env: { ...env, ...more.env } }),
    start: (args: readonly string[]) => startCli(args, { env }),
    /** How many requests for devices have come. */
    deviceRequests: () => sandbox.requests.filter(({ path }) => path === "/api/v1/device").length,
  };
}

export type Testbed = Awaited<ReturnType<typeof startTestbed>>;

/** Runs a hint as a user does: pasted into a shell, where `agentauth` is the built program. */
export async function runHint(
  stderr: string,
  env: Record<string, string>,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const text = stderr.startsWith("{") ? `hint: ${JSON.parse(stderr).error.hint}` : stderr;
  const command = /^hint: continue with: (.*)$/m.exec(text)?.[1];
  if (command === undefined) throw new Error(`no hint in ${stderr}`);
  const script = `agentauth() { "${process.execPath}" "${BIN}" "$@"; }\n${command}`;
  const child = spawn("sh", ["-c", script], { env: cleanEnv(env), stdio: "pipe" });
  watch(child, [command], cleanEnv(env));
  const [out, err] = [collect(child.stdout), collect(child.stderr)];
  child.stdin.end();
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout: out(), stderr: err() };
}

/** The ids of every device of the sandbox's first pool, in the service's order. */
export function allIds({ data, ids: { pool } }: Testbed["sandbox"]): string[] {
  return Array.from({ length: data.deviceCount(pool) }, (_, index) => data.device(pool, index)?.id ?? "");
}

/** The lines of an output. */
export function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}

/** What a ready line of `sandbox start -o json` says. */
export interface ReadyLine {
  ready: true;
  pid: number;
  base_url: string;
  api_token: string;
  account_id: string;
  domain_id: string;
  pool_id: string;
  mcp_url: string;
}

/** `agentauth sandbox start -o json`: by default a separate process, with {@link startCli} in this one. */
export async function startCliSandbox(
  args: readonly string[] = [],
  home = temporaryFolder(),
  start: (args: readonly string[], options: ProcessOptions) => Started = startProcess,
) {
  const env = { AGENTAUTH_HOME: home };
  const child = start(["sandbox", "start", "-o", "json", ...args], { env });
  const closed = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  const [out, err] = [collect(child.stdout), collect(child.stderr)];
  await Promise.race([until(() => out().includes("\n")), closed]);
  if (!out().includes("\n")) throw new Error(`the sandbox did not start: ${err()}`);
  return {
    home,
    child,
    /** Resolves when the sandbox has ended. */
    exitCode: closed.then(([code]) => code),
    ready: JSON.parse(linesOf(out())[0] ?? "") as ReadyLine,
    run: (more: readonly string[], options: RunOptions = {}) =>
      runCli(more, { ...options, env: { ...env, ...options.env } }),
    /** Ends it and returns its exit code. */
    async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      return (await closed)[0];
    },
  };
}

const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu;

/** The code points in a text that a terminal would act on or not show; line breaks and tabs are the program's own. */
export function unsafeIn(text: string): string[] {
  // A joiner between emoji makes one of them.
  const found =
    text.replace(/(?<=\p{Extended_Pictographic}\ufe0f?)\u200d(?=\p{Extended_Pictographic})/gu, "").match(UNSAFE) ?? [];
  return found.filter((one) => one !== "\n" && one !== "\t").map((one) => (one.codePointAt(0) ?? 0).toString(16));
}
