import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import type { Lease } from "../../../src/oauth/model/lease.js";
import { LockFiles } from "../../../src/store/leases/file-leases.js";
import { bootClock, type LockRecord, thisProcess } from "../../../src/store/leases/lock-owner.js";
import { pendingError } from "../../helpers/captured.js";
import { ON_WINDOWS } from "../../helpers/systems.js";
import { onSystem } from "../../platform/support.js";
import { folder } from "../stores.js";
import { leaseFilesOf, leasesOf, lockFileOf, NAME, pause } from "./support.js";

const onUnix = describe.skipIf(ON_WINDOWS);

const keyOf = (name: string) => createHash("sha256").update(name).digest("hex").slice(0, 40);

function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("it should be there");
  return value;
}

it("a holder that another one has taken over from cannot begin, though it has time left by its own clock", async () => {
  const home = folder();
  await leasesOf(home).run(
    NAME,
    async (lease) => {
      const [name = ""] = leaseFilesOf(home);
      const lockFiles = new LockFiles(join(home, "claims"));
      const key = name.split(".")[0] ?? "";
      const theirs: LockRecord = { ...must(lockFiles.latest(key)?.record), id: "0".repeat(12) };
      expect(lockFiles.take({ name: key, number: 2, id: theirs.id }, theirs, lockFiles.latest(key))).toBe(true);
      expect(lease.left()).toBeGreaterThan(0);
      expect(await pendingError(lease.commit())).toMatchObject({ code: "lease_lost" });
    },
    { durationMs: 60_000 },
  );
});

describe("a holder that has shown that it lives", () => {
  const extended = { durationMs: 60_000, extend: true };

  /** Work under a lease, in whose time nothing happens but what it says. */
  async function atWork(work: (lease: Lease, lockFile: string) => void, options = extended) {
    vi.useFakeTimers({ toFake: ["Date", "hrtime", "setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const home = folder();
    await leasesOf(home).run(NAME, async (lease) => work(lease, lockFileOf(home)), options);
  }

  it("does so five times in the time of its lease, which begins again", async () => {
    await atWork((lease, lockFile) => {
      const begun = Date.now();
      for (const nth of [1, 2, 3, 4, 5, 6]) {
        vi.advanceTimersByTime(11_999);
        expect(lease.left()).toBe(60_000 - 11_999);
        vi.advanceTimersByTime(1);
        expect(lease.left()).toBe(60_000);
        expect(Math.round(statSync(lockFile).mtimeMs)).toBe(begun + nth * 12_000);
      }
    });
  });

  it("does not do so again once its lock file was gone", async () => {
    await atWork((lease, lockFile) => {
      renameSync(lockFile, `${lockFile}.away`);
      vi.advanceTimersByTime(12_000);
      expect(lease.left()).toBe(48_000);
      renameSync(`${lockFile}.away`, lockFile);
      vi.advanceTimersByTime(12_000);
      expect(lease.left()).toBe(36_000);
    });
  });

  it("does not do so for work of a known length", async () => {
    await atWork(
      (lease) => {
        vi.advanceTimersByTime(59_999);
        expect(lease.left()).toBe(1);
      },
      { ...extended, extend: false },
    );
  });

  it("does not continue with that when the work has ended", async () => {
    const home = folder();
    await leasesOf(home).run(NAME, async () => undefined, { durationMs: 50, extend: true });
    const old = new Date(Date.now() - 60_000);
    utimesSync(lockFileOf(home), old, old);
    await pause(100);
    expect(statSync(lockFileOf(home)).mtime).toEqual(old);
  });
});

it("a process that waits for a lease continues with the result of another one as soon as there is one", async () => {
  const home = folder();
  let result: string | undefined;
  let asked = 0;
  const onWait = vi.fn();
  const begun = Date.now();
  await leasesOf(home).run(
    NAME,
    async () => {
      const waiting = leasesOf(home).run<string>(NAME, async () => "worked", {
        durationMs: 60_000,
        onWait,
        until: async () => {
          if (++asked === 2) result = "theirs";
          return result;
        },
      });
      expect(await waiting).toBe("theirs");
    },
    { durationMs: 60_000 },
  );
  expect(asked).toBe(2);
  expect(onWait.mock.calls).toEqual([[{ pid: process.pid, at: expect.any(Number) }]]);
  expect(onWait.mock.calls[0]?.[0].at).toBeGreaterThanOrEqual(begun);
});

describe("the trace of a lease", () => {
  it("is nothing where the name was of use once and the work succeeded", async () => {
    const home = folder();
    const run = (work: (lease: Lease) => Promise<unknown>) =>
      leasesOf(home).run(NAME, work, { durationMs: 60_000, once: true });
    await expect(run(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(leaseFilesOf(home)).not.toEqual([]);
    await run((lease) => lease.commit());
    expect(leaseFilesOf(home)).toEqual([]);
  });

  it("is that of the attempt before where one was withdrawn", async () => {
    const home = folder();
    const failed = (code: string) => new AgentAuthError(code, "x", { class: "auth" });
    const leases = leasesOf(home);
    await expect(leases.run(NAME, () => Promise.reject(failed("one")), { durationMs: 60_000 })).rejects.toBeDefined();
    const withdrawn = leases.run(
      NAME,
      async (lease) => {
        lease.rollback();
        throw failed("two");
      },
      { durationMs: 60_000 },
    );
    expect(await pendingError(withdrawn)).toMatchObject({ code: "two" });
    const before = await leases.run(NAME, async (lease) => lease.previous, { durationMs: 60_000 });
    expect(before).toMatchObject({ ended: "released", failure: { code: "one" } });
  });

  it("reports to the next holder that work had begun which then threw", async () => {
    const leases = leasesOf(folder());
    const failing = leases.run(
      NAME,
      async (lease) => {
        await lease.commit();
        throw new Error("a bug");
      },
      { durationMs: 60_000 },
    );
    await expect(failing).rejects.toThrow("a bug");
    expect(await leases.run(NAME, async ({ previous }) => previous, { durationMs: 60_000 })).toMatchObject({
      ended: "released",
      committed: true,
      failure: undefined,
    });
  });

  it("contains neither the name nor anything that was done", async () => {
    const home = folder();
    await leasesOf(home).run("https://mcp.example secret-name", (lease) => lease.commit(), { durationMs: 60_000 });
    for (const name of leaseFilesOf(home)) {
      expect(name).toMatch(/^[0-9a-f]{40}\.1\.(claim|[0-9a-f]{12}\.(sent|done))$/);
      expect(readFileSync(join(home, "claims", name), "utf8")).not.toContain("secret-name");
    }
  });

  it("does not grow with the rounds, nor with old names", async () => {
    const home = folder();
    const leases = leasesOf(home);
    for (let nth = 0; nth < 1000; nth++) await leases.run(NAME, (lease) => lease.commit(), { durationMs: 60_000 });
    expect(leaseFilesOf(home).length).toBeLessThanOrEqual(6);
    for (let nth = 0; nth < 80; nth++)
      await leases.run(`other ${nth}`, (lease) => lease.commit(), { durationMs: 60_000 });
    const old = new Date(Date.now() - 48 * 3600 * 1000);
    const young = leaseFilesOf(home).filter((_, nth) => nth % 10 === 0);
    for (const name of leaseFilesOf(home)) if (!young.includes(name)) utimesSync(join(home, "claims", name), old, old);
    await leases.run("one more", (lease) => lease.commit(), { durationMs: 60_000 });
    expect(leaseFilesOf(home)).toEqual(expect.arrayContaining(young));
    expect(leaseFilesOf(home)).toHaveLength(young.length + 3);
  });
});

describe("lock files with unexpected content", () => {
  it.each([
    ["nothing", ""],
    ["half of a record", '{"id":"abc'],
    ["a list", "[]"],
    ["another version's", '{"id":"a","holder":{"pid":1},"duration":"long"}'],
    [
      "a record without an end",
      JSON.stringify({
        id: "a",
        holder: { pid: 1, boot: "", space: "", started: "" },
        extend: true,
        at: 0,
        deadline: 0,
      }),
    ],
    [
      "a record without a holder",
      JSON.stringify({
        ...{ id: "a", holder: { pid: 0, boot: "", space: "", started: "" } },
        extend: true,
        at: 0,
        deadline: 0,
        duration: 1e12,
      }),
    ],
  ])("are waited for no longer than one's own would be: %s", async (_what, text) => {
    const home = folder();
    const leases = leasesOf(home);
    await leases.run(NAME, async () => undefined, { durationMs: 60_000 });
    const lockFile = lockFileOf(home);
    for (const name of leaseFilesOf(home)) rmSync(join(home, "claims", name));
    writeFileSync(lockFile, text);
    const events: string[] = [];
    const run = leases.run(NAME, async ({ previous }) => previous?.ended, {
      durationMs: 300,
      onWait: () => events.push("waits"),
    });
    expect(await run).toBe("expired");
    expect(events).toEqual(["waits"]);
  });

  it("are passed over where they are folders or leftovers", async () => {
    const home = folder();
    const leases = leasesOf(home);
    await leases.run(NAME, async () => undefined, { durationMs: 60_000 });
    const lockFile = lockFileOf(home);
    for (const name of leaseFilesOf(home)) rmSync(join(home, "claims", name));
    mkdirSync(lockFile);
    writeFileSync(lockFile.replace(/\.1\.claim$/, ".abcdef123456.tmp"), "half");
    for (let nth = 0; nth < 4; nth++) {
      expect(await leases.run(NAME, async () => "done", { durationMs: 100 })).toBe("done");
    }
  });
});

onUnix("a folder of lock files that cannot be trusted or used", () => {
  const take = (home: string) => leasesOf(home).run(NAME, async () => "done", { durationMs: 100 });

  it("is refused where others can read it", async () => {
    const home = folder();
    mkdirSync(join(home, "claims"), { mode: 0o755 });
    expect(await pendingError(take(home))).toMatchObject({ class: "store", hint: `chmod 700 ${join(home, "claims")}` });
    expect(leaseFilesOf(home)).toEqual([]);
  });

  it("is refused where it is a symbolic link", async () => {
    const home = folder();
    await take(home);
    renameSync(join(home, "claims"), join(home, "elsewhere"));
    symlinkSync(join(home, "elsewhere"), join(home, "claims"));
    expect(await pendingError(take(home))).toMatchObject({ class: "store" });
  });

  it("is refused where it is a file", async () => {
    const home = folder();
    writeFileSync(join(home, "claims"), "");
    expect(await pendingError(take(home))).toMatchObject({ class: "store" });
  });
});

describe("the time that is left", () => {
  it("is over after the machine slept, whatever the clock that stood still says", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    await leasesOf(folder()).run(
      NAME,
      async (lease) => {
        expect(lease.left()).toBeGreaterThan(0);
        vi.setSystemTime(Date.now() + 60_001);
        expect(lease.left()).toBe(0);
        expect(await pendingError(lease.commit())).toMatchObject({ code: "lease_lost", class: "unavailable" });
      },
      { durationMs: 60_000 },
    );
  });

  it("grows no larger when the clock is set back", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    await leasesOf(folder()).run(
      NAME,
      async (lease) => {
        vi.setSystemTime(Date.now() - 3_600_000);
        expect(lease.left()).toBeLessThanOrEqual(60_000);
        await lease.commit();
      },
      { durationMs: 60_000 },
    );
  });
});

describe("a lock file of a process that may have sent a refresh, on a system without a table of processes", () => {
  /** A lock file that is past its time, held by a process that runs, whose start the system reports as `answer`. */
  function overdue(answer: string | undefined) {
    const home = folder();
    const run = vi.fn(() => answer);
    onSystem({ name: "darwin", run });
    const holder = { ...thisProcess(), pid: process.ppid, started: String(Date.now() - 1000) };
    const record = { id: "0".repeat(12), holder, at: Date.now(), deadline: bootClock(), duration: 1, extend: false };
    const files = new LockFiles(join(home, "claims"));
    const attempt = { name: keyOf(NAME), number: 1, id: record.id };
    expect(files.take(attempt, record, undefined)).toBe(true);
    files.commit(attempt);
    const take = () =>
      leasesOf(home).run(NAME, async ({ previous }) => previous?.ended, { durationMs: 1, patienceMs: 1500 });
    return { take, requested: run };
  }
  const startedAt = (ms: number) => new Date(ms).toUTCString().replace(" GMT", "");

  it("is taken over from where a later process has its number", async () => {
    expect(await overdue(startedAt(Date.now() + 60_000)).take()).toBe("died");
  });

  it.each([
    ["the process is the one that wrote it", startedAt(Date.now() - 1000)],
    ["the system does not tell", undefined],
  ])("is waited for where %s, and the system is asked once", async (_what, answer) => {
    const { take, requested } = overdue(answer);
    expect(await pendingError(take())).toMatchObject({ code: "lease_busy" });
    expect(requested).toHaveBeenCalledTimes(1);
  });
});

it("a lock file that never reads back as it was written ends by the patience of the caller, and lets the process continue", async () => {
  vi.spyOn(LockFiles.prototype, "take").mockReturnValue(false);
  onTestFinished(() => void vi.restoreAllMocks());
  let isElsewhereAlive = false;
  setTimeout(() => {
    isElsewhereAlive = true;
  });
  const work = leasesOf(folder()).run(NAME, async () => undefined, { durationMs: 1000, patienceMs: 100 });
  expect(await pendingError(work)).toMatchObject({ code: "lease_busy" });
  expect(isElsewhereAlive).toBe(true);
});
