// The engines that a run starts.
import { openFleet } from "./fleet.mjs";
import { missingPostgres, startPostgres } from "./postgres.mjs";
import { startProxy } from "./proxy.mjs";
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

/**
 * A fleet with an engine and three processes of its own, which may be killed or stopped without harm to others.
 *
 * @param more.engine how the engine is started
 * @param more.worker settings of each process
 * @param more.cuts whether each process reaches the engine over a network of its own, which can be cut
 * @param more.prepare changes the engine before the logins
 */
export async function openArena(kind, options, { worker, cuts = false, prepare, ...more } = {}) {
  const engine = await START[kind](more.engine);
  const arena = { engine, proxies: [], close: () => arena.engine.close() };
  try {
    await prepare?.(engine);
    arena.fleet = await openFleet({ engine, ...options });
    arena.close = async () => {
      for (const proxy of arena.proxies) proxy.close();
      await arena.fleet.close().finally(() => arena.engine.close());
    };
    const open = async () => {
      const proxy = cuts ? await startProxy(engine.target) : undefined;
      if (proxy) arena.proxies.push(proxy);
      const settings = { via: proxy?.port, ...worker };
      return Object.assign(await arena.fleet.worker(settings), { proxy, settings });
    };
    arena.fleet.crew = await Promise.all(Array.from({ length: PROCESSES }, open));
    return arena;
  } catch (error) {
    await arena.close();
    throw error;
  }
}
