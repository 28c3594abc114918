import { EventEmitter } from "node:events";
import { describe, expect, it, vi } from "vitest";
import { forwardSignals, isStartFailure, reportStartFailure } from "../../../../src/cli/commands/exec/child.js";
import { processSignals } from "../../../../src/cli/runtime/signals.js";
import { onSystem } from "../../../platform/support.js";
import { memoryContext } from "../request/support.js";

/** What is passed on to a child, and what ends the wait for readers. */
function forwarding(onTerminal: boolean) {
  const host = new EventEmitter();
  const passOn = vi.fn();
  const onTerminate = vi.fn();
  const release = forwardSignals(processSignals(host as never), onTerminal, { passOn, onTerminate });
  return { host, passOn, onTerminate, release };
}

describe("a console of Windows", () => {
  it.each(["SIGINT", "SIGBREAK", "SIGHUP"])("has sent %s to the child: passing it on would kill that", (signal) => {
    onSystem({ name: "win32" });
    const { host, passOn, onTerminate, release } = forwarding(false);
    host.emit(signal);
    expect(passOn).not.toHaveBeenCalled();
    expect(onTerminate).toHaveBeenCalledTimes(1);
    release();
    expect(host.eventNames()).toEqual([]);
  });
});

describe("another system", () => {
  it("passes a signal on, unless the terminal has sent it", () => {
    onSystem({ name: "linux" });
    const without = forwarding(false);
    without.host.emit("SIGINT");
    expect(without.passOn).toHaveBeenCalledWith("SIGINT");
    const { host, passOn } = forwarding(true);
    host.emit("SIGINT");
    expect(passOn).not.toHaveBeenCalled();
    host.emit("SIGTERM");
    expect(passOn).toHaveBeenCalledWith("SIGTERM");
  });
});

const KEYBOARD = ["SIGINT", "SIGQUIT"];
const TERMINATING = ["SIGTERM", "SIGHUP"];
const USER = ["SIGUSR1", "SIGUSR2"];
const JOB = ["SIGTSTP", "SIGCONT", "SIGWINCH"];

describe("the signals that reach a command", () => {
  it.each<["linux" | "win32", boolean, string[], string[], string[]]>([
    ["linux", false, [...KEYBOARD, ...TERMINATING, ...USER, ...JOB], [...KEYBOARD, ...TERMINATING], []],
    ["linux", true, [...TERMINATING, ...USER], [...KEYBOARD, ...TERMINATING], JOB],
    ["win32", false, [], ["SIGINT", "SIGBREAK", "SIGHUP", "SIGTERM"], ["SIGQUIT", ...USER, ...JOB]],
    ["win32", true, [], ["SIGINT", "SIGBREAK", "SIGHUP", "SIGTERM"], ["SIGQUIT", ...USER, ...JOB]],
  ])("on %s, on a terminal: %s", (name, onTerminal, passed, terminating, unheard) => {
    onSystem({ name });
    const kill = vi.spyOn(process, "kill").mockImplementation(() => true);
    const { host, passOn, onTerminate } = forwarding(onTerminal);
    for (const signal of [...KEYBOARD, ...TERMINATING, ...USER, ...JOB, "SIGBREAK"]) {
      const before = onTerminate.mock.calls.length;
      host.emit(signal);
      expect([signal, onTerminate.mock.calls.length - before]).toEqual([signal, terminating.includes(signal) ? 1 : 0]);
    }
    expect(passOn.mock.calls.flat().sort()).toEqual([...passed].sort());
    for (const signal of unheard) expect(host.listenerCount(signal)).toBe(0);
    expect(kill.mock.calls).toEqual(passed.includes("SIGTSTP") ? [[process.pid, "SIGSTOP"]] : []);
    kill.mockRestore();
  });
});

describe("a command that does not start", () => {
  it.each([
    ["ENOENT", 127],
    ["ENOTDIR", 127],
    ["EACCES", 126],
    ["EPERM", 126],
    ["ENOEXEC", 126],
    ["E2BIG", 125],
    [undefined, 125],
  ])("with %s ends with %i, and says why", async (code, exitCode) => {
    onSystem({ name: "linux" });
    const cause = Object.assign(new Error("spawn"), { code });
    const context = memoryContext();
    expect(await reportStartFailure("a \u001b", cause, context)).toBe(exitCode);
    expect(context.io.err()).toMatchSnapshot();
    for (const env of [{ AGENTAUTH_ERRORS: "json" }, { AGENTAUTH_AGENT: "1" }]) {
      const json = memoryContext({ env });
      await reportStartFailure("a", cause, json);
      expect(JSON.parse(json.io.err()).error).toMatchObject({ code: "usage", exit_code: exitCode });
    }
  });

  it.each<[unknown, boolean]>([
    [Object.assign(new Error("x"), { syscall: "spawn ls" }), true],
    [Object.assign(new Error("x"), { syscall: "spawn" }), true],
    [Object.assign(new Error("x"), { syscall: "spawning" }), false],
    [Object.assign(new Error("x"), { syscall: "kill spawn" }), false],
    [new Error("x"), false],
    [{ syscall: "spawn" }, false],
  ])("is told from another failure (%#)", (error, expected) => {
    expect(isStartFailure(error)).toBe(expected);
  });
});
