import { ChildProcess, spawnSync } from "node:child_process";
import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type Handover, isStartFailure, runChild } from "../../../../src/cli/commands/exec/child.js";
import type { AcquiredProcess } from "../../../../src/cli/runtime/context.js";
import { processSignals } from "../../../../src/cli/runtime/signals.js";
import { collect, temporaryFolder, until } from "../../../helpers/cli.js";
import { createMemoryIo } from "../../../helpers/memory-io.js";

// Root without the right to signal others is what any user is to the programs of another user.
const withoutKill = ["--bounding-set", "-kill", "--inh-caps", "-kill"];
const isRoot =
  process.getuid?.() === 0 && spawnSync("setpriv", [...withoutKill, "--clear-groups", "true"]).status === 0;
if (!isRoot) process.stderr.write("SKIPPED: a command of another user needs root and the program setpriv\n");

afterEach(() => vi.restoreAllMocks());

/** A run of a command, and what it prints, without a terminal. */
function start(command: readonly string[], signals: EventEmitter = process, signal = new AbortController().signal) {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const exit = (code: number): never => {
    throw new Error(`ended with ${code}`);
  };
  const own: AcquiredProcess = { stdin, stdout, stderr, env: process.env, release() {}, exit };
  const handover: Handover = { variable: ["X", "x"], secrets: [] };
  const io = createMemoryIo();
  const context = { io, signal, signals: processSignals(signals as typeof process) };
  const result = runChild(command, handover, context, own);
  return { out: collect(stdout), err: io.err, result };
}

describe("a command that may not be sent a signal", () => {
  it("continues, as often as one is tried, and its exit code counts; each is reported", async () => {
    const program = 'console.log("ready"); setTimeout(() => { console.log("done"); process.exitCode = 7; }, 800)';
    const { kill } = ChildProcess.prototype;
    vi.spyOn(ChildProcess.prototype, "kill").mockImplementation(function (this: ChildProcess, signal) {
      // The files of a worker share the class: a child of an earlier one may be killed only now.
      if (!this.spawnargs.includes(program)) return kill.call(this, signal);
      this.emit("error", Object.assign(new Error("kill EPERM"), { code: "EPERM", syscall: "kill" }));
      return false;
    });
    // Not the process: the files of a worker share it, and the signals of another one would be counted here.
    const host = new EventEmitter();
    const { result, out, err } = start([process.execPath, "-e", program], host);
    await until(() => out() === "ready\n");
    for (const signal of ["SIGUSR2", "SIGUSR2"] as const) host.emit(signal, signal);
    expect(await result).toEqual({ exitCode: 7, lost: undefined, isStuck: false });
    const warning = "warning: the command could not be sent a signal: EPERM\n";
    expect([out(), err()]).toEqual(["ready\ndone\n", warning.repeat(2)]);
  });

  it("that cannot be started at all is another matter", async () => {
    const { result, err } = start(["/no/such/program"]);
    await expect(result).rejects.toMatchObject({ code: "ENOENT", syscall: "spawn /no/such/program" });
    expect(err()).toBe("");
  });

  it.skipIf(!isRoot)("is what the system says of the program of another user", () => {
    const program = `
      import { spawn } from "node:child_process";
      const child = spawn("setpriv", ["--reuid", "65534", "--clear-groups", "sleep", "600"]);
      child.on("error", (error) => { console.log(error.code, error.syscall); process.exit(); });
      setInterval(() => child.kill("SIGTERM"), 100);`;
    const words = [...withoutKill, process.execPath, "--input-type=module", "-e", program];
    expect(spawnSync("setpriv", words, { encoding: "utf8" }).stdout).toBe("EPERM kill\n");
  });
});

describe("a failure", () => {
  it("of ours on the way to the command is not taken for one of the command", async () => {
    const { result } = start(["true"], process, AbortSignal.abort(new Error("a signal came")));
    const error: unknown = await result.catch((thrown: unknown) => thrown);
    expect([(error as Error).message, isStartFailure(error)]).toEqual(["a signal came", false]);
  });

  it.each<[string, () => readonly string[]]>([
    ["is not there", () => ["no-such-program"]],
    ["is a folder", () => [temporaryFolder()]],
    ["gets more words than the system takes", () => [process.execPath, "x".repeat(10_000_000)]],
  ])("is one of the command where it %s", async (_what, command) => {
    const error: unknown = await start(command()).result.catch((thrown: unknown) => thrown);
    expect(isStartFailure(error)).toBe(true);
  });
});
