import { redisDriver } from "../../../src/store/redis/redis-driver.js";
import { runJob } from "../driver-contract/process-cases.js";
import type { DriverJob } from "../driver-contract/store-under-test.js";
import { CLIENTS } from "./clients.js";

/** A job of the contract for a separate process. */
export interface RedisJob {
  readonly client: string;
  readonly port: number;
  readonly job: DriverJob;
}

process.on("message", async ({ client: name, port, job }: RedisJob) => {
  const opened = await CLIENTS[name]?.(port);
  if (!opened) throw new Error(`there is no client ${name}`);
  const result = await runJob(redisDriver(opened), job);
  opened.close();
  process.send?.({ event: "done", result });
});
