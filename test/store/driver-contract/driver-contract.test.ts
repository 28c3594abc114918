import { afterEach, describe, expect, it, test, vi } from "vitest";
import type { StoreDriver } from "../../../src/store/driver/driver.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";
import { type DriverContractOptions, driverContract } from "./driver-contract.js";
import { faults, killable, unavailable } from "./engines.js";
import { leaseMutants } from "./lease-mutants.js";
import { changed, putAnyway, type TestClock } from "./mutant.js";
import { runJob } from "./process-cases.js";
import { recordMutants } from "./record-mutants.js";
import type { DriverJob } from "./store-under-test.js";

afterEach(() => void vi.useRealTimers());

function testClock(): TestClock {
  let now = 1_900_000_000_000;
  return {
    epoch: () => now,
    advance: (ms) => {
      now += Math.ceil(ms);
    },
  };
}

/** The options for a driver in this process, whose clock moves only when a case waits. */
function optionsFor(open: (clock: TestClock) => StoreDriver) {
  const clock = testClock();
  const driver = open(clock);
  return { open: () => driver, wait: async (ms: number) => clock.advance(ms) };
}

/** The options for an engine that is killed, and whose jobs run in this process. */
function optionsForEngine(fault = {}) {
  const clock = testClock();
  const engine = killable(clock, fault);
  return {
    ...engine,
    wait: async (ms: number) => clock.advance(ms),
    openElsewhere: async (job: unknown) => runJob(engine.open(), JSON.parse(JSON.stringify(job))),
    broken: { "refuses connections": () => brokenDriver(unavailable) },
  };
}

/** A driver of which every operation ends in the same way. */
function brokenDriver(outcome: () => Promise<never>): StoreDriver {
  const names = ["get", "put", "delete", "scan", "claim", "extend", "release"];
  return changed(memoryDriver(), Object.fromEntries(names.map((name) => [name, outcome])));
}

describe("the memory driver", () => {
  driverContract({ test, ...optionsFor((clock) => memoryDriver({ clock })) });
});

describe("an engine that is killed", () => {
  driverContract({ test, ...optionsForEngine() });
});

/** The cases of the contract, as a runner without `skip` declares them. */
function casesOf(options: Omit<DriverContractOptions, "test">) {
  const cases = new Map<string, () => Promise<void>>();
  driverContract({ ...options, test: (name, run) => cases.set(name, run) });
  return cases;
}

/** The error of a case, without the time that it waits. */
async function errorOf(caseName: string, options: Omit<DriverContractOptions, "test">): Promise<unknown> {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  let isOver = false;
  const error = Promise.resolve(casesOf(options).get(caseName)?.())
    .then(
      () => undefined,
      (reason: unknown) => reason,
    )
    .finally(() => {
      isOver = true;
    });
  while (!isOver) await vi.advanceTimersByTimeAsync(1000);
  return error;
}

describe("the contract of a driver", () => {
  it.each([...recordMutants, ...leaseMutants])("finds a driver that $mistake", async ({ caseName, open }) => {
    expect(await errorOf(caseName, optionsFor(open))).toMatchObject({ name: "ContractViolation" });
  });

  it.each(faults)("finds an engine that $mistake", async (fault) => {
    expect(await errorOf(fault.caseName, optionsForEngine(fault))).toMatchObject({ name: "ContractViolation" });
  });

  it.each([
    ["fails with another error", () => Promise.reject(new Error("connect ECONNREFUSED"))],
    ["waits for ever", () => new Promise<never>(() => {})],
    ["answers nothing", () => Promise.resolve() as Promise<never>],
  ])("finds a driver that %s if its engine is broken", async (_mistake, outcome) => {
    const broken = { "is gone": () => brokenDriver(outcome) };
    const caseName = "an engine that is gone is store_unavailable";
    const error = await errorOf(caseName, { ...optionsForEngine(), broken });
    expect(error).toMatchObject({ name: "ContractViolation" });
  });

  it.each(["of the puts of 4 processes none is lost", "of 4 processes one creates, removes and claims"])(
    "finds a driver that is atomic in its own process alone: %s",
    async (caseName) => {
      const options = optionsForEngine();
      const driver = options.open();
      const lossy = changed(driver, { put: (key, value, _expected, put) => putAnyway(driver, key, value, put) });
      const openElsewhere = (job: DriverJob) => runJob(lossy, job);
      expect(await errorOf(caseName, { ...options, openElsewhere })).toMatchObject({ name: "ContractViolation" });
    },
  );

  it("says in an error which rule was broken, what was expected and what came", async () => {
    const forgetful = optionsFor((clock) => changed(memoryDriver({ clock }), { get: async () => undefined }));
    const error = await errorOf("a record is read as it was put, by every driver of the engine", forgetful);
    expect(String(error)).toMatch(
      /^ContractViolation: get returns what put stored\n {2}expected: ".*value.*"\n {2}came: undefined$/,
    );
  });

  it("declares the cases that it leaves out, with what they need", () => {
    const skipped: string[] = [];
    const skip = (name: string) => skipped.push(name);
    const declare = Object.assign(() => {}, { skip });
    driverContract({ test: declare, open: memoryDriver, without: ["watch", "health"] });
    expect(skipped).toEqual([
      "health reports the clock, the risks and the errors (left out: needs health)",
      "a watch reports what other drivers write and remove (left out: needs watch)",
      "a watch ends with its signal (left out: needs watch)",
      "a watch says when changes may be missing (left out: needs watch and kill and restart)",
      "of the puts of 4 processes none is lost (left out: needs openElsewhere)",
      "of 4 processes one creates, removes and claims (left out: needs openElsewhere)",
      "a broken engine is store_unavailable (left out: needs broken)",
      "an acknowledged put is there after the engine was killed (left out: needs kill and restart)",
      "versions and attempts go on after the engine was killed (left out: needs kill and restart)",
      "an engine that was killed is store_unavailable until it is back (left out: needs kill and restart)",
    ]);
    const names = [...casesOf({ open: memoryDriver, without: ["watch", "health"] }).keys()];
    expect(names.filter((name) => name.includes("left out"))).toEqual(skipped);
    expect([...casesOf(optionsForEngine()).keys()].filter((name) => name.includes("left out"))).toEqual([]);
  });

  it("closes each driver that a case opened, also if the case fails", async () => {
    let [opened, closed] = [0, 0];
    const open = () => {
      opened += 1;
      return changed(memoryDriver(), { get: async () => undefined });
    };
    const close = () => {
      closed += 1;
    };
    await errorOf("a record is read as it was put, by every driver of the engine", { open, close });
    expect([opened, closed]).toEqual([2, 2]);
  });

  it("leaves the clock of the process as it was", async () => {
    const real = globalThis.Date;
    const open = (clock: TestClock) => memoryDriver({ clock });
    expect(await errorOf("a wrong clock of this machine moves no lease", optionsFor(open))).toBeUndefined();
    expect(globalThis.Date).toBe(real);
  });
});
