import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import type { Lease } from "../../../src/oauth/grant/lease.js";
import { FileLeases } from "../../../src/store/leases/file-leases.js";
import { LockFiles } from "../../../src/store/leases/lock-files.js";
import { bootClock } from "../../../src/store/leases/lock-owner.js";
import type { LockRecord } from "../../../src/store/leases/lock-record.js";
import { type Child, compile, startChild } from "../../helpers/child.js";
import { folder } from "../stores.js";
import type { Command, HoldJob, RoundsJob } from "./lease-driver.js";

const DRIVER = new URL("lease-driver.ts", import.meta.url);
const NAME = "a name";
const onUnix = describe.skipIf(process.platform === "win32");

interface Holder extends Child {
  does(command: Command): void;
}

/** A process that wants the lease of {@link NAME}. */
async function holder(home: string, options: HoldJob["options"], wrapper: readonly string[] = []): Promise<Holder> {
  const job: HoldJob = { kind: "hold", folder: home, name: NAME, options };
  const child = startChild(await compile(DRIVER), job, wrapper);
  await child.hears("started");
  return { ...child, does: (command) => child.tell(command) };
}

const leasesOf = (home: string) => new FileLeases(join(home, "claims"));
function must<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("it should be there");
  return value;
}

const leaseFilesOf = (home: string) => readdirSync(join(home, "claims")).sort();
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The path of the only lock file. */
function lockFileOf(home: string): string {
  const [name, ...more] = leaseFilesOf(home).filter((one) => one.endsWith(".claim"));
  if (name === undefined || more.length > 0) throw new Error("one lock file was expected");
  return join(home, "claims", name);
}

describe("many processes", () => {
  it.each([
    { once: false, commit: false },
    { once: true, commit: false },
    { once: true, commit: true },
  ])("never hold one lease at once (%o)", { timeout: 120_000 }, async (options) => {
    const home = folder();
    const path = await compile(DRIVER);
    const job: RoundsJob = {
      kind: "rounds",
      folder: home,
      name: NAME,
      guard: join(home, "guard"),
      rounds: 50,
      ...options,
    };
    const children = Array.from({ length: 20 }, () => startChild(path, job));
    const ends = await Promise.all(children.map((child) => child.hears("ended")));
    expect(ends.map(({ overlaps }) => overlaps)).toEqual(Array(20).fill(0));
    // Of 1,000 rounds nothing is left but the last two.
    expect(leaseFilesOf(home).length).toBeLessThanOrEqual(options.once ? 0 : 4);
  });
});

onUnix("a holder that is killed", () => {
  it("is followed by the waiting process, which learns that it died and had not begun", async () => {
    const home = folder();
    const first = await holder(home, { duration: 600_000 });
    await first.hears("holds");
    const second = await holder(home, { duration: 600_000 });
    expect(await second.hears("waits")).toMatchObject({ pid: first.pid });
    expect(second.said.map(({ event }) => event)).not.toContain("holds");
    await first.kill("SIGKILL");
    expect(await second.hears("holds")).toMatchObject({ waited: true, before: { ended: "died", committed: false } });
  });

  it("is followed by who comes later", async () => {
    const home = folder();
    const first = await holder(home, { duration: 600_000, extend: true });
    await first.hears("holds");
    await first.kill("SIGKILL");
    const before = await leasesOf(home).run(NAME, async (lease) => lease.before, { duration: 1000 });
    expect(before).toMatchObject({ ended: "died", committed: false, endedAt: undefined, failure: undefined });
  });
});

onUnix("a holder that is stopped", () => {
  it("is replaced when its time is over, and learns that it has lost the lease when it goes on", async () => {
    const home = folder();
    const first = await holder(home, { duration: 1000 });
    await first.hears("holds");
    await first.kill("SIGSTOP");
    const second = await holder(home, { duration: 60_000 });
    expect(await second.hears("holds")).toMatchObject({ before: { ended: "expired", committed: false } });
    await first.kill("SIGCONT");
    first.does({ do: "left" });
    expect(await first.hears("left")).toMatchObject({ left: 0 });
    first.does({ do: "commit" });
    expect(await first.hears("committed")).toMatchObject({ lost: "lease_lost" });
    first.does({ do: "release" });
    await first.hears("ended");
    second.does({ do: "commit" });
    expect((await second.hears("committed")).lost).toBeUndefined();
  });

  it("takes nothing from its follower when it ends late, not even the last trace of a name", async () => {
    const home = folder();
    const late = await holder(home, { duration: 500, once: true });
    await late.hears("holds");
    await late.kill("SIGSTOP");
    const second = await holder(home, { duration: 60_000, once: true });
    await second.hears("holds");
    second.does({ do: "release" });
    await second.hears("ended");
    expect(leaseFilesOf(home)).toEqual([]);
    // Its number is in use again.
    const third = await holder(home, { duration: 60_000, once: true });
    await third.hears("holds");
    const before = leaseFilesOf(home);
    await late.kill("SIGCONT");
    late.does({ do: "release" });
    await late.hears("ended");
    expect(leaseFilesOf(home)).toEqual(before);
    const fourth = await holder(home, { duration: 60_000, patience: 300 });
    expect((await fourth.hears("ended")).error).toMatchObject({ code: "lease_busy" });
  });

  it("is waited for, however long, once it has begun; a process whose patience ends gets its number", async () => {
    const home = folder();
    const first = await holder(home, { duration: 300 });
    await first.hears("holds");
    first.does({ do: "commit" });
    await first.hears("committed");
    await first.kill("SIGSTOP");
    const second = await holder(home, { duration: 300, patience: 3000 });
    const { error } = await second.hears("ended");
    expect(error).toMatchObject({
      code: "lease_busy",
      class: "unavailable",
      message: expect.stringContaining(`process ${first.pid}`),
      hint: expect.stringContaining(`kill -CONT ${first.pid}`),
    });
    expect(second.said.map(({ event }) => event)).not.toContain("holds");
    const third = await holder(home, { duration: 300 });
    await third.hears("waits");
    await first.kill("SIGKILL");
    expect(await third.hears("holds")).toMatchObject({ before: { ended: "died", committed: true } });
  });

  it("is replaced where it has to show that it lives, and does not come back to life", async () => {
    const home = folder();
    const first = await holder(home, { duration: 600, extend: true });
    await first.hears("holds");
    await first.kill("SIGSTOP");
    const second = await holder(home, { duration: 60_000, extend: true });
    expect(await second.hears("holds")).toMatchObject({ before: { ended: "expired" } });
    await first.kill("SIGCONT");
    await pause(500);
    first.does({ do: "left" });
    expect(await first.hears("left")).toMatchObject({ left: 0 });
    first.does({ do: "commit" });
    expect(await first.hears("committed")).toMatchObject({ lost: "lease_lost" });
  });
});

describe("a holder that shows that it lives", () => {
  it("is not replaced beyond its duration", async () => {
    const home = folder();
    const first = await holder(home, { duration: 500, extend: true });
    await first.hears("holds");
    const second = await holder(home, { duration: 500, patience: 2500 });
    expect((await second.hears("ended")).error).toMatchObject({ code: "lease_busy" });
    first.does({ do: "left" });
    expect((await first.hears("left")).left).toBeGreaterThan(0);
    first.does({ do: "commit" });
    expect((await first.hears("committed")).lost).toBeUndefined();
  });
});

describe("a holder that cannot be seen", () => {
  /** Changes the content of the only lock file. */
  function change(home: string, over: { holder?: Partial<LockRecord["holder"]>; deadline?: number }): LockRecord {
    const path = lockFileOf(home);
    const { mtime } = statSync(path);
    const record = JSON.parse(readFileSync(path, "utf8")) as LockRecord;
    const changed = { ...record, ...over, holder: { ...record.holder, ...over.holder } };
    writeFileSync(path, JSON.stringify(changed));
    utimesSync(path, mtime, mtime);
    return changed;
  }

  it("in another namespace loses its lease when that expires", async () => {
    const home = folder();
    const first = await holder(home, { duration: 700 });
    await first.hears("holds");
    const { deadline } = change(home, { holder: { space: "pid:[1]" } });
    const before = await leasesOf(home).run(NAME, async (lease) => lease.before, { duration: 60_000 });
    expect(bootClock()).toBeGreaterThanOrEqual(deadline);
    expect(before).toMatchObject({ ended: "expired", committed: false });
  });

  it("in another namespace is not waited for where its time was over before it was seen", async () => {
    const home = folder();
    const first = await holder(home, { duration: 400 });
    await first.hears("holds");
    change(home, { holder: { space: "pid:[1]" } });
    await pause(450);
    const ended = leasesOf(home).run(NAME, async ({ before }) => before?.ended, { duration: 1000, patience: 100 });
    expect(await ended).toBe("expired");
  });

  it("in another namespace gets three times as long where it had begun", async () => {
    const home = folder();
    const first = await holder(home, { duration: 700 });
    await first.hears("holds");
    first.does({ do: "commit" });
    await first.hears("committed");
    const { deadline, duration } = change(home, { holder: { space: "pid:[1]" } });
    const before = await leasesOf(home).run(NAME, async (lease) => lease.before, { duration: 60_000 });
    expect(bootClock()).toBeGreaterThanOrEqual(deadline + 2 * duration);
    expect(before).toMatchObject({ ended: "expired", committed: true });
  });

  it("on another machine loses its lease when its lock file is old, though its clock may be two minutes off", async () => {
    const home = folder();
    const first = await holder(home, { duration: 600_000 });
    await first.hears("holds");
    change(home, { holder: { boot: "another machine" } });
    const run = () => leasesOf(home).run(NAME, async ({ before }) => before?.ended, { duration: 1000, patience: 300 });
    const path = lockFileOf(home);
    for (const age of [0, 700_000]) {
      utimesSync(path, new Date(Date.now() - age), new Date(Date.now() - age));
      await expect(run()).rejects.toMatchObject({ code: "lease_busy" });
    }
    utimesSync(path, new Date(Date.now() - 730_000), new Date(Date.now() - 730_000));
    expect(await run()).toBe("expired");
  });

  it("of another run of the machine, whose clock was far ahead, loses its lease after it was watched for its duration", async () => {
    const home = folder();
    const first = await holder(home, { duration: 500 });
    await first.hears("holds");
    change(home, { deadline: bootClock() + 1e9 });
    const before = await leasesOf(home).run(NAME, async (lease) => lease.before, { duration: 60_000 });
    expect(before).toMatchObject({ ended: "expired", committed: false });
  });
});

describe("a holder that another one has taken over from", () => {
  it("cannot begin, though it has time left by its own clock", async () => {
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
        await expect(lease.commit()).rejects.toMatchObject({ code: "lease_lost" });
      },
      { duration: 60_000 },
    );
  });
});

describe("a holder that has shown that it lives", () => {
  it("does not go on with that when the work has ended", async () => {
    const home = folder();
    await leasesOf(home).run(NAME, async () => undefined, { duration: 50, extend: true });
    const old = new Date(Date.now() - 60_000);
    utimesSync(lockFileOf(home), old, old);
    await pause(100);
    expect(statSync(lockFileOf(home)).mtime).toEqual(old);
  });
});

describe("a process that waits", () => {
  it("takes the result instead of the lease as soon as there is one", async () => {
    const home = folder();
    const first = await holder(home, { duration: 60_000 });
    await first.hears("holds");
    let asked = 0;
    const until = async () => (++asked < 3 ? undefined : "theirs");
    const work = async () => "mine";
    expect(await leasesOf(home).run(NAME, work, { duration: 1000, until })).toBe("theirs");
    expect(asked).toBe(3);
    expect(leaseFilesOf(home)).toHaveLength(1);
  });

  it("hears once whom it waits for", async () => {
    const home = folder();
    const first = await holder(home, { duration: 60_000 });
    await first.hears("holds");
    const heard: unknown[] = [];
    const work = async () => undefined;
    const waiting = leasesOf(home).run(NAME, work, { duration: 1000, patience: 300, onWait: (one) => heard.push(one) });
    await expect(waiting).rejects.toMatchObject({ code: "lease_busy" });
    expect(heard).toEqual([{ pid: first.pid, at: expect.any(Number) }]);
  });

  it("gets the failure of the holder", async () => {
    const home = folder();
    const first = await holder(home, { duration: 60_000 });
    await first.hears("holds");
    const second = await holder(home, { duration: 60_000 });
    await second.hears("waits");
    first.does({ do: "fail", code: "timeout" });
    expect(await second.hears("holds")).toMatchObject({
      waited: true,
      before: { ended: "released", endedAt: expect.any(Number), failure: { code: "timeout", class: "unavailable" } },
    });
  });

  it("has not waited for a failure from before its request", async () => {
    const home = folder();
    const leases = leasesOf(home);
    const failing = leases.run(
      NAME,
      () => Promise.reject(new AgentAuthError("timeout", "x", { class: "unavailable" })),
      {
        duration: 1000,
      },
    );
    await expect(failing).rejects.toMatchObject({ code: "timeout" });
    const first = await holder(home, { duration: 60_000 });
    await first.hears("holds");
    const second = await holder(home, { duration: 60_000 });
    await second.hears("waits");
    first.does({ do: "withdraw" });
    first.does({ do: "fail", code: "whatever" });
    expect(await second.hears("holds")).toMatchObject({ waited: false, before: { failure: { code: "timeout" } } });
  });

  it("stops at once when its signal fires, and leaves no lock file", async () => {
    const home = folder();
    const first = await holder(home, { duration: 60_000 });
    await first.hears("holds");
    const controller = new AbortController();
    const waiting = leasesOf(home).run(NAME, async () => undefined, {
      duration: 60_000,
      signal: controller.signal,
      onWait: () => setTimeout(() => controller.abort(), 20),
    });
    await expect(waiting).rejects.toMatchObject({ code: "aborted" });
    expect(leaseFilesOf(home)).toHaveLength(1);
  });
});

describe("the trace of a lease", () => {
  it("is nothing where the name was of use once and the work succeeded", async () => {
    const home = folder();
    const run = (work: (lease: Lease) => Promise<unknown>) =>
      leasesOf(home).run(NAME, work, { duration: 1000, once: true });
    await expect(run(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(leaseFilesOf(home)).not.toEqual([]);
    await run((lease) => lease.commit());
    expect(leaseFilesOf(home)).toEqual([]);
  });

  it("is that of the attempt before where one was withdrawn", async () => {
    const home = folder();
    const failed = (code: string) => new AgentAuthError(code, "x", { class: "auth" });
    const leases = leasesOf(home);
    await expect(leases.run(NAME, () => Promise.reject(failed("one")), { duration: 1000 })).rejects.toBeDefined();
    const withdrawn = leases.run(
      NAME,
      async (lease) => {
        lease.rollback();
        throw failed("two");
      },
      { duration: 1000 },
    );
    await expect(withdrawn).rejects.toMatchObject({ code: "two" });
    const before = await leases.run(NAME, async (lease) => lease.before, { duration: 1000 });
    expect(before).toMatchObject({ ended: "released", failure: { code: "one" } });
  });

  it("tells the next holder that work had begun which then threw", async () => {
    const leases = leasesOf(folder());
    const failing = leases.run(
      NAME,
      async (lease) => {
        await lease.commit();
        throw new Error("a bug");
      },
      { duration: 1000 },
    );
    await expect(failing).rejects.toThrow("a bug");
    expect(await leases.run(NAME, async ({ before }) => before, { duration: 1000 })).toMatchObject({
      ended: "released",
      committed: true,
      failure: undefined,
    });
  });

  it("contains neither the name nor anything that was done", async () => {
    const home = folder();
    await leasesOf(home).run("https://mcp.example secret-name", (lease) => lease.commit(), { duration: 1000 });
    for (const name of leaseFilesOf(home)) {
      expect(name).toMatch(/^[0-9a-f]{40}\.1\.(claim|[0-9a-f]{12}\.(sent|done))$/);
      expect(readFileSync(join(home, "claims", name), "utf8")).not.toContain("secret-name");
    }
  });

  it("does not grow with the rounds, nor with old names", async () => {
    const home = folder();
    const leases = leasesOf(home);
    for (let nth = 0; nth < 1000; nth++) await leases.run(NAME, (lease) => lease.commit(), { duration: 1000 });
    expect(leaseFilesOf(home).length).toBeLessThanOrEqual(6);
    for (let nth = 0; nth < 80; nth++) await leases.run(`other ${nth}`, (lease) => lease.commit(), { duration: 1000 });
    const old = new Date(Date.now() - 48 * 3600 * 1000);
    const young = leaseFilesOf(home).filter((_, nth) => nth % 10 === 0);
    for (const name of leaseFilesOf(home)) if (!young.includes(name)) utimesSync(join(home, "claims", name), old, old);
    await leases.run("one more", (lease) => lease.commit(), { duration: 1000 });
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
    await leases.run(NAME, async () => undefined, { duration: 1000 });
    const lockFile = lockFileOf(home);
    for (const name of leaseFilesOf(home)) rmSync(join(home, "claims", name));
    writeFileSync(lockFile, text);
    const events: string[] = [];
    const run = leases.run(NAME, async ({ before }) => before?.ended, {
      duration: 300,
      onWait: () => events.push("waits"),
    });
    expect(await run).toBe("expired");
    expect(events).toEqual(["waits"]);
  });

  it("are passed over where they are folders or leftovers", async () => {
    const home = folder();
    const leases = leasesOf(home);
    await leases.run(NAME, async () => undefined, { duration: 1000 });
    const lockFile = lockFileOf(home);
    for (const name of leaseFilesOf(home)) rmSync(join(home, "claims", name));
    mkdirSync(lockFile);
    writeFileSync(lockFile.replace(/\.1\.claim$/, ".abcdef123456.tmp"), "half");
    for (let nth = 0; nth < 4; nth++) {
      expect(await leases.run(NAME, async () => "done", { duration: 100 })).toBe("done");
    }
  });

  it("do not lend their marks to another lock file with their number", async () => {
    const home = folder();
    const leases = leasesOf(home);
    await leases.run(NAME, (lease) => lease.commit(), { duration: 1000 });
    rmSync(lockFileOf(home));
    expect(leaseFilesOf(home)).toHaveLength(2);
    const first = await holder(home, { duration: 60_000 });
    expect((await first.hears("holds")).before).toBeUndefined();
    const second = leases.run(NAME, async () => undefined, { duration: 1000, patience: 300 });
    await expect(second).rejects.toMatchObject({ code: "lease_busy" });
  });
});

onUnix("a folder of lock files that cannot be trusted or used", () => {
  const take = (home: string) => leasesOf(home).run(NAME, async () => "done", { duration: 100 });

  it("is refused where others can read it", async () => {
    const home = folder();
    mkdirSync(join(home, "claims"), { mode: 0o755 });
    await expect(take(home)).rejects.toMatchObject({ class: "store", hint: `chmod 700 ${join(home, "claims")}` });
    expect(leaseFilesOf(home)).toEqual([]);
  });

  it("is refused where it is a symbolic link", async () => {
    const home = folder();
    await take(home);
    renameSync(join(home, "claims"), join(home, "elsewhere"));
    symlinkSync(join(home, "elsewhere"), join(home, "claims"));
    await expect(take(home)).rejects.toMatchObject({
      class: "store",
      message: expect.stringContaining("symbolic link"),
    });
  });

  it("is refused where it is a file", async () => {
    const home = folder();
    writeFileSync(join(home, "claims"), "");
    await expect(take(home)).rejects.toMatchObject({ class: "store" });
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
        await expect(lease.commit()).rejects.toMatchObject({ code: "lease_lost", class: "unavailable" });
      },
      { duration: 60_000 },
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
      { duration: 60_000 },
    );
  });
});
