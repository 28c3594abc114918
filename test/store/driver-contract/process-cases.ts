import type { RecordKey, StoreDriver } from "../../../src/store/driver/driver.js";
import { check, checkEqual, eventually } from "./check.js";
import { type Cases, claimOf, create, type DriverJob, SOON_MS, type StoreUnderTest } from "./store-under-test.js";

/** How many processes do the same, and how often. */
const PROCESSES = 4;
const TIMES = 100;

/** Cases about several processes. */
export const processCases: Cases = {
  async "of the puts of 4 processes none is lost"(storeUnderTest) {
    const { driver, key } = storeUnderTest;
    await runInProcesses(storeUnderTest, "increment", key.partition);
    const stored = await driver.get(jobKey(key.partition, "number"));
    checkEqual("of several puts on one version exactly one is stored", stored?.value, String(PROCESSES * TIMES));
  },

  async "of 4 processes one creates, removes and claims"(storeUnderTest) {
    for (const name of ["create", "recreate", "delete", "claim"] as const) {
      const partition = `${storeUnderTest.key.partition}-${name}`;
      // What is created again has expired by then.
      const options = name === "recreate" ? { expiresInMs: 1 } : {};
      if (name === "delete" || name === "recreate")
        for (let turn = 0; turn < TIMES; turn += 1)
          await create(storeUnderTest.driver, jobKey(partition, `record-${turn}`), "before", options);
      if (name === "recreate") await storeUnderTest.wait(5);
      const results = await runInProcesses(storeUnderTest, name, partition);
      const winners = Array.from({ length: TIMES }, (_, turn) => results.filter((wins) => wins[turn] === true).length);
      const isOne = winners.every((count) => count === 1);
      check(`of several processes exactly one has success with ${name}`, isOne, "1 for each record", winners);
    }
  },
};

/** Where each process succeeded. */
async function runInProcesses(
  storeUnderTest: StoreUnderTest,
  name: DriverJob["name"],
  partition: string,
): Promise<readonly boolean[][]> {
  const jobs = Array.from({ length: PROCESSES }, (_, process) =>
    storeUnderTest.openElsewhere({ name, partition, process }),
  );
  const results = await Promise.all(jobs);
  const isRight = results.every((wins) => Array.isArray(wins) && wins.length === TIMES);
  check("openElsewhere returns what runJob returned", isRight, `${TIMES} results`, results);
  return results as boolean[][];
}

/**
 * Does a job of `openElsewhere` in the process that this runs in. A job and its result are JSON.
 *
 * @param driver a driver of the same engine as that of the test
 * @returns what `openElsewhere` returns to the test
 */
export async function runJob(driver: StoreDriver, job: DriverJob): Promise<unknown> {
  await meet(driver, job);
  const wins: boolean[] = [];
  for (let turn = 0; turn < TIMES; turn += 1) {
    const key = jobKey(job.partition, job.name === "increment" ? "number" : `record-${turn}`);
    wins.push(await JOBS[job.name](driver, key, job));
  }
  return wins;
}

/** A key of the records of a job. */
function jobKey(partition: string, id: string): RecordKey {
  return { kind: "grant", partition, id };
}

const JOBS: Record<DriverJob["name"], (driver: StoreDriver, key: RecordKey, job: DriverJob) => Promise<boolean>> = {
  increment,
  create: async (driver, key, { process }) => (await driver.put(key, `of ${process}`, undefined)) !== undefined,
  recreate: async (driver, key, { process }) => (await driver.put(key, `of ${process}`, undefined)) !== undefined,
  delete: (driver, key) => driver.delete(key),
  claim: async (driver, key, { process }) => (await driver.claim(key, claimOf(`of ${process}`))).held,
};

/** Tries until its own put wins. */
async function increment(driver: StoreDriver, key: RecordKey): Promise<boolean> {
  for (;;) {
    const stored = await driver.get(key);
    const next = String(Number(stored?.value ?? 0) + 1);
    if ((await driver.put(key, next, stored?.version)) !== undefined) return true;
  }
}

/** Waits until all processes are there: they need different times to start. */
async function meet(driver: StoreDriver, job: DriverJob): Promise<void> {
  const place = (process: number): RecordKey => ({ kind: "client", partition: job.partition, id: `${process}` });
  await driver.put(place(job.process), "here", undefined);
  await eventually(2 * SOON_MS, "a driver sees the records of other processes", async () => {
    for (let process = 0; process < PROCESSES; process += 1)
      if ((await driver.get(place(process))) === undefined) return false;
    return true;
  });
}
