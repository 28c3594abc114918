import { readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { bootClock, type LockRecord } from "../../../src/store/leases/lock-owner.js";
import { type Child, compile, startChild } from "../../helpers/child.js";
import { ON_WINDOWS } from "../../helpers/systems.js";
import { folder } from "../stores.js";
import type { Command, HoldJob, RoundsJob } from "./lease-driver.js";
import { leaseFilesOf, leasesOf, lockFileOf, NAME, pause } from "./support.js";

const DRIVER = new URL("lease-driver.ts", import.meta.url);
const onUnix = describe.skipIf(ON_WINDOWS);

interface Holder extends Child {
  does(command: Command): void;
}

/** A process that wants the lease of {@link NAME}. */
async function holder(home: string, options: HoldJob["options"], wrapper: readonly string[] = []): Promise<Holder> {
  const job: HoldJob = { kind: "hold", folder: home, name: NAME, options };
  const child = startChild(await compile(DRIVER), job, wrapper);
  await child.hears("started");
  return { ...child, does: (command) => child.send(command) };
}

/** A process that holds the lease, and the folder of its store. */
async function holding(options: HoldJob["options"]) {
  const home = folder();
  const first = await holder(home, options);
  await first.hears("holds");
  return { home, first };
}

it.each([
  { once: false, commit: false },
  { once: true, commit: false },
  { once: true, commit: true },
])("many processes never hold one lease at once (%o)", { timeout: 120_000 }, async (options) => {
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

onUnix("a holder that is killed", () => {
  it("is followed by the waiting process, which learns that it died and had not begun", async () => {
    const { home, first } = await holding({ durationMs: 600_000 });
    const second = await holder(home, { durationMs: 600_000 });
    expect(await second.hears("waits")).toMatchObject({ pid: first.pid });
    expect(second.said.map(({ event }) => event)).not.toContain("holds");
    await first.kill("SIGKILL");
    expect(await second.hears("holds")).toMatchObject({ waited: true, previous: { ended: "died", committed: false } });
  });

  it("is followed by who comes later", async () => {
    const { home, first } = await holding({ durationMs: 600_000, extend: true });
    await first.kill("SIGKILL");
    const before = await leasesOf(home).run(NAME, async (lease) => lease.previous, { durationMs: 1000 });
    expect(before).toMatchObject({ ended: "died", committed: false, endedAt: undefined, failure: undefined });
  });
});

onUnix("a holder that is stopped", () => {
  it("is replaced when its time is up, and learns that it has lost the lease when it continues", async () => {
    const { home, first } = await holding({ durationMs: 1000 });
    await first.kill("SIGSTOP");
    const second = await holder(home, { durationMs: 60_000 });
    expect(await second.hears("holds")).toMatchObject({ previous: { ended: "expired", committed: false } });
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
    const late = await holder(home, { durationMs: 500, once: true });
    await late.hears("holds");
    await late.kill("SIGSTOP");
    const second = await holder(home, { durationMs: 60_000, once: true });
    await second.hears("holds");
    second.does({ do: "release" });
    await second.hears("ended");
    expect(leaseFilesOf(home)).toEqual([]);
    // Its number is in use again.
    const third = await holder(home, { durationMs: 60_000, once: true });
    await third.hears("holds");
    const before = leaseFilesOf(home);
    await late.kill("SIGCONT");
    late.does({ do: "release" });
    await late.hears("ended");
    expect(leaseFilesOf(home)).toEqual(before);
    const fourth = await holder(home, { durationMs: 60_000, patienceMs: 300 });
    expect((await fourth.hears("ended")).error).toMatchObject({ code: "lease_busy" });
  });

  it("is waited for, however long, once it has begun; a process whose patience ends gets its number", async () => {
    const { home, first } = await holding({ durationMs: 2000 });
    first.does({ do: "commit" });
    await first.hears("committed");
    await first.kill("SIGSTOP");
    const second = await holder(home, { durationMs: 300, patienceMs: 7000 });
    const { error } = await second.hears("ended");
    expect(error).toMatchObject({
      code: "lease_busy",
      class: "unavailable",
      message: expect.stringContaining(`process ${first.pid}`),
      hint: expect.stringContaining(`kill -CONT ${first.pid}`),
    });
    expect(second.said.map(({ event }) => event)).not.toContain("holds");
    const third = await holder(home, { durationMs: 300 });
    await third.hears("waits");
    await first.kill("SIGKILL");
    expect(await third.hears("holds")).toMatchObject({ previous: { ended: "died", committed: true } });
  });

  it("is replaced where it has to show that it lives, and does not come back to life", async () => {
    const { home, first } = await holding({ durationMs: 600, extend: true });
    await first.kill("SIGSTOP");
    const second = await holder(home, { durationMs: 60_000, extend: true });
    expect(await second.hears("holds")).toMatchObject({ previous: { ended: "expired" } });
    await first.kill("SIGCONT");
    await pause(500);
    first.does({ do: "left" });
    expect(await first.hears("left")).toMatchObject({ left: 0 });
    first.does({ do: "commit" });
    expect(await first.hears("committed")).toMatchObject({ lost: "lease_lost" });
  });
});

it("a holder that shows that it lives is not replaced beyond its duration", async () => {
  const home = folder();
  const first = await holder(home, { durationMs: 3000, extend: true });
  await first.hears("holds");
  const second = await holder(home, { durationMs: 500, patienceMs: 7000 });
  expect((await second.hears("ended")).error).toMatchObject({ code: "lease_busy" });
  first.does({ do: "left" });
  expect((await first.hears("left")).left).toBeGreaterThan(0);
  first.does({ do: "commit" });
  expect((await first.hears("committed")).lost).toBeUndefined();
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
    const { home } = await holding({ durationMs: 700 });
    const { deadline } = change(home, { holder: { space: "pid:[1]" } });
    const before = await leasesOf(home).run(NAME, async (lease) => lease.previous, { durationMs: 60_000 });
    expect(bootClock()).toBeGreaterThanOrEqual(deadline);
    expect(before).toMatchObject({ ended: "expired", committed: false });
  });

  it("in another namespace is not waited for where its time was over before it was seen", async () => {
    const { home } = await holding({ durationMs: 400 });
    change(home, { holder: { space: "pid:[1]" } });
    await pause(450);
    const ended = leasesOf(home).run(NAME, async ({ previous }) => previous?.ended, {
      durationMs: 1000,
      patienceMs: 100,
    });
    expect(await ended).toBe("expired");
  });

  it("in another namespace gets three times as long where it had begun", async () => {
    const { home, first } = await holding({ durationMs: 2000 });
    first.does({ do: "commit" });
    await first.hears("committed");
    const { deadline, duration } = change(home, { holder: { space: "pid:[1]" } });
    const before = await leasesOf(home).run(NAME, async (lease) => lease.previous, { durationMs: 60_000 });
    expect(bootClock()).toBeGreaterThanOrEqual(deadline + 2 * duration);
    expect(before).toMatchObject({ ended: "expired", committed: true });
  });

  it("on another machine loses its lease when its lock file is old, though its clock may be two minutes off", async () => {
    const { home } = await holding({ durationMs: 600_000 });
    change(home, { holder: { boot: "another machine" } });
    const run = () =>
      leasesOf(home).run(NAME, async ({ previous }) => previous?.ended, { durationMs: 1000, patienceMs: 300 });
    const path = lockFileOf(home);
    for (const age of [0, 700_000]) {
      utimesSync(path, new Date(Date.now() - age), new Date(Date.now() - age));
      await expect(run()).rejects.toMatchObject({ code: "lease_busy" });
    }
    utimesSync(path, new Date(Date.now() - 730_000), new Date(Date.now() - 730_000));
    expect(await run()).toBe("expired");
  });

  it("of another run of the machine, whose clock was far ahead, loses its lease after it was watched for its duration", async () => {
    const { home } = await holding({ durationMs: 500 });
    change(home, { deadline: bootClock() + 1e9 });
    const before = await leasesOf(home).run(NAME, async (lease) => lease.previous, { durationMs: 60_000 });
    expect(before).toMatchObject({ ended: "expired", committed: false });
  });
});

describe("a process that waits", () => {
  it("stops at once when its signal fires, and leaves no lock file", async () => {
    const { home } = await holding({ durationMs: 60_000 });
    const controller = new AbortController();
    const waiting = leasesOf(home).run(NAME, async () => undefined, {
      durationMs: 60_000,
      signal: controller.signal,
      onWait: () => setTimeout(() => controller.abort(), 20),
    });
    await expect(waiting).rejects.toMatchObject({ code: "aborted" });
    expect(leaseFilesOf(home)).toHaveLength(1);
  });
});

it("lock files with unexpected content do not lend their marks to another lock file with their number", async () => {
  const home = folder();
  const leases = leasesOf(home);
  await leases.run(NAME, (lease) => lease.commit(), { durationMs: 60_000 });
  rmSync(lockFileOf(home));
  expect(leaseFilesOf(home)).toHaveLength(2);
  const first = await holder(home, { durationMs: 60_000 });
  expect((await first.hears("holds")).previous).toBeUndefined();
  const second = leases.run(NAME, async () => undefined, { durationMs: 1000, patienceMs: 300 });
  await expect(second).rejects.toMatchObject({ code: "lease_busy" });
});
