import { createClient } from "redis";
import type { StoreDriver } from "../../src/store/driver/driver.js";
import { postgresDriver } from "../../src/store/postgres/postgres-driver.js";
import { redisDriver } from "../../src/store/redis/redis-driver.js";
import { CLIENTS } from "../store/postgres/clients.js";
import type { PostgresServer } from "../store/postgres/postgres-server.js";

/** Where an engine is: the port of Redis, or the options of PostgreSQL. */
export type EngineAddress = number | PostgresServer["options"];

/** A driver of an engine, by a client of its own. */
export async function openEngine(at: EngineAddress): Promise<{ driver: StoreDriver; close(): unknown }> {
  if (typeof at !== "number") {
    const { client, close } = CLIENTS.pg(at);
    return { driver: postgresDriver({ client }), close };
  }
  const client = createClient({ socket: { host: "127.0.0.1", port: at } });
  // Without a listener the loss of the connection ends the process.
  await client.on("error", () => {}).connect();
  return { driver: redisDriver({ client: client as never }), close: () => client.destroy() };
}
