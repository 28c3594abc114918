import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, test } from "vitest";
import type { StoreDriver } from "../../../src/store/driver/driver.js";
import { postgresDriver } from "../../../src/store/postgres/postgres-driver.js";
import { storeSql } from "../../../src/store/postgres/store-sql.js";
import { jobProcesses } from "../../helpers/child.js";
import { temporaryFolder } from "../../helpers/folder.js";
import { driverContract } from "../driver-contract/driver-contract.js";
import { CLIENTS, type TestClient } from "./clients.js";
import type { ElsewhereJob } from "./contract-driver.js";
import { migrate } from "./migrate.js";
import { MISSING_SERVER, type PostgresServer, startPostgres } from "./postgres-server.js";

const elsewhere = jobProcesses(new URL("contract-driver.ts", import.meta.url));
const TIMEOUT_MS = 60_000;
const SHORT_MS = 500;

describe.skipIf(MISSING_SERVER)(`a server${MISSING_SERVER}`, () => {
  let server: PostgresServer;
  let silent: { server: Server; options: PostgresServer["options"] };

  beforeAll(async () => {
    server = await startPostgres();
    await migrate(server.options, storeSql());
    silent = await startSilent();
  });
  afterAll(async () => {
    await server?.close();
    silent?.server.close();
  });

  describe.each(["pg", "postgres"] as const)("with %s", (client) => {
    const opened = new Map<StoreDriver, TestClient>();
    const open = (options: PostgresServer["options"], timeoutMs: number) => {
      const made = CLIENTS[client](options);
      const driver = postgresDriver({ client: made.client }, { timeoutMs, notify: true });
      opened.set(driver, made);
      return driver;
    };
    const nowhere = () => ({ ...server.options, host: join(temporaryFolder(), "nothing") });
    driverContract({
      test,
      open: () => open(server.options, TIMEOUT_MS),
      close: (driver) => opened.get(driver)?.close(),
      timeoutMs: TIMEOUT_MS,
      broken: {
        "refuses connections": () => open(nowhere(), SHORT_MS),
        "never answers": () => open(silent.options, SHORT_MS),
      },
      kill: () => server.kill(),
      restart: () => server.start(),
      openElsewhere: (job) => elsewhere({ options: server.options, client, job } satisfies ElsewhereJob),
    });
  });
});

/** What takes connections as a server does, and never writes. */
async function startSilent() {
  const host = temporaryFolder();
  const server = createServer((socket) => socket.unref().on("error", () => {})).listen(join(host, ".s.PGSQL.5432"));
  await once(server, "listening");
  return { server, options: { host, port: 5432, user: "postgres", database: "postgres" } };
}
