import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { hostname, uptime } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { System } from "../../../src/platform.js";
import {
  type Attempt,
  type Clocks,
  decideTakeover,
  isLockOver,
  LockFiles,
  type Observation,
} from "../../../src/store/leases/file-leases.js";
import {
  checkLiveness,
  type LockRecord,
  parseLeaseOutcome,
  parseLockRecord,
  processStart,
  thisProcess,
  wasReused,
} from "../../../src/store/leases/lock-owner.js";
import { ON_LINUX, ON_WINDOWS } from "../../helpers/systems.js";
import { onSystem } from "../../platform/support.js";
import { folder } from "../stores.js";

const NAME = "a".repeat(40);

let count = 0;
const newRecord = (): LockRecord => {
  const id = (++count).toString(16).padStart(12, "0");
  return { id, holder: thisProcess(), at: Date.now(), deadline: 1e15, duration: 60_000, extend: false };
};

function open() {
  const path = join(folder(), "claims");
  const lockFiles = new LockFiles(path);
  return {
    lockFiles,
    path,
    files: () => readdirSync(path).sort(),
    /** Takes an attempt as a process does that has just looked. */
    take(attempt: number): Attempt | undefined {
      const made = newRecord();
      const one = { name: NAME, number: attempt, id: made.id };
      return lockFiles.take(one, made, lockFiles.latest(NAME, attempt)) ? one : undefined;
    },
  };
}

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("it should have been had");
  return value;
}

describe("a lock file", () => {
  it("is had by one", () => {
    const { take, files } = open();
    expect(take(1)).toBeDefined();
    expect(take(1)).toBeUndefined();
    expect(files()).toEqual([`${NAME}.1.claim`]);
  });

  it("is not had by a number whose attempt is over", () => {
    const { lockFiles, take, files } = open();
    for (const attempt of [1, 2, 3]) expect(take(attempt)).toBeDefined();
    expect(files()).toEqual([`${NAME}.2.claim`, `${NAME}.3.claim`]);
    const late = newRecord();
    expect(lockFiles.take({ name: NAME, number: 1, id: late.id }, late, undefined)).toBe(false);
    expect(files()).toEqual([`${NAME}.2.claim`, `${NAME}.3.claim`]);
  });

  it("is not had on the strength of an attempt that has given its number to another", () => {
    const { lockFiles, take } = open();
    const first = must(take(1));
    const judged = lockFiles.latest(NAME);
    lockFiles.forget(first);
    const second = must(take(1));
    const late = newRecord();
    expect(lockFiles.take({ name: NAME, number: 2, id: late.id }, late, judged)).toBe(false);
    expect(lockFiles.isNewest(second)).toBe(true);
    expect(lockFiles.isNewest(first)).toBe(false);
  });

  it("is not had on the strength of an attempt that is gone", () => {
    const { lockFiles, take } = open();
    const first = must(take(1));
    const judged = lockFiles.latest(NAME);
    lockFiles.forget(first);
    const late = newRecord();
    expect(lockFiles.take({ name: NAME, number: 2, id: late.id }, late, judged)).toBe(false);
    expect(lockFiles.latest(NAME)).toBeUndefined();
  });

  it("is not had on the strength of an attempt that was marked in the meantime", () => {
    const { lockFiles, take } = open();
    const first = must(take(1));
    for (const mark of [() => lockFiles.commit(first), () => lockFiles.finish(first, { at: 1, failure: undefined })]) {
      const judged = lockFiles.latest(NAME);
      mark();
      const late = newRecord();
      expect(lockFiles.take({ name: NAME, number: 2, id: late.id }, late, judged)).toBe(false);
      expect(lockFiles.isNewest(first)).toBe(true);
    }
  });

  it("is removed after all marks, and from the oldest on: what stays after a crash is at worst waited for", async () => {
    const removed: string[] = [];
    vi.doMock("node:fs", async (original) => {
      const { spiedFs } = await import("../../helpers/spied-fs.js");
      return spiedFs(await original(), (name, [path]) => {
        if (name === "rmSync" && !String(path).endsWith(".tmp")) removed.push(String(path));
      });
    });
    vi.resetModules();
    onTestFinished(() => {
      vi.doUnmock("node:fs");
      vi.resetModules();
    });
    const fresh = await import("../../../src/store/leases/file-leases.js");
    const lockFiles = new fresh.LockFiles(join(folder(), "claims"));
    const attempts: Attempt[] = [];
    for (let number = 1; number <= 10; number++) {
      const made = newRecord();
      const attempt = { name: NAME, number, id: made.id };
      expect(lockFiles.take(attempt, made, lockFiles.latest(NAME))).toBe(true);
      attempts.push(attempt);
    }
    const [ninth, tenth] = attempts.slice(-2).map(must);
    lockFiles.commit(must(ninth));
    lockFiles.commit(must(tenth));
    removed.length = 0;
    expect(lockFiles.forget(must(tenth))).toBe(true);
    const names = removed.map((path) => path.slice(path.indexOf(NAME) + NAME.length + 1).replace(/\.[0-9a-f]{12}/, ""));
    expect(names.slice(0, 2).sort()).toEqual(["10.sent", "9.sent"]);
    expect(names.slice(2)).toEqual(["9.claim", "10.claim"]);
  });

  it("is marked by a file without content, for which a full disk has room", () => {
    const { lockFiles, take, path } = open();
    const attempt = must(take(1));
    lockFiles.commit(attempt);
    expect(readFileSync(join(path, `${NAME}.1.${attempt.id}.sent`), "utf8")).toBe("");
  });

  it("leaves its followers alone when it is forgotten", () => {
    const { lockFiles, take, files } = open();
    const first = must(take(1));
    const second = must(take(2));
    lockFiles.commit(second);
    lockFiles.forget(first);
    expect(files()).toEqual([`${NAME}.2.${second.id}.sent`, `${NAME}.2.claim`].sort());
    expect(lockFiles.latest(NAME)).toMatchObject({ number: 2, committed: true, done: false });
  });

  it("takes what came before it along when it is forgotten", () => {
    const { lockFiles, take, files } = open();
    const first = must(take(1));
    lockFiles.finish(first, { at: 1, failure: undefined });
    const second = must(take(2));
    lockFiles.commit(second);
    expect(lockFiles.forget(second)).toBe(true);
    expect(files()).toEqual([]);
  });

  it("takes away its own marks only, where its number is another's by now", () => {
    const { lockFiles, take, files } = open();
    const first = must(take(1));
    lockFiles.forget(first);
    const second = must(take(1));
    lockFiles.commit(second);
    lockFiles.finish(first, { at: 1, failure: undefined });
    expect(lockFiles.latest(NAME)).toMatchObject({ committed: true, done: false });
    lockFiles.forget(first);
    lockFiles.rollback(first);
    expect(files()).toEqual([`${NAME}.1.${second.id}.sent`, `${NAME}.1.claim`].sort());
  });

  it("takes away its own marks too where its lock file is gone", () => {
    const { lockFiles, take, path, files } = open();
    const attempt = must(take(1));
    lockFiles.commit(attempt);
    rmSync(join(path, `${NAME}.1.claim`));
    expect(lockFiles.rollback(attempt)).toBe(true);
    expect(files()).toEqual([]);
  });

  it("takes away nothing where its lock file cannot be read, for it may be another's by now", () => {
    const { lockFiles, take, path, files } = open();
    const attempt = must(take(1));
    lockFiles.commit(attempt);
    writeFileSync(join(path, `${NAME}.1.claim`), "{");
    for (const how of ["forget", "rollback"] as const) expect(lockFiles[how](attempt)).toBe(false);
    expect(files()).toHaveLength(2);
  });

  it("does not show that it lives once another one has come after it", () => {
    const { lockFiles, take } = open();
    const first = must(take(1));
    expect(lockFiles.heartbeat(first)).toBe(true);
    must(take(2));
    expect(lockFiles.heartbeat(first)).toBe(false);
  });

  it("reports what can be read of its end", () => {
    const { lockFiles, take, path } = open();
    const attempt = must(take(1));
    const done = join(path, `${NAME}.1.${attempt.id}.done`);
    expect(lockFiles.ending(attempt)).toBeUndefined();
    for (const [text, ending] of [
      ["", undefined],
      ["7", undefined],
      ['{"at":"now"}', undefined],
      ['{"at":1}', { at: 1, failure: undefined }],
      ['{"at":1,"failure":"no"}', { at: 1, failure: undefined }],
      ['{"at":1,"failure":{"code":"x"}}', { at: 1, failure: undefined }],
    ] as const) {
      writeFileSync(done, text, { mode: 0o600 });
      expect(lockFiles.ending(attempt)).toEqual(ending);
      expect(lockFiles.latest(NAME)?.done).toBe(true);
    }
    const failure = { code: "timeout", class: "unavailable", message: "late", retryable: true } as const;
    lockFiles.finish(attempt, { at: 2, failure });
    expect(lockFiles.ending(attempt)).toEqual({ at: 2, failure });
  });

  it("makes no folder before there is one", () => {
    const { lockFiles, path } = open();
    expect(lockFiles.latest(NAME)).toBeUndefined();
    expect(existsSync(path)).toBe(false);
  });
});

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
    return checkLiveness({ ...ME, pid, started: String(started) });
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
    expect(checkLiveness({ ...ME, ...over })).toBe(state);
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
  const { system } = await import("../../../src/platform.js");
  Object.assign(system, { name: "linux" });
  const owner = await import("../../../src/store/leases/lock-owner.js");
  expect(owner.checkLiveness({ ...owner.thisProcess(), pid: 42, started: "777" })).toBe(expected);
  expect(owner.checkLiveness({ ...owner.thisProcess(), pid: 42, started: "778" })).toBe("dead");
});

describe("this process", () => {
  async function elsewhere(other: Partial<System>) {
    vi.resetModules();
    const { system } = await import("../../../src/platform.js");
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

const SIGHTS: Observation[] = [true, false].flatMap((done) =>
  (["alive", "dead", "unknown"] as const).flatMap((owner) =>
    [true, false].flatMap((sent) => [true, false].map((isExpired) => ({ done, owner, sent, isExpired }))),
  ),
);

describe("a lease of another process", () => {
  const fits = (cell: string, value: string | boolean) =>
    ["any", value === true ? "yes" : value === false ? "no" : value].includes(cell.trim());
  const seen: Observation[] = [];

  it.each([
    //done  owner    sent   expired decision
    ["yes", "any    ", "any", "any", "released"],
    ["no ", "dead   ", "any", "any", "died"],
    ["no ", "alive  ", "yes", "any", "wait"],
    ["no ", "alive  ", "no ", "no ", "wait"],
    ["no ", "alive  ", "no ", "yes", "expired"],
    ["no ", "unknown", "any", "no ", "wait"],
    ["no ", "unknown", "any", "yes", "expired"],
  ])("with done %s, owner %s, sent %s and expired %s: %s", (done, owner, sent, expired, decision) => {
    const sights = SIGHTS.filter((one) => {
      return fits(done, one.done) && fits(owner, one.owner) && fits(sent, one.sent) && fits(expired, one.isExpired);
    });
    expect(sights).not.toEqual([]);
    for (const one of sights) expect({ ...one, decision: decideTakeover(one) }).toEqual({ ...one, decision });
    seen.push(...sights);
  });

  it("is decided for every combination by one row", () => {
    expect(seen).toHaveLength(SIGHTS.length);
    expect(new Set(seen)).toEqual(new Set(SIGHTS));
  });
});

describe("the expiry of a lock", () => {
  const holder = { pid: 1, boot: "this", space: "", started: "" };
  // It started at 5,000 by the clock of its boot and at 1,000,000 by the epoch, and has 1,000 ms.
  const record = { id: "a", holder, at: 1_000_000, deadline: 6_000, duration: 1_000, extend: false };
  const clocks: Clocks = { boot: "this", now: 5_000, epoch: 1_000_000, heartbeat: undefined, watched: 0 };

  it.each<[string, { extend?: true; sent?: true }, Partial<Clocks>, boolean]>([
    ["this boot", {}, { now: 5_999 }, false],
    ["this boot", {}, { now: 6_000 }, true],
    ["this boot", { sent: true }, { now: 7_999 }, false],
    ["this boot", { sent: true }, { now: 8_000 }, true],
    ["this boot, with heartbeats", { extend: true }, { now: 1e9 }, false],
    ["this boot, after the machine slept", {}, { epoch: 1e12 }, false],
    ["this process", {}, { watched: 1_000 }, false],
    ["this process", {}, { watched: 1_001 }, true],
    ["this process", { sent: true }, { watched: 3_000 }, false],
    ["this process", { sent: true }, { watched: 3_001 }, true],
    ["this process, with heartbeats", { extend: true }, { watched: 1_001 }, true],
    ["this process, of another boot", {}, { boot: "other", watched: 1_001 }, true],
    ["the epoch, of another boot", {}, { boot: "other", epoch: 1_121_000 }, false],
    ["the epoch, of another boot", {}, { boot: "other", epoch: 1_121_001 }, true],
    ["the epoch, of another boot", { sent: true }, { boot: "other", epoch: 1_123_000 }, false],
    ["the epoch, of another boot", { sent: true }, { boot: "other", epoch: 1_123_001 }, true],
    ["the epoch, since a heartbeat", {}, { boot: "other", epoch: 1_121_500, heartbeat: 1_000_500 }, false],
    ["the epoch, since a heartbeat", {}, { boot: "other", epoch: 1_121_501, heartbeat: 1_000_500 }, true],
    ["a clock of another boot, far ahead", {}, { boot: "other", now: 1e9 }, false],
  ])("by %s (%o, %o) it has expired: %s", (_clock, { extend = false, sent = false }, shown, isExpired) => {
    expect(isLockOver({ ...record, extend }, sent, { ...clocks, ...shown })).toBe(isExpired);
  });
});
