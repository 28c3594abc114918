// Faults of the network, of the application, of the engine's rows, rights and clock, and of its operators, during refreshes
// at an issuer that ends a session when a refresh token comes twice.

import { inLanes } from "../lanes.mjs";
import { must, quantile, randomFrom, until } from "../tools.mjs";
import { openArena } from "./engines.mjs";
import { countLosses } from "./fleet.mjs";
import { missingPostgres } from "./postgres.mjs";
import { missingRedis } from "./redis.mjs";

/** Milliseconds for which the response of the issuer is held back. */
export const WINDOW_MS = 500;
const NAMES = { redis: "Redis", postgres: "PostgreSQL" };
const MISSING = { redis: missingRedis, postgres: missingPostgres };

/**
 * A scenario of faults that end no session.
 *
 * @param about.title the title of its table
 * @param about.kinds each with `what`; `engines`, default both, and `short`, those of a short run; `users`; how the arena is
 * opened; `needs`, which says why it cannot be run; `trial(arena, draw)`, which returns the answers of the processes; and
 * `tolerates`, the documented reason why a refresh token may be used twice
 * @param about.lanes how many are run at once
 */
export function faultScenario({ title, kinds, lanes = 8 }) {
  const header = [
    "what",
    "engine",
    "n",
    "refreshes",
    "used twice",
    "lost",
    "calls that failed first",
    "longest wait (s)",
  ];
  const unavailable = () => {
    const reasons = kinds.flatMap(({ engines = ["redis", "postgres"] }) => engines.map((kind) => MISSING[kind]()));
    return reasons.every(Boolean) ? reasons[0] : undefined;
  };
  const run = async ({ size, seed, isNamed, each = size === "long" ? 200 : 1, say }) => {
    const rows = [];
    const isShort = size === "short" && !isNamed;
    for (const kind of kinds) {
      for (const engine of (isShort ? kind.short : kind.engines) ?? (isShort ? [] : ["redis", "postgres"])) {
        const reason = MISSING[engine]() ?? kind.needs?.();
        if (reason === undefined) rows.push(await runKind(kind, { engine, seed, each, lanes, say }));
        else rows.push([`${kind.what} (not run: ${reason})`, NAMES[engine], ...Array(header.length - 2).fill(0)]);
      }
    }
    return rows;
  };
  return { title, header, unavailable, run };
}

async function runKind(kind, { engine, seed, each, lanes, say }) {
  const { what, users = 1, grace = 0, trial, tolerates, ...options } = kind;
  const draw = randomFrom(seed, `${what} ${engine}`);
  const sum = { n: 0, refreshes: 0, twice: 0, lost: 0, failed: 0 };
  const waits = [];
  const once = async (arena) => {
    const { fleet } = arena;
    fleet.begin();
    const outcome = await countLosses(fleet, await trial(arena, draw), what);
    for (const name of Object.keys(outcome)) if (name in sum) sum[name] += outcome[name];
    sum.n++;
    waits.push(...outcome.waits);
    if (sum.n % 20 === 0) say(`${NAMES[engine]}, ${what}: ${JSON.stringify(sum)}`);
    must(
      tolerates || outcome.lost + outcome.twice === 0,
      () => `${NAMES[engine]}, ${what}: ${JSON.stringify(outcome)}`,
    );
  };
  const open = () => openArena(engine, { users, grace }, options);
  await inLanes(Math.min(lanes, each), open, Array(each).fill(kind), once);
  const longest = (quantile(waits, 1) / 1000).toFixed(1);
  return [what, NAMES[engine], sum.n, sum.refreshes, sum.twice, sum.lost, sum.failed, longest];
}

/**
 * A process begins to refresh the tokens of all users: the issuer, which takes its time, has the requests.
 *
 * @returns `own`, the answer of the process
 */
export async function beginRefresh(fleet, holder, tries) {
  const { length } = fleet.profiles;
  fleet.sandbox.faults.add({ kind: "slow-headers", ms: WINDOW_MS, path: "token", times: length });
  const [own] = fleet.ask(tries, [holder]);
  await until(() => fleet.ledger.all().length >= length, "the requests");
  return { own };
}
