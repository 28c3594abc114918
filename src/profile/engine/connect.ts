import type { QueryClient, UnsafeClient } from "../../store/postgres/client.js";
import { postgresDriver } from "../../store/postgres/postgres-driver.js";
import type { IoRedisClient, NodeRedisClient } from "../../store/redis/connection.js";
import { redisError } from "../../store/redis/engine.js";
import { redisDriver } from "../../store/redis/redis-driver.js";
import type { ClientPackage, ConnectedDriver, EngineAddress, PackageName } from "./engine.js";

type Module = Readonly<Record<string, unknown>>;
type Connect = (module: Module, address: EngineAddress) => Promise<ConnectedDriver>;

const CONNECT_MS = 2000;
const MAX_CONNECTIONS = 4;
/** A logout is to reach the near caches of other processes. */
const ANNOUNCED = { notify: true };

/** Connects with a package of the user. @throws `AgentAuthError` as the driver of the engine */
export async function connectWith({ name, load }: ClientPackage, address: EngineAddress): Promise<ConnectedDriver> {
  return CONNECT[name](await load(), address);
}

const CONNECT: Readonly<Record<PackageName, Connect>> = {
  redis: nodeRedis,
  ioredis: ioRedis,
  iovalkey: ioRedis,
  pg: nodePostgres,
  postgres: postgresJs,
};

/** What clients of Redis have, as far as it is used here. */
interface Connectable {
  on(event: "error", listener: (error: unknown) => void): unknown;
  connect(): Promise<unknown>;
}

type NodeRedis = NodeRedisClient & Connectable & { destroy(): void };

async function nodeRedis(module: Module, { url, location }: EngineAddress): Promise<ConnectedDriver> {
  const createClient = requireExport<(options: object) => NodeRedis>(module, "createClient");
  const client = createClient({ url, socket: { connectTimeout: CONNECT_MS, reconnectStrategy: false } });
  return connectRedis(client, location, async () => client.destroy());
}

type IoRedis = IoRedisClient & Connectable & { disconnect(): void };

async function ioRedis(module: Module, { url, location }: EngineAddress): Promise<ConnectedDriver> {
  const Redis = requireExport<new (url: string, options: object) => IoRedis>(module, "Redis");
  const options = { lazyConnect: true, connectTimeout: CONNECT_MS, maxRetriesPerRequest: 0, retryStrategy: () => null };
  const client = new Redis(url, options);
  return connectRedis(client, location, async () => client.disconnect());
}

async function connectRedis(
  client: NodeRedis | IoRedis,
  location: string,
  close: () => Promise<void>,
): Promise<ConnectedDriver> {
  // A client without a listener ends the process, and some report the reason only there.
  let reported: unknown;
  client.on("error", (error) => {
    reported = error;
  });
  try {
    await client.connect();
  } catch (error) {
    await close().catch(() => {});
    throw redisError(reported ?? error, location.replace(/^redis at /, ""));
  }
  return { driver: redisDriver({ client }), close };
}

type PgPool = QueryClient & { on(event: "error", listener: () => void): unknown; end(): Promise<void> };

async function nodePostgres(module: Module, { url, host, port, database }: EngineAddress): Promise<ConnectedDriver> {
  const Pool = requireExport<new (options: object) => PgPool>(module, "Pool");
  // The driver names what is not in the connection string, and the connection string decides.
  const named = { host, port, ...(database !== "" && { database }) };
  const limits = { max: MAX_CONNECTIONS, connectionTimeoutMillis: CONNECT_MS, allowExitOnIdle: true };
  const client = new Pool({ ...named, connectionString: url, ...limits });
  client.on("error", () => {});
  return { driver: postgresDriver({ client }, ANNOUNCED), close: () => client.end() };
}

type Sql = UnsafeClient & { end(options: { timeout: number }): Promise<void> };

async function postgresJs(module: Module, { url, host, port }: EngineAddress): Promise<ConnectedDriver> {
  const postgres = requireExport<(url: string, options: object) => Sql>(module, "default");
  const limits = { max: MAX_CONNECTIONS, connect_timeout: CONNECT_MS / 1000, onnotice() {} };
  // This package would send a host among the parameters to the server, as a setting.
  const address = new URL(url);
  address.searchParams.delete("host");
  const client = postgres(address.href, { host, port, ...limits });
  return { driver: postgresDriver({ client }, ANNOUNCED), close: () => client.end({ timeout: 1 }) };
}

/** What a module exports; one in CommonJS may have it only in its default export. */
function requireExport<T>(module: Module, name: string): T {
  const found = module[name] ?? (Object(module["default"]) as Module)[name];
  if (typeof found !== "function") throw new TypeError(`the package exports no ${name}`);
  return found as T;
}
