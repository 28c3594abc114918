import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from "vitest";
import type { RecordKey, StoreDriver } from "../../../src/store/driver/driver.js";
import { postgresDriver } from "../../../src/store/postgres/postgres-driver.js";
import { storeSql } from "../../../src/store/postgres/store-sql.js";
import { jobProcesses } from "../../helpers/child.js";
import { driverContract } from "../driver-contract/driver-contract.js";
import { CLIENTS, type TestClient } from "./clients.js";
import type { ElsewhereJob } from "./contract-driver.js";
import { migrate } from "./migrate.js";
import { MISSING_POOLER, type Pooler, startPgBouncer } from "./pgbouncer.js";
import { MISSING_SERVER, type PostgresServer, startPostgres } from "./postgres-server.js";

const MISSING = MISSING_SERVER || MISSING_POOLER;
const elsewhere = jobProcesses(new URL("contract-driver.ts", import.meta.url));
const TIMEOUT_MS = 60_000;
const UNDELIVERED = expect.stringContaining("notifications do not arrive");
const NAMES = ["pg", "postgres"] as const;

describe.skipIf(MISSING)(`a server behind PgBouncer${MISSING}`, () => {
  let server: PostgresServer;
  const poolers: Partial<Record<"session" | "transaction", Pooler>> = {};
  const opened = new Map<StoreDriver, TestClient>();

  beforeAll(async () => {
    server = await startPostgres();
    await migrate(server.options, storeSql());
    for (const mode of ["session", "transaction"] as const) poolers[mode] = await startPgBouncer(server.options, mode);
  });
  afterAll(async () => {
    await Promise.all(Object.values(poolers).map((pooler) => pooler.close()));
    await server?.close();
  });

  const addressOf = (mode: "session" | "transaction") => (poolers[mode] ?? server).options;

  function open(name: keyof typeof CLIENTS, mode: "session" | "transaction", timeoutMs = TIMEOUT_MS): StoreDriver {
    const made = CLIENTS[name](addressOf(mode));
    const driver = postgresDriver({ client: made.client }, { timeoutMs, notify: true });
    opened.set(driver, made);
    return driver;
  }

  /** A driver that listens until the test ends, and the changes that it reports. */
  async function watching(name: keyof typeof CLIENTS, mode: "session" | "transaction") {
    const driver = open(name, mode, 300);
    const changes: RecordKey[] = [];
    const controller = new AbortController();
    onTestFinished(async () => {
      controller.abort();
      await opened.get(driver)?.close();
    });
    await new Promise<void>((resolve) => {
      void driver.watch?.((key) => changes.push(key), resolve, controller.signal);
    });
    return { driver, changes };
  }

  describe.each(NAMES)("in transaction mode, with %s", (name) => {
    driverContract({
      test,
      open: () => open(name, "transaction"),
      close: (driver) => opened.get(driver)?.close(),
      timeoutMs: TIMEOUT_MS,
      without: ["watch"],
      openElsewhere: (job) =>
        elsewhere({ options: addressOf("transaction"), client: name, job } satisfies ElsewhereJob),
    });

    it("reports as a risk that no notification arrives", async () => {
      const { driver, changes } = await watching(name, "transaction");
      await expect.poll(async () => (await driver.health?.())?.risks).toEqual([UNDELIVERED]);
      await driver.put({ kind: "grant", partition: "p", id: name }, "v", undefined);
      expect(changes).toEqual([]);
    });
  });

  it.each(NAMES)("in session mode reports changes, and no risk (%s)", async (name) => {
    const { driver, changes } = await watching(name, "session");
    const key: RecordKey = { kind: "grant", partition: "p", id: `session ${name}` };
    await driver.put(key, "v", undefined);
    await expect.poll(() => changes).toEqual([key]);
    // Longer than the notification of the listener itself may take.
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect((await driver.health?.())?.risks).toEqual([]);
    expect(changes).toEqual([key]);
  });
});
