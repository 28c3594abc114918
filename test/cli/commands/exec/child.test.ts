import { EventEmitter } from "node:events";
import { describe, expect, it, vi } from "vitest";
import { forwardSignals } from "../../../../src/cli/commands/exec/child.js";
import { processSignals } from "../../../../src/cli/runtime/signals.js";
import { onSystem } from "../../../platform/support.js";

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
