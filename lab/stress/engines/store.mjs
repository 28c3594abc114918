// A store in an engine, as a process of the fleet opens it.

import pg from "pg";
import { createClient } from "redis";
import { grantStore, keyRing, postgresDriver, redisDriver } from "../dist.mjs";
import { must } from "../tools.mjs";

const KEY = new Uint8Array(32).fill(7);
const RECONNECT_MS = 50;
const POOL = 4;
const SAVES_AT_ONCE = 32;

/**
 * Connects to an engine.
 *
 * @param at the `address` of an engine
 * @param more.via the port of a proxy before it
 * @param more.movable whether another engine can take its place
 * @returns the driver; `raw` sends a command or a statement; `moveTo` connects to the engine that replaced it
 */
export async function connect(at, { via, movable, ...options } = {}) {
  if (at.kind === "redis") return connectRedis({ ...at, port: via ?? at.port }, movable, options);
  const database = { ...at.options, ...(via !== undefined && { host: "127.0.0.1", port: via }) };
  return connectPostgres(database, options);
}

/** The store of a tenant, sealed by the key that all processes of the fleet have. */
export function openStore(driver, { tenant, seal = ring(), ...options }) {
  return grantStore(driver, { seal, tenant, ...options });
}

/** Saves a login for each of many users. @param more what differs in the login of a user, by number */
export async function fillStore(store, grant, users, more = () => ({})) {
  let next = 0;
  const work = async () => {
    while (next < users) {
      const user = next++;
      must(await store.save({ ...grant, profile: `user-${user}`, ...more(user) }, undefined), "not saved");
    }
  };
  await Promise.all(Array.from({ length: SAVES_AT_ONCE }, work));
}

function ring() {
  return keyRing({ current: "k1", keys: { k1: KEY }, nameKey: KEY });
}

async function connectRedis(at, isMovable, options) {
  let client = await redisClient(at);
  const send = (args, _key, abortSignal) => client.sendCommand(args, { abortSignal });
  return {
    driver: redisDriver(isMovable ? { send } : { client }, options),
    raw: (args) => client.sendCommand(args),
    /** A blocking command of the application keeps the connection busy. */
    fill: (ms) => [client.sendCommand(["BLPOP", "application", String(ms / 1000)])],
    moveTo: async (to) => {
      client.destroy();
      client = await redisClient(to);
    },
    close: async () => client.destroy(),
  };
}

async function redisClient({ port, username }) {
  const socket = { host: "127.0.0.1", port, reconnectStrategy: () => RECONNECT_MS };
  const client = createClient({ socket, disableOfflineQueue: true, ...(username && { username, password: "any" }) });
  // The driver reports what fails; the client connects again by itself.
  client.on("error", () => {});
  return client.connect();
}

async function connectPostgres(database, options) {
  const pool = new pg.Pool({ ...database, max: POOL });
  pool.on("error", () => {});
  return {
    driver: postgresDriver({ client: pool }, options),
    raw: (text) => pool.query(text),
    /** The application's own statements take every connection, and queue up for more. */
    fill: (ms) => Array.from({ length: POOL }, () => pool.query(`SELECT pg_sleep(${ms / 1000})`)),
    // As where a name leads to the new primary: new connections go there.
    moveTo: async (at) => void Object.assign(pool.options, at.options),
    close: () => pool.end(),
  };
}
