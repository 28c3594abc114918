// The engines that a run starts.
import { openFleet } from "./fleet.mjs";
import { missingPostgres, startPostgres } from "./postgres.mjs";
import { missingRedis, startRedis } from "./redis.mjs";

const PROCESSES = 3;
const START = { redis: startRedis, postgres: startPostgres };

/** Why an engine cannot be started on this machine. */
export function missingEngine() {
  return missingRedis() ?? missingPostgres();
}

/** Starts each engine in turn for a piece of work. */
export async function inEngines(kinds, work) {
  for (const kind of kinds) {
    const engine = await START[kind]();
    try {
      await work(kind, engine);
    } finally {
      await engine.close();
    }
  }
}

/** A fleet with an engine and three processes of its own, which may be killed or stopped without harm to others. */
export async function openArena(kind, options) {
  const engine = await START[kind]();
  const arena = { engine, close: () => arena.engine.close() };
  try {
    arena.fleet = await openFleet({ engine, ...options });
    arena.close = () => arena.fleet.close().finally(() => arena.engine.close());
    arena.fleet.crew = await Promise.all(Array.from({ length: PROCESSES }, () => arena.fleet.worker()));
    return arena;
  } catch (error) {
    await arena.close();
    throw error;
  }
}
