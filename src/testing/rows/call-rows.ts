import type { DriverCallOptions, StoreDriver } from "../../store/driver/driver.js";
import { type Bench, claimOf, create, freshKey, type Row, SOON_MS } from "../bench.js";
import { check, checkEqual, checkRejected, within } from "../check.js";

/** Rows about every call. */
export const callRows: readonly Row[] = [
  { name: "a driver names its engine and its place", run: namesItself },
  { name: "a signal that has fired fails every operation with aborted", run: refusesFiredSignals },
  { name: "a signal that fires ends the wait and not the driver", run: survivesAborts },
  { name: "health reports the clock, the risks and the errors", needs: ["health"], run: reportsHealth },
];

/** Every operation that waits for the engine, each on a key of no record. */
export function everyOperation(driver: StoreDriver): Record<string, (options?: DriverCallOptions) => Promise<unknown>> {
  const key = freshKey();
  const filter = { kind: key.kind, partition: key.partition };
  return {
    get: (options) => driver.get(key, options),
    put: (options) => driver.put(key, "text", undefined, options),
    delete: (options) => driver.delete(key, undefined, options),
    scan: (options) => driver.scan(filter, { limit: 10 }, options),
    claim: (options) => driver.claim(key, claimOf("a"), options),
    extend: (options) => driver.extend(key, claimOf("a"), options),
    release: (options) => driver.release(key, { owner: "a", note: undefined }, options),
  };
}

async function namesItself({ open }: Bench): Promise<void> {
  const { system, location } = await open();
  check("system is the name of the engine", /^[a-z][a-z0-9._-]*$/.test(system), "a name such as postgresql", system);
  check("location is a text for the user", typeof location === "string" && location !== "", "a text", location);
  check("location holds no credentials", !/\/\/[^/]*@/.test(location), "an address without a user", location);
}

async function refusesFiredSignals({ open }: Bench): Promise<void> {
  const driver = await open();
  const signal = AbortSignal.abort(new Error("the test aborted it"));
  for (const [name, operation] of Object.entries(everyOperation(driver))) {
    const rule = `${name} fails with aborted if its signal has fired`;
    const wanted = { code: "aborted", class: "aborted", retryable: false };
    await within(SOON_MS, rule, checkRejected(rule, operation({ signal }), wanted));
  }
}

async function survivesAborts({ open }: Bench): Promise<void> {
  const driver = await open();
  const key = freshKey();
  const version = await create(driver, key);
  for (let round = 0; round < 10; round += 1) {
    for (const [name, operation] of Object.entries(everyOperation(driver))) {
      const controller = new AbortController();
      const work = operation({ signal: controller.signal }).catch(() => {});
      controller.abort();
      await within(SOON_MS, `${name} ends when its signal fires`, work);
    }
  }
  const rule = "an aborted operation does not spoil the answers of the next ones";
  checkEqual(rule, await driver.get(key), { key, version, value: "text" });
  checkEqual(rule, await driver.delete(key, version), true);
}

async function reportsHealth({ open }: Bench): Promise<void> {
  const driver = await open();
  const health = await driver.health?.();
  check("health is one of the operations", health !== undefined, "a report", health);
  const { clockAheadMs, risks, errors, facts } = health;
  check("clockAheadMs is a number", Number.isFinite(clockAheadMs), "milliseconds", clockAheadMs);
  const texts = [...risks, ...errors, ...Object.values(facts)];
  check(
    "risks, errors and facts are texts",
    texts.every((text) => typeof text === "string"),
    "texts",
    texts,
  );
  checkEqual("an engine for tests has no error that forbids its use", errors, []);
}
