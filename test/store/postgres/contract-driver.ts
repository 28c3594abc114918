import { postgresDriver } from "../../../src/store/postgres/postgres-driver.js";
import { runJob } from "../driver-contract/process-cases.js";
import type { DriverJob } from "../driver-contract/store-under-test.js";
import { CLIENTS } from "./clients.js";
import type { PostgresServer } from "./postgres-server.js";

/** A job of the contract for another process. */
export interface ElsewhereJob {
  options: PostgresServer["options"];
  client: keyof typeof CLIENTS;
  job: DriverJob;
}

process.on("message", async ({ options, client: name, job }: ElsewhereJob) => {
  const { client, close } = CLIENTS[name](options);
  const result = await runJob(postgresDriver({ client }, { timeoutMs: 60_000 }), job);
  await close();
  process.send?.({ event: "done", result });
});
