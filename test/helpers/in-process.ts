import { AsyncLocalStorage } from "node:async_hooks";
import type { ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { finished } from "node:stream/promises";
import { main } from "../../src/cli/main.js";
import type { Host, Machine } from "../../src/cli/runtime/context.js";
import type { Clock } from "../../src/http/deadline.js";

/** A program that a run has started. */
export interface StartedChild {
  /** The words of the command, the program first. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** A request that a run has sent. */
export interface SentRequest {
  readonly method: string;
  readonly url: string;
}

/** What a run in this process has. */
export interface HostOptions {
  /** The whole environment. */
  env: Record<string, string>;
  /** Which streams are terminals. Default: none. */
  tty?: boolean | { stdin?: boolean; stdout?: boolean; stderr?: boolean };
  /** The width that the terminals report. */
  columns?: number;
  /** Default: that of the machine. */
  clock?: Clock;
  /** Default: the platform and the working folder of the tests. */
  machine?: Machine;
}

interface Run {
  readonly children: StartedChild[];
  readonly requests: SentRequest[];
}

const current = new AsyncLocalStorage<Run>();

// Node announces each child process before it is started, and each request before it is sent, in the context of its caller.
subscribe("child_process", (message) => {
  const run = current.getStore();
  const { process: child } = message as { process: ChildProcess };
  if (run === undefined) return;
  const started = child as unknown as { spawn(options: { args?: string[]; envPairs?: string[] }): unknown };
  const { spawn } = started;
  started.spawn = (options) => {
    const pairs = (options.envPairs ?? []).map((pair) => [pair.split("=", 1)[0], pair.slice(pair.indexOf("=") + 1)]);
    run.children.push({ args: options.args ?? [], env: Object.fromEntries(pairs) });
    return spawn.call(child, options);
  };
});
subscribe("undici:request:create", (message) => {
  const { request } = message as { request: { method: string; origin: string | URL; path: string } };
  current.getStore()?.requests.push({ method: request.method, url: `${new URL(request.path, request.origin)}` });
});

subscribe("agentauth:request:create", (message) => {
  const { method, url } = message as { method: string; url: string };
  current.getStore()?.requests.push({ method, url });
});

/**
 * A run of the program in this process, with the part of a child process that tests use: a signal reaches the listeners of
 * this run alone, and ends it where there is none.
 */
export class RunInProcess extends EventEmitter {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  /** What the run has started. */
  readonly children: StartedChild[] = [];
  /** What the run has sent, redirects included. */
  readonly requests: SentRequest[] = [];
  exitCode: number | null = null;
  signalCode: NodeJS.Signals | null = null;
  readonly #signals = new EventEmitter();
  #isRunning = true;

  constructor(args: readonly string[], { env, tty = false, columns, clock, machine }: HostOptions) {
    super();
    const isTTY = (name: "stdin" | "stdout" | "stderr") => (typeof tty === "boolean" ? tty : tty[name] === true);
    const terminal = (name: "stdin" | "stdout" | "stderr") =>
      isTTY(name) ? { isTTY: true, ...(columns && { columns }) } : {};
    const signals = this.#signals;
    const host: Host = {
      stdin: Object.assign(this.stdin, terminal("stdin")),
      stdout: Object.assign(this.stdout, terminal("stdout")),
      stderr: Object.assign(this.stderr, terminal("stderr")),
      env: { ...env },
      on: (event: string, listener: (error: Error) => void) => signals.on(event, listener),
      off: (event: string, listener: (error: Error) => void) => signals.off(event, listener),
      emit: (event, signal) => signals.emit(event, signal),
      // A process would end here; what continues in this one is not part of the run.
      exit: (code) => this.#end(code, null) as never,
      ...(clock && { clock }),
      ...(machine && { machine }),
    };
    // A process starts after its caller has got hold of it.
    setImmediate(() => {
      void current
        .run(this, () => main(args, host))
        .then(
          (code) => this.#end(code, null),
          (error: unknown) => {
            this.stderr.write(`the program threw ${error instanceof Error ? error.stack : String(error)}\n`);
            this.#end(1, null);
          },
        );
    });
  }

  /** Sends a signal; false where the run has ended. */
  kill(signal: NodeJS.Signals = "SIGTERM"): boolean {
    if (!this.#isRunning) return false;
    if (!this.#signals.emit(signal, signal)) this.#end(null, signal);
    return true;
  }

  #end(code: number | null, signal: NodeJS.Signals | null): void {
    if (!this.#isRunning) return;
    this.#isRunning = false;
    this.exitCode = code;
    this.signalCode = signal;
    this.emit("exit", code, signal);
    const closed = [this.stdout, this.stderr].map((stream) => {
      stream.on("error", () => {}).end();
      if (stream.readableFlowing === null) stream.resume();
      return finished(stream, { writable: false }).catch(() => {});
    });
    this.stdin.on("error", () => {}).destroy();
    void Promise.all(closed).then(() => this.emit("close", code, signal));
  }
}
