import { readFileSync, readlinkSync } from "node:fs";
import { hostname, uptime } from "node:os";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { System } from "../../../src/platform/system.js";
import {
  type LockRecord,
  livenessOf,
  parseLeaseOutcome,
  parseLockRecord,
  processStart,
  thisProcess,
  wasReused,
} from "../../../src/store/leases/lock-owner.js";
import { ON_LINUX, ON_WINDOWS } from "../../helpers/systems.js";
import { onSystem } from "../../platform/support.js";

/** It is looked at once, and must be that of the true system. */
const ME = thisProcess();
const NO_PID = 2_000_000_000;
const START = Date.UTC(2026, 10, 23, 6, 56, 51);
/** The answer of `ps` about a process that started then. */
const psOf = (started: number) => `${new Date(started).toUTCString().replace(" GMT", "")}\n`;

describe("the start of a process", () => {
  it.each([
    ["darwin", "Mon Nov 23 06:56:51 2026    \n", "env", "LC_ALL=C TZ=UTC ps -o lstart= -p 42"],
    // (Get-Date "2026-11-23 06:56:51Z").ToFileTimeUtc()
    [
      "win32",
      "134398906110000000\r\n",
      "powershell.exe",
      "-NoProfile -NonInteractive -Command (Get-Process -Id 42).StartTime.ToFileTimeUtc()",
    ],
  ] as const)("is read from the answer of the system: %s", (name, answer, program, words) => {
    const run: System["run"] = (asked, args) => {
      expect([asked, args.join(" ")]).toEqual([program, words]);
      return answer;
    };
    onSystem({ name, run });
    expect(processStart(42)).toBe(START);
  });

  it.each([
    ["no answer", undefined],
    ["an empty answer", "\n"],
    ["another answer", "no such process"],
  ])("is not known by %s", (_what, answer) => {
    for (const name of ["darwin", "win32"] as const) {
      onSystem({ name, run: () => answer });
      expect(processStart(42)).toBeUndefined();
    }
  });
});

describe.skipIf(ON_WINDOWS)("a holder where there is no table of processes", () => {
  /** The state of a process of this system whose start is some milliseconds after that of the machine. */
  function stateOf(afterBoot: number, found?: number, pid = process.pid) {
    const started = Math.round(Date.now() - uptime() * 1000) + afterBoot;
    onSystem({ name: "darwin", run: () => (found === undefined ? undefined : psOf(started + found)) });
    return livenessOf({ ...ME, pid, started: String(started) });
  }

  it.each([
    ["it began after the machine did", 0, undefined, "alive"],
    ["it did by a clock that was set by less than two minutes", -115_000, undefined, "alive"],
    ["it began before the machine did", -125_000, undefined, "dead"],
    ["the system says so too, as after a larger step of the clock", -3_600_000, 0, "alive"],
    ["the system has nearly the same start", -3_600_000, 9000, "alive"],
    ["the system has a later start", -3_600_000, 11_000, "dead"],
    ["the system has an earlier start", -3_600_000, -11_000, "dead"],
  ] as const)("is judged by its start where its number is in use: %s", (_what, afterBoot, found, state) => {
    expect(stateOf(afterBoot, found)).toBe(state);
  });

  it("is dead where its number is free", () => {
    expect(stateOf(0, undefined, NO_PID)).toBe("dead");
    expect(stateOf(-3_600_000, 0, NO_PID)).toBe("dead");
  });

  it.each([
    [0, false],
    [10_000, false],
    [11_000, true],
  ])("has given its number to another one where the system has a start %d ms later: %s", (later, expected) => {
    const holder = { ...ME, started: String(START) };
    onSystem({ name: "darwin", run: () => psOf(START + later) });
    expect(wasReused(holder)).toBe(expected);
    onSystem({ name: "darwin", run: () => undefined });
    expect(wasReused(holder)).toBe(false);
    onSystem({ name: "android", run: () => psOf(START + later) });
    expect(wasReused(holder)).toBe(false);
  });
});

describe.skipIf(!ON_LINUX)("a holder in the table of processes", () => {
  it.each([
    ["this process", {}, "alive"],
    ["an earlier one with its number", { started: "1" }, "dead"],
    ["one whose number is free", { pid: NO_PID }, "dead"],
    ["one of another boot", { boot: "other" }, "unknown"],
    ["one of another namespace", { space: "pid:[1]" }, "unknown"],
  ])("is judged by it: %s", (_who, over, state) => {
    expect(livenessOf({ ...ME, ...over })).toBe(state);
  });
});

afterEach(() => {
  vi.doUnmock("node:fs");
  vi.resetModules();
});

it.each([
  ["runs", "S", "alive"],
  ["has a name with brackets", "R", "alive"],
  ["has ended, and was not waited for", "Z", "dead"],
  ["is gone at this moment", "X", "dead"],
])("a holder in the table of processes that %s is judged by its state", async (what, state, expected) => {
  const name = what.includes("brackets") ? "(a) Z 1 (b" : "(a";
  const stat = `42 ${name}) ${state} ${Array.from({ length: 18 }, (_, nth) => nth).join(" ")} 777 0 0\n`;
  vi.doMock("node:fs", () => ({ readFileSync: () => stat, readlinkSync: () => "pid:[1]" }));
  vi.resetModules();
  const { system } = await import("../../../src/platform/system.js");
  Object.assign(system, { name: "linux" });
  const owner = await import("../../../src/store/leases/lock-owner.js");
  expect(owner.livenessOf({ ...owner.thisProcess(), pid: 42, started: "777" })).toBe(expected);
  expect(owner.livenessOf({ ...owner.thisProcess(), pid: 42, started: "778" })).toBe("dead");
});

describe("this process", () => {
  async function elsewhere(other: Partial<System>) {
    vi.resetModules();
    const { system } = await import("../../../src/platform/system.js");
    Object.assign(system, other);
    return (await import("../../../src/store/leases/lock-owner.js")).thisProcess();
  }

  it.runIf(ON_LINUX)("has the boot, the namespaces and the start that its table shows, on Android too", async () => {
    const stat = readFileSync("/proc/self/stat", "utf8");
    const shown = {
      pid: process.pid,
      boot: `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${readlinkSync("/proc/self/ns/time")}`,
      space: readlinkSync("/proc/self/ns/pid"),
      started: stat.slice(stat.lastIndexOf(")")).split(" ")[20],
    };
    for (const name of ["linux", "android"] as const) expect(await elsewhere({ name })).toEqual(shown);
  });

  const session: System["run"] = (program, args) =>
    `${program} ${args.join(" ")}` === "sysctl -n kern.bootsessionuuid" ? "ABC-1\n" : undefined;

  it.each<[string, Partial<System>, string]>([
    ["a Mac", { name: "darwin", run: session }, "session ABC-1"],
    ["a Mac without an answer", { name: "darwin", run: () => undefined }, `host ${hostname()}`],
    // Under wine it sees the /proc of another system.
    ["Windows", { name: "win32", run: session }, `host ${hostname()}`],
    ["another system", { name: "freebsd", run: session }, `host ${hostname()}`],
  ])("has its own start on %s, and no namespace", async (_on, other, boot) => {
    const { started, ...rest } = await elsewhere(other);
    expect(rest).toEqual({ pid: process.pid, boot, space: "" });
    expect(Math.abs(Number(started) - (Date.now() - process.uptime() * 1000))).toBeLessThan(60_000);
  });

  it("has them too on a Linux whose table is hidden", async () => {
    const hidden = () => {
      throw Object.assign(new Error("none"), { code: "ENOENT" });
    };
    vi.doMock("node:fs", () => ({ readFileSync: hidden, readlinkSync: hidden }));
    const { started, ...rest } = await elsewhere({ name: "linux" });
    expect(rest).toEqual({ pid: process.pid, boot: `host ${hostname()}`, space: "" });
    expect(Number(started)).toBeGreaterThan(1_600_000_000_000);
  });
});

describe("the record of a lock", () => {
  const holder = { pid: 1, boot: "b", space: "", started: "s" };
  const record: LockRecord = { id: "i", holder, at: 1, deadline: 2, duration: 3, extend: false };

  it("is read as it was written", () => {
    expect(parseLockRecord({ ...record, more: "x" })).toEqual(record);
  });

  it.each<[string, object | undefined]>([
    ["nothing", undefined],
    ...["id", "at", "deadline", "duration", "extend", "holder"].map((name): [string, object] => [
      `a record without ${name}`,
      { ...record, [name]: undefined },
    ]),
    ["an id that is no text", { ...record, id: 5 }],
    ["no end", { ...record, deadline: "2" }],
    ["a word for a flag", { ...record, extend: "yes" }],
    ["a holder that is a list", { ...record, holder: [] }],
    ["a holder without a number", { ...record, holder: { ...holder, pid: "1" } }],
    ["a holder with half a number", { ...record, holder: { ...holder, pid: 1.5 } }],
    ["a holder with the number 0", { ...record, holder: { ...holder, pid: 0 } }],
    ...["boot", "space", "started"].map((name): [string, object] => [
      `a holder without ${name}`,
      { ...record, holder: { ...holder, [name]: 5 } },
    ]),
  ])("is not read of %s", (_what, value) => {
    expect(parseLockRecord(value as Record<string, unknown> | undefined)).toBeUndefined();
  });
});

describe("the recorded end of an attempt", () => {
  const failure = { code: "timeout", class: "unavailable", message: "m" };

  it.each<[string, object | undefined, object | undefined]>([
    ["nothing", undefined, undefined],
    ["no time", { failure }, undefined],
    ["a time in words", { at: "1", failure }, undefined],
    ["a time", { at: 1 }, { at: 1, failure: undefined }],
    ["a failure", { at: 1, failure }, { at: 1, failure }],
    [
      "a failure with a remedy",
      { at: 1, failure: { ...failure, remedy: { action: "wait" } } },
      { at: 1, failure: { ...failure, remedy: { action: "wait" } } },
    ],
    ["a remedy that is a text", { at: 1, failure: { ...failure, remedy: "wait" } }, { at: 1 }],
    ["a remedy without an action", { at: 1, failure: { ...failure, remedy: {} } }, { at: 1 }],
    ["a failure that is a text", { at: 1, failure: "timeout" }, { at: 1 }],
    ...["code", "class", "message"].map((name): [string, object, object] => [
      `a failure whose ${name} is no text`,
      { at: 1, failure: { ...failure, [name]: 5 } },
      { at: 1 },
    ]),
  ])("with %s", (_what, value, expected) => {
    expect(parseLeaseOutcome(value as Record<string, unknown> | undefined)).toEqual(expected);
  });
});
