import type { StoreDriver } from "../store/driver/driver.js";
import type { Bench, Need, Row } from "./bench.js";
import type { DriverJob } from "./driver-job.js";
import { brokenRows } from "./rows/broken-rows.js";
import { callRows } from "./rows/call-rows.js";
import { expiryRows } from "./rows/expiry-rows.js";
import { leaseRows } from "./rows/lease-rows.js";
import { leaseTimeRows } from "./rows/lease-time-rows.js";
import { nameRows } from "./rows/name-rows.js";
import { processRows } from "./rows/process-rows.js";
import { recordRows } from "./rows/record-rows.js";
import { restartRows } from "./rows/restart-rows.js";
import { scanRows } from "./rows/scan-rows.js";
import { watchRows } from "./rows/watch-rows.js";

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
  /** Closes a driver that `open` returned, after the row that opened it. Default: it needs no closing. */
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
 * Declares a test for each rule of {@link StoreDriver}; an error names the rule, what was expected and what came. Rows that
 * need an option which is missing are declared as left out.
 *
 * The rows use names of their own, so that the engine may hold other records; they leave theirs behind. While some rows wait
 * for the driver, `Date` of this process is wrong by an hour: run no other test at the same time in the same process.
 */
export function driverContract(options: DriverContractOptions): void {
  const { test } = options;
  for (const { name, needs = [], run } of allRows(options)) {
    const missing = needs.filter((need) => !has(options, need));
    if (missing.length === 0) test(name, () => withBench(options, run));
    else leaveOut(test, `${name} (left out: needs ${missing.join(" and ")})`);
  }
}

function allRows({ broken, timeoutMs = 5000 }: DriverContractOptions): readonly Row[] {
  return [
    ...[callRows, recordRows, expiryRows, scanRows, nameRows, leaseRows, leaseTimeRows, watchRows, processRows].flat(),
    ...brokenRows(broken, timeoutMs),
    ...restartRows(timeoutMs),
  ];
}

function has(options: DriverContractOptions, need: Need): boolean {
  if (need === "watch" || need === "health") return options.without?.includes(need) !== true;
  // Its row is there only if no engine is broken.
  if (need === "broken") return false;
  return options[need] !== undefined;
}

function leaveOut(test: DeclareTest, name: string): void {
  const nothing = async () => {};
  if (test.skip) test.skip(name, nothing);
  else test(name, nothing);
}

async function withBench(options: DriverContractOptions, run: Row["run"]): Promise<void> {
  const opened: StoreDriver[] = [];
  const { openElsewhere, kill, restart } = options;
  const missing = () => Promise.reject(new TypeError("the row does not say what it needs"));
  const bench: Bench = {
    open: async () => {
      const driver = await options.open();
      opened.push(driver);
      return driver;
    },
    wait: options.wait ?? ((ms) => new Promise((resolve) => setTimeout(resolve, ms))),
    openElsewhere: openElsewhere ?? missing,
    kill: kill ?? missing,
    restart: restart ?? missing,
  };
  try {
    await run(bench);
  } finally {
    for (const driver of opened) await options.close?.(driver);
  }
}
