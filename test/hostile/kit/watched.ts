import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { BIN, collect, type Started } from "../../helpers/cli.js";
import { RunInProcess } from "../../helpers/in-process.js";

/** A finished run of the program, and what was seen of it from outside. */
export interface Run {
  readonly args: readonly string[];
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** How long it took, less the time that it, or the servers that it talked to, waited for a processor. */
  readonly seconds: number;
  /** The most memory that its process ever held, in MB; undefined without a process of its own, or where the system has no /proc. */
  readonly megabytes: number | undefined;
  /** Every command line that it and its children were seen with. */
  readonly commandLines: readonly string[];
}

/** A run that is under way. */
export interface Watched {
  readonly child: Started;
  /** What it has said so far. */
  stdout(): string;
  stderr(): string;
  readonly ended: Promise<Run>;
}

/** How the program is started. */
export interface WatchedOptions {
  env: Record<string, string>;
  cwd?: string | undefined;
  stdin?: string | undefined;
  /** Leaves the input open. */
  keepsInput?: boolean | undefined;
  /** The words before the command; with them, or with a folder to work in, the run is a process of its own. */
  wrapper?: readonly string[] | undefined;
}

const SAMPLE_MS = 30;

// A case that fails does not get to the end of what it started.
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts the program: in this process, or in one of its own, whose memory and command lines are watched until it ends. */
export function startWatched(args: readonly string[], options: WatchedOptions): Watched {
  return options.wrapper || options.cwd !== undefined ? startProcess(args, options) : startHere(args, options);
}

function startHere(args: readonly string[], { env, stdin, keepsInput }: WatchedOptions): Watched {
  const startedAt = performance.now();
  const delayedBefore = delayOf("self");
  const child = new RunInProcess(args, { env });
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  if (!keepsInput) child.stdin.end(stdin ?? "");
  const ended = once(child, "close").then(([code, signal]): Run => {
    const seconds = Math.max(0, (performance.now() - startedAt) / 1000 - (delayOf("self") - delayedBefore));
    const commandLines = [args, ...child.children.map((one) => one.args)].map((words) => words.join(" "));
    return { args, code, signal, stdout: stdout(), stderr: stderr(), seconds, megabytes: undefined, commandLines };
  });
  return { child, stdout, stderr, ended };
}

function startProcess(args: readonly string[], options: WatchedOptions): Watched {
  const { env, cwd, stdin, keepsInput, wrapper = [] } = options;
  const startedAt = performance.now();
  const delayedBefore = delayOf("self");
  const [command = process.execPath, ...words] = [...wrapper, process.execPath, BIN, ...args];
  const child = spawn(command, words, { cwd, env, stdio: "pipe" });
  running.add(child);
  const watch = sampling(child.pid ?? 0);
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  child.stdin.on("error", () => undefined);
  if (!keepsInput) child.stdin.end(stdin ?? "");
  const ended = once(child, "close").then(([code, signal]): Run => {
    running.delete(child);
    const { delayed, ...seen } = watch();
    const waited = Math.max(delayed, delayOf("self") - delayedBefore);
    const seconds = Math.max(0, (performance.now() - startedAt) / 1000 - waited);
    return { args, code, signal, stdout: stdout(), stderr: stderr(), seconds, ...seen };
  });
  return { child, stdout, stderr, ended };
}

/** Looks at a process again and again; the function that is given back stops and tells. */
function sampling(pid: number): () => Pick<Run, "megabytes" | "commandLines"> & { delayed: number } {
  let kilobytes: number | undefined;
  let delayed = 0;
  const commandLines = new Set<string>();
  const look = () => {
    kilobytes = peakOf(pid) ?? kilobytes;
    delayed = Math.max(delayed, delayOf(pid));
    for (const one of [pid, ...childrenOf(pid)]) {
      const line = readProc(`/proc/${one}/cmdline`)?.replaceAll("\0", " ");
      if (line) commandLines.add(line);
    }
  };
  look();
  const timer = setInterval(look, SAMPLE_MS);
  return () => {
    clearInterval(timer);
    return {
      megabytes: kilobytes === undefined ? undefined : kilobytes / 1024,
      commandLines: [...commandLines],
      delayed,
    };
  };
}

function peakOf(pid: number): number | undefined {
  const found = /^VmHWM:\s+(\d+) kB$/m.exec(readProc(`/proc/${pid}/status`) ?? "")?.[1];
  return found === undefined ? undefined : Number(found);
}

/** Seconds that a process was ready to run and had no processor. */
function delayOf(pid: number | "self"): number {
  return Number(readProc(`/proc/${pid}/schedstat`)?.split(" ")[1] ?? 0) / 1e9;
}

function childrenOf(pid: number): string[] {
  return (readProc(`/proc/${pid}/task/${pid}/children`) ?? "").split(" ").filter(Boolean);
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // Gone, or a system without /proc.
    return undefined;
  }
}
