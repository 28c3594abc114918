import { Redis as IoRedis } from "ioredis";
import { createClient } from "redis";
import type { RedisConnection } from "../../../src/store/redis/connection.js";
import { labPackage } from "../../helpers/lab.js";

/** A client of an application, and how the test closes it. */
export interface OpenClient {
  readonly client: NonNullable<RedisConnection["client"]>;
  close(): void;
}

const LIKE_IOREDIS = {
  "ioredis 5": await labPackage<typeof import("ioredis")>("ioredis5"),
  "iovalkey 0.4": await labPackage<typeof import("ioredis")>("iovalkey"),
};

/** Connects a client of each package that is installed to a server on loopback. */
export const CLIENTS: Readonly<Record<string, (port: number) => Promise<OpenClient>>> = {
  "redis 6": (port) => connectRedis(port),
  "ioredis 6": async (port) => ioClient(new IoRedis(options(port))),
  ...Object.fromEntries(
    Object.entries(LIKE_IOREDIS).flatMap(([name, loaded]) =>
      loaded === undefined ? [] : [[name, async (port: number) => ioClient(new loaded.Redis(options(port)))]],
    ),
  ),
};

/** Connects a client of `redis`. */
export async function connectRedis(port: number, more: { username?: string; password?: string } = {}) {
  const client = createClient({ ...more, socket: { host: "127.0.0.1", port, reconnectStrategy: () => 20 } });
  // Without a listener the error of a lost connection ends the process.
  client.on("error", () => {});
  await client.connect();
  return { client, close: () => client.destroy() };
}

function options(port: number) {
  return { host: "127.0.0.1", port, retryStrategy: () => 20 };
}

function ioClient(client: IoRedis): OpenClient {
  client.on("error", () => {});
  return { client, close: () => client.disconnect() };
}
