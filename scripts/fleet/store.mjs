// A store in an engine, as a process of the fleet opens it.
import pg from "pg";
import { createClient } from "redis";
import { grantStore, keyRing, postgresDriver, redisDriver } from "./dist.mjs";

const KEY = new Uint8Array(32).fill(7);
const RECONNECT_MS = 50;

/**
 * Connects to an engine.
 *
 * @param at the `address` of an engine
 * @returns the driver; `raw` sends a command or a statement; `moveTo` connects to the engine that replaced it
 */
export async function connect(at, options = {}) {
  return at.kind === "redis" ? connectRedis(at, options) : connectPostgres(at, options);
}

/** The store of a tenant, sealed by the key that all processes of the fleet have. */
export function openStore(driver, { tenant, seal = ring(), ...options }) {
  return grantStore(driver, { seal, tenant, ...options });
}

function ring() {
  return keyRing({ current: "k1", keys: { k1: KEY }, nameKey: KEY });
}

async function connectRedis(at, options) {
  let client = await redisClient(at.port);
  const send = (args, _key, abortSignal) => client.sendCommand(args, { abortSignal });
  return {
    driver: redisDriver({ send }, options),
    raw: (args) => client.sendCommand(args),
    moveTo: async ({ port }) => {
      client.destroy();
      client = await redisClient(port);
    },
    close: async () => client.destroy(),
  };
}

async function redisClient(port) {
  const socket = { host: "127.0.0.1", port, reconnectStrategy: () => RECONNECT_MS };
  const client = createClient({ socket, disableOfflineQueue: true });
  // The driver reports what fails; the client connects again by itself.
  client.on("error", () => {});
  return client.connect();
}

async function connectPostgres({ options: database }, options) {
  const pool = new pg.Pool({ ...database, max: 4 });
  pool.on("error", () => {});
  return {
    driver: postgresDriver({ client: pool }, options),
    raw: (text) => pool.query(text),
    close: () => pool.end(),
  };
}
