import { fork } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it, test } from "vitest";
import type { StoreDriver } from "../../../src/store/driver/driver.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";
import { compile } from "../../helpers/child.js";
import { driverContract } from "./driver-contract.js";
import type { Message } from "./job-driver.js";
import { changed, putAnyway } from "./mutant.js";
import type { DriverJob } from "./store-under-test.js";

/** Runs a job in another process, on a driver of this one. */
async function elsewhere(driver: StoreDriver, job: DriverJob): Promise<unknown> {
  const program = await compile(new URL("job-driver.ts", import.meta.url));
  const child = fork(program, [JSON.stringify(job)], { serialization: "advanced" });
  let result: unknown;
  child.on("message", async ({ call, name, args = [], answer }: Message) => {
    if (name === undefined) result = answer;
    else child.send({ call, answer: await Reflect.apply(Reflect.get(driver, name), driver, args) });
  });
  await once(child, "disconnect");
  return result;
}

/** Rows that need several processes. */
function casesWith(openElsewhere: (job: DriverJob) => Promise<unknown>, driver: StoreDriver) {
  const cases: [string, () => Promise<void>][] = [];
  const declare = (name: string, run: () => Promise<void>) => name.includes("4 processes") && cases.push([name, run]);
  driverContract({ test: declare, open: () => driver, openElsewhere });
  return cases;
}

describe("cases of several processes", () => {
  const driver = memoryDriver();
  for (const [name, run] of casesWith((job) => elsewhere(driver, job), driver)) test(name, run);

  it("find a driver that compares no versions", async () => {
    const driver = memoryDriver();
    const lossy = changed(driver, { put: (key, value, _expected, options) => putAnyway(driver, key, value, options) });
    const outcomes = casesWith((job) => elsewhere(lossy, job), lossy).map(([, run]) =>
      run().catch((error) => error.name),
    );
    expect(await Promise.all(outcomes)).toEqual(["ContractViolation", "ContractViolation"]);
  });
});
