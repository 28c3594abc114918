import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Clock } from "../../../src/http/deadline.js";
import { BIN, collect, type Started } from "../../helpers/cli.js";
import { clockFactor, clockOfWork } from "../../helpers/fast-clock.js";
import { RunInProcess } from "../../helpers/in-process.js";

/** A finished run of the program. */
export interface Run {
  readonly args: readonly string[];
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /**
   * The duration by the clock of the case, without the time that the process or the servers of the test waited for a
   * processor.
   */
  readonly seconds: number;
  /** The peak memory of the process in MB; undefined if the run had no separate process, or the system does not report it. */
  readonly megabytes: number | undefined;
  /** Every observed command line of the process and its children. */
  readonly commandLines: readonly string[];
}

/** A running program. */
export interface Watched {
  readonly child: Started;
  /** The output so far. */
  stdout(): string;
  stderr(): string;
  readonly ended: Promise<Run>;
}

/** How the program is started. */
export interface WatchedOptions {
  env: Record<string, string>;
  cwd?: string | undefined;
  stdin?: string | undefined;
  /** Leaves stdin open. */
  keepsStdinOpen?: boolean | undefined;
  /** The arguments before the command; with them, or with a working folder, the run is a separate process. */
  wrapper?: readonly string[] | undefined;
  /** For a run in this process. Default: that of the case. */
  clock?: Clock | undefined;
  /** For a run in this process: its streams are those of a terminal. */
  isOnTerminal?: boolean | undefined;
}

const SAMPLE_MS = 30;

// A failed case may leave programs running.
const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts the program: in this process, or in a separate one whose memory and command lines are sampled until it exits. */
export function startWatched(args: readonly string[], options: WatchedOptions): Watched {
  return options.wrapper || options.cwd !== undefined ? startProcess(args, options) : startHere(args, options);
}

function startHere(args: readonly string[], options: WatchedOptions): Watched {
  const { env, stdin, keepsStdinOpen, isOnTerminal = false } = options;
  const startedAt = performance.now();
  const delayedBefore = delayOf("self");
  const [clock, factor] = [options.clock ?? clockOfWork(), clockFactor()];
  const child = new RunInProcess(args, { env, tty: isOnTerminal, ...(clock && { clock }) });
  if (isOnTerminal) Object.assign(child.stdin, { setRawMode: () => undefined });
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  if (!keepsStdinOpen && !isOnTerminal) child.stdin.end(stdin ?? "");
  const ended = once(child, "close").then(([code, signal]): Run => {
    const delayed = delayOf("self") - delayedBefore;
    const seconds = Math.max(0, (performance.now() - startedAt) / 1000 - delayed) * factor;
    const commandLines = [args, ...child.children.map((one) => one.args)].map((words) => words.join(" "));
    return { args, code, signal, stdout: stdout(), stderr: stderr(), seconds, megabytes: undefined, commandLines };
  });
  return { child, stdout, stderr, ended };
}

function startProcess(args: readonly string[], options: WatchedOptions): Watched {
  const { env, cwd, stdin, keepsStdinOpen, wrapper = [] } = options;
  const startedAt = performance.now();
  const delayedBefore = delayOf("self");
  const [command = process.execPath, ...words] = [...wrapper, process.execPath, BIN, ...args];
  const child = spawn(command, words, { cwd, env, stdio: "pipe" });
  running.add(child);
  const watch = sampling(child.pid ?? 0);
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  child.stdin.on("error", () => undefined);
  if (!keepsStdinOpen) child.stdin.end(stdin ?? "");
  const ended = once(child, "close").then(([code, signal]): Run => {
    running.delete(child);
    const { delayed, ...seen } = watch();
    const waited = Math.max(delayed, delayOf("self") - delayedBefore);
    const seconds = Math.max(0, (performance.now() - startedAt) / 1000 - waited);
    return { args, code, signal, stdout: stdout(), stderr: stderr(), seconds, ...seen };
  });
  return { child, stdout, stderr, ended };
}

/** Samples a process at an interval; the returned function stops it and returns the result. */
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

/** Seconds that a runnable process waited for a processor. */
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
    // The process has exited, or the system has no /proc.
    return undefined;
  }
}
