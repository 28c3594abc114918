import type { LeaseBusy, LeaseHeld } from "../../store/driver/driver.js";
import { type Bench, claimOf, create, freshKey, LONG_MS, type Row, refused, replace, take } from "../bench.js";
import { check, checkEqual, checkPresent } from "../check.js";

/** Rows about who holds a lease. */
export const leaseRows: readonly Row[] = [
  { name: "of 50 claims one is held", run: oneIsHeld },
  { name: "an extend or a release by a stranger changes nothing", run: ignoresStrangers },
  { name: "an extend counts from now and replaces the note", run: extendsFromNow },
  { name: "the attempt of each claim is higher", run: attemptRises },
  { name: "a release leaves its note as a trace", run: leavesTrace },
  { name: "a release without a note leaves no trace", run: leavesNoTrace },
  { name: "a lease needs no record and does not change one", run: isApartFromRecord },
];

async function oneIsHeld({ open }: Bench): Promise<void> {
  const drivers = [await open(), await open()];
  for (let round = 0; round < 20; round += 1) {
    const key = freshKey("lease");
    const claims = Array.from({ length: 50 }, async (_, racer) => {
      const driver = drivers[racer % 2] ?? (await open());
      return { owner: `racer-${racer}`, answer: await driver.claim(key, claimOf(`racer-${racer}`)) };
    });
    const answers = await Promise.all(claims);
    const winners = answers.flatMap(({ owner, answer }) => (answer.held ? [{ owner, answer }] : []));
    const [winner] = winners;
    check("of several claims exactly one is held", winner !== undefined && winners.length === 1, "one", winners);
    checkEqual("the first claim under a key has none before it", winner.answer.before, undefined);
    for (const { answer } of answers) {
      if (!answer.held) checkBusy(answer, winner.owner, winner.answer);
    }
  }
}

function checkBusy({ by, leftMs }: LeaseBusy, owner: string, { attempt }: LeaseHeld): void {
  const rule = "a refused claim names the claim that holds the lease";
  const { at, now, ...rest } = by;
  checkEqual(rule, rest, { owner, attempt, note: `note of ${owner}`, releasedAt: undefined });
  check("a trace has the time when it was claimed and when it was read", at > 0 && now >= at, "at <= now", by);
  const isOfEngine = leftMs > 0 && leftMs <= LONG_MS;
  check("a refused claim says how long the lease is not free", isOfEngine, `1 to ${LONG_MS} ms`, leftMs);
}

async function ignoresStrangers({ open }: Bench): Promise<void> {
  const driver = await open();
  const key = freshKey("lease");
  const claim = await take(driver, key, claimOf("holder", LONG_MS));
  const stranger = claimOf("stranger", 10 * LONG_MS);
  const rule = "extend and release by a stranger change nothing";
  const checkUnchanged = async () => {
    checkBusy(await refused(driver, key), "holder", claim);
  };
  checkEqual(rule, await driver.extend(key, stranger), false);
  await checkUnchanged();
  for (const note of ["of a stranger", undefined]) {
    await driver.release(key, { owner: "stranger", note });
    await checkUnchanged();
  }
  checkEqual("the holder extends its lease", await driver.extend(key, claimOf("holder")), true);
  await driver.release(key, { owner: "holder", note: "released" });
  checkEqual("a released lease is not extended", await driver.extend(key, claimOf("holder")), false);
  await driver.release(key, { owner: "holder", note: "released twice" });
  const next = await take(driver, key, claimOf("next"));
  checkEqual("a second release changes nothing", next.before?.note, "released");
  checkEqual(rule, await driver.extend(key, claimOf("holder")), false);
  for (const note of ["late", undefined]) await driver.release(key, { owner: "holder", note });
  checkBusy(await refused(driver, key), "next", next);
  const free = freshKey("lease");
  checkEqual("a lease that was never claimed is not extended", await driver.extend(free, claimOf("holder")), false);
  await driver.release(free, { owner: "holder", note: "never held" });
  const { before } = await take(driver, free, claimOf("first"));
  checkEqual("a release by an owner that held nothing leaves no trace", before, undefined);
}

async function extendsFromNow({ open }: Bench): Promise<void> {
  const driver = await open();
  const key = freshKey("lease");
  await take(driver, key, claimOf("holder", LONG_MS));
  const { by: first } = await refused(driver, key);
  const extend = (ttlMs: number, note: string) => driver.extend(key, { owner: "holder", ttlMs, note });
  checkEqual("the holder extends its lease", await extend(10 * LONG_MS, "sent"), true);
  const { by, leftMs } = await refused(driver, key);
  const isLonger = leftMs > 9 * LONG_MS && leftMs <= 10 * LONG_MS;
  check("extend counts the time from now", isLonger, `at most ${10 * LONG_MS} ms`, leftMs);
  checkEqual("extend replaces the note", by.note, "sent");
  const { at, attempt, owner } = first;
  const same = { at: by.at, attempt: by.attempt, owner: by.owner };
  checkEqual("extend keeps the time and the number of the claim", same, { at, attempt, owner });
  await extend(LONG_MS, "");
  const { leftMs: shorter } = await refused(driver, key);
  check("extend may shorten a lease", shorter <= LONG_MS, `at most ${LONG_MS} ms`, shorter);
}

async function attemptRises({ open, wait }: Bench): Promise<void> {
  const driver = await open();
  const key = freshKey();
  const attempts: number[] = [];
  const claim = async (owner: string, ttlMs?: number) => {
    attempts.push((await take(driver, key, claimOf(owner, ttlMs))).attempt);
  };
  const ends = [
    (owner: string) => driver.release(key, { owner, note: "released" }),
    (owner: string) => driver.release(key, { owner, note: undefined }),
    async (owner: string) => {
      const version = await create(driver, key);
      await driver.delete(key, version);
      await driver.release(key, { owner, note: undefined });
    },
  ];
  for (let round = 0; round < 9; round += 1) {
    await claim(`owner-${round}`);
    await ends[round % 3]?.(`owner-${round}`);
  }
  await claim("expires", 50);
  await wait(100);
  await claim("last");
  const rises = attempts.every(
    (attempt, index) => Number.isSafeInteger(attempt) && attempt > (attempts[index - 1] ?? 0),
  );
  check("each claim has a higher number than all before it under its key", rises, "rising whole numbers", attempts);
}

async function leavesTrace({ open }: Bench): Promise<void> {
  const driver = await open();
  const key = freshKey("lease");
  const { attempt } = await take(driver, key, claimOf("first"));
  await driver.release(key, { owner: "first", note: "failed" });
  const next = await take(driver, key, claimOf("second"));
  const before = checkPresent("the next claim has the released one before it", next.before, "a trace");
  const { at, now, releasedAt, ...rest } = before;
  checkEqual("a trace has the note of the release", rest, { attempt, owner: "first", note: "failed" });
  const inOrder = releasedAt !== undefined && at <= releasedAt && releasedAt <= now;
  check("a trace has the time of its release", inOrder, "at <= releasedAt <= now", before);
}

async function leavesNoTrace({ open }: Bench): Promise<void> {
  const driver = await open();
  const key = freshKey("lease");
  await take(driver, key, claimOf("first"));
  await driver.release(key, { owner: "first", note: "failed" });
  await take(driver, key, claimOf("second"));
  await driver.release(key, { owner: "second", note: undefined });
  const { before } = await take(driver, key, claimOf("third"));
  checkEqual("the claim after a release without a note has none before it", before, undefined);
}

async function isApartFromRecord({ open }: Bench): Promise<void> {
  const driver = await open();
  const key = freshKey();
  await take(driver, key, claimOf("holder"));
  checkEqual("a lease makes no record", await driver.get(key), undefined);
  const first = await create(driver, key, "first");
  await driver.extend(key, claimOf("holder"));
  const { by } = await refused(driver, key);
  checkEqual("a put changes no lease", by.owner, "holder");
  const second = await replace(driver, key, "second", first);
  await driver.release(key, { owner: "holder", note: "released" });
  await take(driver, key, claimOf("next"));
  const rule = "claim, extend and release change no record";
  checkEqual(rule, await driver.get(key), { key, version: second, value: "second" });
  checkEqual("a record is removed under a lease", await driver.delete(key, second), true);
  const { by: after } = await refused(driver, key);
  checkEqual("a lease outlives its record", after.owner, "next");
  checkEqual("a lease is extended without its record", await driver.extend(key, claimOf("next")), true);
  await driver.release(key, { owner: "next", note: "over" });
  const { before } = await take(driver, key, claimOf("last"));
  checkEqual("a lease leaves its trace without its record", before?.note, "over");
}
