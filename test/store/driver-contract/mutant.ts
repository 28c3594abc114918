import type { RecordKey, StoreDriver, Version } from "../../../src/store/driver/driver.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";

/** The clock of an engine that a test moves. */
export interface TestClock {
  epoch(): number;
  advance(ms: number): void;
}

/** A mistake of a driver, and a case of the contract that finds it. */
export interface Mutant {
  readonly mistake: string;
  readonly caseName: string;
  open(clock: TestClock): StoreDriver;
}

/** Changes some operations of a driver. */
type Change = (driver: StoreDriver, clock: TestClock) => Partial<StoreDriver>;

export function mutant(mistake: string, caseName: string, change: Change): Mutant {
  return {
    mistake,
    caseName,
    open: (clock) => {
      const driver = memoryDriver({ clock });
      return changed(driver, change(driver, clock));
    },
  };
}

/** A driver with some other operations. */
export function changed(driver: StoreDriver, change: Partial<StoreDriver>): StoreDriver {
  return new Proxy(driver, {
    get: (target, name) => {
      if (name in change) return Reflect.get(change, name);
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

export function nameOf({ kind, partition, id }: RecordKey): string {
  return JSON.stringify([kind, partition, id]);
}

/** Puts whatever is stored; a put of another may come between its read and its write. */
export async function putAnyway(driver: StoreDriver, key: RecordKey, value: string, options: object | undefined) {
  let version: Version | undefined;
  while (version === undefined) version = await driver.put(key, value, (await driver.get(key))?.version, options);
  return version;
}
