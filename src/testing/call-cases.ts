import type { DriverCallOptions, StoreDriver } from "../store/driver/driver.js";
import { type Cases, checkStored, claimOf, create, freshKey, SOON_MS } from "./bench.js";
import { check, checkEqual, checkRejected, within } from "./check.js";

/** How every operation fails if the engine does not answer. */
export const UNAVAILABLE = { code: "store_unavailable", class: "unavailable", retryable: true };
const ABORTED = { code: "aborted", class: "aborted", retryable: false };

/** Cases about every call. */
export const callCases: Cases = {
  async "a driver names its engine and its place"({ driver }) {
    const { system, location } = driver;
    check("system is the name of the engine", /^[a-z][a-z0-9._-]*$/.test(system), "a name such as postgresql", system);
    check("location is a text for the user", typeof location === "string" && location !== "", "a text", location);
    check("location holds no credentials", !/\/\/[^/]*@/.test(location), "an address without a user", location);
  },

  async "a signal that has fired fails every operation with aborted"({ driver }) {
    const signal = AbortSignal.abort(new Error("the test aborted it"));
    for (const [name, operation] of everyOperation(driver)) {
      const rule = `${name} fails with aborted if its signal has fired`;
      await within(SOON_MS, rule, checkRejected(rule, operation({ signal }), ABORTED));
    }
  },

  async "a signal that fires ends the wait and not the driver"({ driver, key }) {
    const version = await create(driver, key);
    for (let round = 0; round < 10; round += 1) {
      for (const [name, operation] of everyOperation(driver)) {
        const controller = new AbortController();
        const work = operation({ signal: controller.signal }).catch(() => {});
        controller.abort();
        await within(SOON_MS, `${name} ends when its signal fires`, work);
      }
    }
    const rule = "an aborted operation does not spoil the answers of the next ones";
    await checkStored(rule, driver, key, version);
    checkEqual(rule, await driver.delete(key, version), true);
  },
};

/** Cases about the health. */
export const healthCases: Cases = {
  async "health reports the clock, the risks and the errors"({ driver }) {
    const health = await driver.health?.();
    check("health is one of the operations", health !== undefined, "a report", health);
    const { clockAheadMs, risks, errors, facts } = health;
    check("clockAheadMs is a number", Number.isFinite(clockAheadMs), "milliseconds", clockAheadMs);
    const texts = [...risks, ...errors, ...Object.values(facts)];
    const areTexts = texts.every((text) => typeof text === "string");
    check("risks, errors and facts are texts", areTexts, "texts", texts);
    checkEqual("an engine for tests has no error that forbids its use", errors, []);
  },
};

type Operation = (options?: DriverCallOptions) => Promise<unknown>;

/** Every operation that waits for the engine, each on a key of no record. */
function everyOperation(driver: StoreDriver): [string, Operation][] {
  const key = freshKey();
  const filter = { kind: key.kind, partition: key.partition };
  return Object.entries({
    get: (options) => driver.get(key, options),
    put: (options) => driver.put(key, "text", undefined, options),
    delete: (options) => driver.delete(key, undefined, options),
    scan: (options) => driver.scan(filter, { limit: 10 }, options),
    claim: (options) => driver.claim(key, claimOf("a"), options),
    extend: (options) => driver.extend(key, claimOf("a"), options),
    release: (options) => driver.release(key, { owner: "a", note: undefined }, options),
  } satisfies Record<string, Operation>);
}

/** Fails unless every operation fails with `store_unavailable` instead of waiting for ever. */
export async function checkUnavailable(driver: StoreDriver, timeoutMs: number): Promise<void> {
  // All at once: they wait for the same timeout. The rest of the limit is for a busy machine.
  const operations = everyOperation(driver).map(([name, operation]) => {
    const rule = `${name} fails with store_unavailable within the timeout if the engine does not answer`;
    return within(timeoutMs + SOON_MS, rule, checkRejected(rule, operation(), UNAVAILABLE));
  });
  await Promise.all(operations);
}
