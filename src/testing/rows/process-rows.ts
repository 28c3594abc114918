import { type Bench, create, freshName, type Row } from "../bench.js";
import { check, checkEqual } from "../check.js";
import type { DriverJob } from "../driver-job.js";
import { jobKey } from "../jobs.js";

const PROCESSES = 4;
const TIMES = 100;

/** Rows about several processes. */
export const processRows: readonly Row[] = [
  { name: "of the puts of 4 processes none is lost", needs: ["openElsewhere"], run: losesNoPut },
  { name: "of 4 processes one creates, removes and claims", needs: ["openElsewhere"], run: oneWins },
];

async function losesNoPut(bench: Bench): Promise<void> {
  const driver = await bench.open();
  const partition = freshName();
  await everywhere(bench, "increment", partition);
  const stored = await driver.get(jobKey({ partition }, "number"));
  checkEqual("of several puts on one version exactly one is stored", stored?.value, String(PROCESSES * TIMES));
}

async function oneWins(bench: Bench): Promise<void> {
  const driver = await bench.open();
  for (const name of ["create", "delete", "claim"] as const) {
    const partition = freshName();
    if (name === "delete")
      for (let turn = 0; turn < TIMES; turn += 1) await create(driver, jobKey({ partition }, `record-${turn}`));
    const results = await everywhere(bench, name, partition);
    const winners = Array.from({ length: TIMES }, (_, turn) => results.filter((wins) => wins[turn] === true).length);
    const isOne = winners.every((count) => count === 1);
    check(`of several processes exactly one has success with ${name}`, isOne, "1 for each record", winners);
  }
}

/** Where each process succeeded. */
async function everywhere(bench: Bench, name: DriverJob["name"], partition: string): Promise<readonly boolean[][]> {
  const jobs = Array.from({ length: PROCESSES }, (_, process) =>
    bench.openElsewhere({ name, partition, process, processes: PROCESSES, times: TIMES }),
  );
  const results = await Promise.all(jobs);
  const isRight = results.every((wins) => Array.isArray(wins) && wins.length === TIMES);
  check("openElsewhere returns what runJob returned", isRight, `${TIMES} results`, results);
  return results as boolean[][];
}
