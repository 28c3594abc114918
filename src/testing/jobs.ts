import type { RecordKey, StoreDriver, Version } from "../store/driver/driver.js";
import { claimOf, LONG_MS, SOON_MS } from "./bench.js";
import { eventually } from "./check.js";
import type { DriverJob } from "./driver-job.js";

/**
 * Does a job of `openElsewhere` in the process that this runs in. A job and its result are JSON.
 *
 * @param driver a driver of the same engine as that of the test
 * @returns what `openElsewhere` returns to the test
 */
export async function runJob(driver: StoreDriver, job: DriverJob): Promise<unknown> {
  await meet(driver, job);
  const wins: boolean[] = [];
  for (let turn = 0; turn < job.times; turn += 1) {
    const key = jobKey(job, job.name === "increment" ? "number" : `record-${turn}`);
    wins.push(await JOBS[job.name](driver, key, job));
  }
  return wins;
}

/** A key of the records of a job. */
export function jobKey({ partition }: Pick<DriverJob, "partition">, id: string): RecordKey {
  return { kind: "grant", partition, id };
}

const JOBS: Record<DriverJob["name"], (driver: StoreDriver, key: RecordKey, job: DriverJob) => Promise<boolean>> = {
  increment,
  create: async (driver, key, { process }) => (await driver.put(key, `of ${process}`, undefined)) !== undefined,
  delete: (driver, key) => driver.delete(key),
  claim: async (driver, key, { process }) => (await driver.claim(key, claimOf(`of ${process}`, LONG_MS))).held,
};

/** Tries until its own put wins. */
async function increment(driver: StoreDriver, key: RecordKey): Promise<boolean> {
  for (;;) {
    const stored = await driver.get(key);
    const version: Version | undefined = stored?.version;
    if ((await driver.put(key, String(Number(stored?.value ?? 0) + 1), version)) !== undefined) return true;
  }
}

/** Waits until all processes are there: they need different times to start. */
async function meet(driver: StoreDriver, job: DriverJob): Promise<void> {
  const place = (process: number): RecordKey => ({ kind: "client", partition: job.partition, id: `${process}` });
  await driver.put(place(job.process), "here", undefined);
  await eventually(2 * SOON_MS, "a driver sees the records of other processes", async () => {
    for (let process = 0; process < job.processes; process += 1)
      if ((await driver.get(place(process))) === undefined) return false;
    return true;
  });
}
