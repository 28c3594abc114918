import { postgresDriver } from "../../../src/store/postgres/postgres-driver.js";
import type { DriverJob } from "../../../src/testing/driver-job.js";
import { runJob } from "../../../src/testing/jobs.js";
import { CLIENTS } from "./clients.js";
import type { PostgresServer } from "./postgres-server.js";

/** A job of the contract for another process. */
export interface ElsewhereJob {
  options: PostgresServer["options"];
  client: keyof typeof CLIENTS;
  job: DriverJob;
}

const { options, client: name, job } = JSON.parse(process.argv[2] ?? "") as ElsewhereJob;
const { client, close } = CLIENTS[name](options);
const result = await runJob(postgresDriver({ client }, { timeoutMs: 60_000 }), job);
process.send?.({ event: "done", result });
await close();
