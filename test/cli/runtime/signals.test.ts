import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { expect, it, vi } from "vitest";
import { createPendingSaves } from "../../../src/cli/runtime/context.js";
import { listenForSignals } from "../../../src/cli/runtime/signals.js";
import { memoryStore } from "../../../src/store/memory.js";
import { onSystem } from "../../platform/support.js";

/** A process that lives on after its end, so that its end can be observed. */
function setup() {
  const exits: number[] = [];
  const reported: string[] = [];
  const host = Object.assign(new EventEmitter(), {
    stdin: new PassThrough(),
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    env: {},
    exit: (code: number) => exits.push(code) as never,
  });
  const saves = createPendingSaves();
  const interruption = listenForSignals(host, { pendingSaves: saves, onDelay: () => reported.push("later") });
  return {
    exits,
    reported,
    host,
    interruption,
    /** Begins a refresh. @returns what ends it */
    async refreshing() {
      let save = () => {};
      const saved = new Promise<void>((resolve) => {
        save = resolve;
      });
      let isCommitted = () => {};
      const committed = new Promise<void>((resolve) => {
        isCommitted = resolve;
      });
      const work = saves.watch(memoryStore()).lease(
        "refresh",
        async (lease) => {
          await lease.commit();
          isCommitted();
          await saved;
        },
        { durationMs: 60_000 },
      );
      await committed;
      return async () => {
        save();
        await work;
        await saves.settled();
      };
    },
  };
}

it.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
])("%s ends the work in hand, and the exit code is %i; one more ends the process at once", (name, code) => {
  const { host, interruption, exits, reported } = setup();
  host.emit(name);
  expect([interruption.signal.aborted, interruption.exitCode(), exits]).toEqual([true, code, []]);
  expect(interruption.signal.reason).toMatchObject({ class: "aborted", message: `ended by ${name}` });
  host.emit("SIGTERM");
  expect([exits, reported]).toEqual([[code], []]);
});

it("a second signal waits for the refresh that is under way, and the first one gives the exit code", async () => {
  const { host, exits, reported, refreshing } = setup();
  const save = await refreshing();
  for (const name of ["SIGHUP", "SIGINT", "SIGINT", "SIGTERM"]) host.emit(name);
  await new Promise((resolve) => setImmediate(resolve));
  expect([exits, reported]).toEqual([[], ["later"]]);
  await save();
  expect([exits, reported]).toEqual([[129], ["later"]]);
});

it("after the end of the run one signal ends the process, once the refresh that is under way is saved", async () => {
  const { host, interruption, exits, reported, refreshing } = setup();
  const save = await refreshing();
  interruption.stop();
  host.emit("SIGINT");
  expect([exits, reported]).toEqual([[], ["later"]]);
  await save();
  expect(exits).toEqual([130]);
});

it("a failure without a handler does not interrupt a refresh either", async () => {
  const { interruption, exits, refreshing } = setup();
  const save = await refreshing();
  interruption.leave(1);
  expect(exits).toEqual([]);
  await save();
  expect(exits).toEqual([1]);
});

it("while the process is acquired no signal is heard, and the closing of the terminal has its effect again", () => {
  const { host, interruption, exits } = setup();
  const own = interruption.acquireProcess();
  for (const name of ["SIGINT", "SIGTERM", "SIGINT"]) host.emit(name);
  expect([interruption.signal.aborted, exits, host.listenerCount("SIGHUP")]).toEqual([false, [], 0]);
  own.release();
  own.release();
  expect(host.listenerCount("SIGHUP")).toBe(1);
  host.emit("SIGHUP");
  expect(interruption.exitCode()).toBe(129);
});

it("a reader that has stopped reading delays the end for five seconds, and not beyond the end of the run", () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const stuck = setup();
    stuck.host.emit("SIGTERM");
    vi.advanceTimersByTime(5000);
    expect(stuck.exits).toEqual([]);
    stuck.host.stdout.write(Buffer.alloc(1_000_000));
    vi.advanceTimersByTime(4999);
    expect(stuck.exits).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(stuck.exits).toEqual([143]);
    const ended = setup();
    ended.host.stdout.write(Buffer.alloc(1_000_000));
    ended.host.emit("SIGINT");
    ended.interruption.stop();
    vi.advanceTimersByTime(20_000);
    expect(ended.exits).toEqual([]);
  } finally {
    vi.useRealTimers();
  }
});

it("the error of what was ended names the signal", () => {
  const { host, interruption } = setup();
  host.emit("SIGHUP");
  expect(interruption.signal.reason).toMatchObject({ code: "aborted", class: "aborted", message: "ended by SIGHUP" });
});

it("the holder of the process gets its streams and its environment, and may end it", () => {
  const { host, interruption, exits } = setup();
  const own = interruption.acquireProcess();
  expect([own.stdin, own.stdout, own.stderr, own.env]).toEqual([host.stdin, host.stdout, host.stderr, host.env]);
  own.exit(5);
  expect(exits).toEqual([5]);
});

it("hears Ctrl-Break of a console of Windows, and of no other system", () => {
  onSystem({ name: "win32" });
  const { host, interruption } = setup();
  host.emit("SIGBREAK");
  expect([interruption.signal.aborted, interruption.exitCode()]).toEqual([true, 130]);
  onSystem({ name: "linux" });
  expect(setup().host.listenerCount("SIGBREAK")).toBe(0);
});
