import type { StoreDriver } from "../../../src/store/driver/driver.js";
import { sleep } from "./check.js";
import { brokenCases, callCases, healthCases, restartCases } from "./engine-cases.js";
import { leaseCases } from "./lease-cases.js";
import { processCases } from "./process-cases.js";
import { recordCases } from "./record-cases.js";
import { nameCases, scanCases } from "./scan-cases.js";
import { type Cases, type DriverJob, freshKey, leaseOf, type Need } from "./store-under-test.js";
import { watchCases, watchGapCases } from "./watch-cases.js";

/** Declares a test: `test` of Vitest or `node:test`, `it` of Mocha or Jest. It must allow a test at least two minutes. */
export interface DeclareTest {
  (name: string, run: () => Promise<void>): unknown;
  /** Declares a test that is left out. Default: an empty test whose name says so. */
  readonly skip?: (name: string, run: () => Promise<void>) => unknown;
}

/** Options of {@link driverContract}. */
export interface DriverContractOptions {
  /** Declares a test of the runner. */
  readonly test: DeclareTest;
  /** Opens a driver. Each call returns one of the same engine, with its own connection if the driver has one. */
  open(): StoreDriver | Promise<StoreDriver>;
  /** Closes a driver that `open` returned, after the case that opened it. Default: it needs no closing. */
  close?(driver: StoreDriver): unknown;
  /**
   * Starts another process that opens a driver of the same engine and passes it to {@link runJob} with the job, and returns
   * the result. The job and the result are JSON. It is called several times at once.
   */
  openElsewhere?(job: DriverJob): Promise<unknown>;
  /** Kills the engine without a warning, as SIGKILL does. */
  kill?(): Promise<void>;
  /** Starts the engine again with the data and at the address that it had. */
  restart?(): Promise<void>;
  /**
   * Opens a driver of an engine that is broken; the name of each completes "an engine that …", such as
   * `refuses connections` or `never answers`.
   */
  readonly broken?: Readonly<Record<string, () => StoreDriver | Promise<StoreDriver>>>;
  /** Milliseconds after which the drivers give up an operation. Default: 5,000. */
  readonly timeoutMs?: number;
  /** Lets at least this many milliseconds pass on the clock of the engine. Default: waits for so long. */
  wait?(ms: number): Promise<void>;
  /** Optional operations that the driver does not have. Default: it has all. */
  readonly without?: readonly ("watch" | "health")[];
}

/**
 * Declares a test for each rule of {@link StoreDriver}; an error names the rule, what was expected and what came. Cases
 * that need an option which is missing are declared as left out.
 *
 * The cases use names of their own, so that the engine may hold other records; they leave theirs behind. While some
 * cases wait for the driver, `Date` of this process is wrong by an hour: run no other test at the same time in the same
 * process.
 */
export function driverContract(options: DriverContractOptions): void {
  const { test } = options;
  for (const [needs, cases] of allCases(options)) {
    const missing = needs.filter((need) => !hasOption(options, need));
    for (const [name, run] of Object.entries(cases)) {
      const leftOutName = `${name} (left out: needs ${missing.join(" and ")})`;
      if (missing.length === 0) test(name, () => withTestbed(options, run));
      else if (test.skip) test.skip(leftOutName, leftOut);
      else test(leftOutName, leftOut);
    }
  }
}

/** All cases, each group with what it needs. */
function allCases({ broken = {}, timeoutMs = 5000 }: DriverContractOptions): [readonly Need[], Cases][] {
  return [
    [[], callCases],
    [["health"], healthCases],
    [[], { ...recordCases, ...scanCases, ...nameCases, ...leaseCases }],
    [["watch"], watchCases],
    [["watch", "kill", "restart"], watchGapCases],
    [["openElsewhere"], processCases],
    [["broken"], brokenCases(broken, timeoutMs)],
    [["kill", "restart"], restartCases(timeoutMs)],
  ];
}

function hasOption(options: DriverContractOptions, need: Need): boolean {
  if (need === "watch" || need === "health") return options.without?.includes(need) !== true;
  if (need === "broken") return Object.keys(options.broken ?? {}).length > 0;
  return options[need] !== undefined;
}

async function leftOut(): Promise<void> {}

async function withTestbed(options: DriverContractOptions, run: Cases[string]): Promise<void> {
  const missing = () => Promise.reject(new TypeError("the case does not say what it needs"));
  const { openElsewhere = missing, kill = missing, restart = missing, wait = sleep } = options;
  const opened: StoreDriver[] = [];
  const open = async () => {
    const driver = await options.open();
    opened.push(driver);
    return driver;
  };
  try {
    const driver = await open();
    await run({ driver, key: freshKey(), lease: leaseOf(driver), open, wait, openElsewhere, kill, restart });
  } finally {
    for (const driver of opened) await options.close?.(driver);
  }
}
