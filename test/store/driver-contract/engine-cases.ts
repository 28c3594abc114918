import type { DriverCallOptions, StoreDriver, Version } from "../../../src/store/driver/driver.js";
import { check, checkEqual, checkRejected, checkRising, checkUnique, eventually, within } from "./check.js";
import {
  type Cases,
  checkStored,
  claimOf,
  create,
  freshKey,
  leaseOf,
  SOON_MS,
  type StoreUnderTest,
  scanAll,
} from "./store-under-test.js";

/** How every operation fails if the engine does not answer. */
const UNAVAILABLE = { code: "store_unavailable", class: "unavailable", retryable: true };
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
    checkEqual("risks, errors and facts are texts", texts, texts.map(String));
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
async function checkUnavailable(driver: StoreDriver, timeoutMs: number): Promise<void> {
  // All at once: they wait for the same timeout. The rest of the limit is for a busy machine.
  const operations = everyOperation(driver).map(([name, operation]) => {
    const rule = `${name} fails with store_unavailable within the timeout if the engine does not answer`;
    return within(timeoutMs + SOON_MS, rule, checkRejected(rule, operation(), UNAVAILABLE));
  });
  await Promise.all(operations);
}

type OpenBroken = () => StoreDriver | Promise<StoreDriver>;

/** A case for each way in which an engine is broken; without one, a case that shows what is left out. */
export function brokenCases(broken: Readonly<Record<string, OpenBroken>>, timeoutMs: number): Cases {
  const cases: Record<string, Cases[string]> = {};
  for (const [how, openBroken] of Object.entries(broken))
    cases[`an engine that ${how} is store_unavailable`] = async () => checkUnavailable(await openBroken(), timeoutMs);
  return Object.keys(broken).length > 0 ? cases : { "a broken engine is store_unavailable": async () => {} };
}

/** Cases about an engine that is killed and started again. */
export const restartCases = (timeoutMs: number): Cases => ({
  async "an acknowledged put is there after the engine was killed"({ driver, key, open, kill, restart }) {
    const { partition } = key;
    const acknowledged = new Map<string, Version>();
    let isDown = false;
    const write = async (writer: number) => {
      for (let turn = 0; !isDown; turn += 1) {
        const id = `${writer}/${turn}`;
        const version = await driver.put({ kind: "grant", partition, id }, id, undefined).catch(() => undefined);
        if (version === undefined) return;
        acknowledged.set(id, version);
      }
    };
    const writers = Array.from({ length: 8 }, (_, writer) => write(writer));
    await eventually(SOON_MS, "an engine acknowledges puts", async () => acknowledged.size >= 100);
    await kill();
    isDown = true;
    await Promise.all(writers);
    await restart();
    for (const { key, version } of await scanAll(await openAnswering(open), { kind: "grant", partition }))
      if (acknowledged.get(key.id) === version) acknowledged.delete(key.id);
    checkEqual("an acknowledged put is there after the engine was killed", [...acknowledged.keys()], []);
  },

  async "versions and attempts go on after the engine was killed"({ driver, key: removed, open, kill, restart }) {
    const [held, freed] = [freshKey("lease"), freshKey("lease")];
    const { attempt } = await leaseOf(driver, held).take("holder");
    const { attempt: old } = await leaseOf(driver, freed).take("holder");
    await leaseOf(driver, freed).release("holder");
    const version = await create(driver, removed);
    await driver.delete(removed);
    await kill();
    await restart();
    const back = await openAnswering(open);
    const { by } = await leaseOf(back, held).refuse();
    const holder = { owner: by.owner, attempt: by.attempt };
    checkEqual("an acknowledged lease is held after the engine was killed", holder, { owner: "holder", attempt });
    checkRising([old, (await leaseOf(back, freed).take("next")).attempt]);
    checkUnique([version, await create(back, removed)]);
  },

  async "an engine that was killed is store_unavailable until it is back"({ driver, key, kill, restart }) {
    const version = await create(driver, key);
    await kill();
    await checkUnavailable(driver, timeoutMs).finally(restart);
    const rule = "a driver works again when its engine is back";
    await eventually(2 * SOON_MS, rule, () => answers(driver));
    await checkStored(rule, driver, key, version);
  },
});

/** A driver that was opened after a restart, as soon as the engine answers. */
async function openAnswering(open: StoreUnderTest["open"]): Promise<StoreDriver> {
  const driver = await open();
  await eventually(2 * SOON_MS, "an engine that was started again answers", () => answers(driver));
  return driver;
}

async function answers(driver: StoreDriver): Promise<boolean> {
  try {
    await driver.get(freshKey());
    return true;
  } catch (error) {
    // Any other error is not one of an engine that is still down.
    await checkRejected("an engine that is down is store_unavailable", Promise.reject(error), UNAVAILABLE);
    return false;
  }
}
