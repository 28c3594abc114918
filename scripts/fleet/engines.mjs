// The engines that a run starts.
import { missingPostgres, startPostgres } from "./postgres.mjs";
import { missingRedis, startRedis } from "./redis.mjs";

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
