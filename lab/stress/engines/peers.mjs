// Other ways to share logins over the same Redis, in the same situations as ours, with the same issuer.

import { fileURLToPath } from "node:url";
import Redis from "ioredis";
import { installPackages } from "../../install.mjs";
import { refresh } from "../issuer.mjs";
import { pause, quantile, randomFrom, until } from "../tools.mjs";
import { inEngines } from "./engines.mjs";
import { openFleet } from "./fleet.mjs";
import { missingRedis } from "./redis.mjs";

const PROGRAM = fileURLToPath(new URL("peers/worker.mjs", import.meta.url));

/** The scenario. */
export const peers = {
  title: "Other ways to share logins",
  header: [
    "situation, and what shares the logins",
    "refreshes needed",
    "token requests",
    "refused",
    "sessions lost",
    "calls without a token",
    "p99 of the waits (ms)",
    "CPU of a call (ms)",
  ],
  unavailable: missing,
  run,
};

const SITUATIONS = [
  { what: "all tokens expire at once", grace: 0, users: 20, work: expireAll },
  { what: "the issuer takes 3 s", grace: 0, users: 8, work: slowIssuer },
  { what: "a process is killed, with a grace of 30 s", grace: 30, users: 8, work: killOne },
  { what: "a process stands still for 12 s before its request", grace: 0, users: 4, work: stopOne, mayShare: true },
];
const SIZES = { short: { processes: 3, rounds: 3 }, long: { processes: 3, rounds: 20 } };
const SLOW_MS = 3000;
const RESPONSE_MS = 400;
/** Longer than every lock of the sides. */
const STOP_MS = 12_000;
/** How often a process requests a token that it does not get. */
const TRIES = 3;

function missing() {
  if (!installPackages()) return "npm could not install the packages of lab";
  return missingRedis();
}

/** @returns the rows of its table */
async function run({ size, seed, say }) {
  // Loaded here, because it imports what may not be installed.
  const { SIDES } = await import("./peers/sides.mjs");
  const rows = [];
  await inEngines(["redis"], async (_, engine) => {
    for (const situation of SITUATIONS) {
      const draw = randomFrom(seed, `peers ${situation.what}`);
      const one = (side) => judge({ name: side, ...SIDES[side] }, { ...SIZES[size], situation, engine, draw });
      const results = [];
      // What mostly waits runs at the same time.
      if (situation.mayShare) results.push(...(await Promise.all(Object.keys(SIDES).map(one))));
      else for (const side of Object.keys(SIDES)) results.push(await one(side));
      rows.push(...results);
      say(`${situation.what}: done`);
    }
  });
  return rows;
}

async function judge(side, { situation, engine, draw, processes, rounds }) {
  const fleet = await openFleet({ engine, users: situation.users, grace: situation.grace });
  const redis = new Redis(engine.address.port, "127.0.0.1", { keyPrefix: `${fleet.tenant}:` });
  try {
    const grants = await fleet.grants();
    for (const grant of grants) await side.seed(redis, grant, { fetch });
    fleet.ledger.clear();
    const settings = { side: side.name, address: engine.address, tenant: fleet.tenant };
    const start = () => fleet.start(settings, { program: PROGRAM });
    const crew = await Promise.all(Array.from({ length: processes }, start));
    fleet.expire();
    const { answers, needed } = await situation.work(fleet, crew, { rounds, draw });
    const [sent, refused] = [fleet.ledger.all().length, fleet.ledger.refusals().length];
    const waits = answers.flatMap((answer) => answer.waits);
    const cpu = answers.reduce((sum, answer) => sum + answer.cpu, 0);
    const calls = waits.length;
    const without = calls - answers.reduce((sum, { tokens }) => sum + Object.keys(tokens).length, 0);
    const lost = await lostOf(side, fleet, redis);
    return [
      `${situation.what}: ${side.name}`,
      needed,
      sent,
      refused,
      lost,
      without,
      Math.round(quantile(waits, 0.99)),
      (cpu / calls).toFixed(1),
    ];
  } finally {
    await fleet.close();
    redis.disconnect();
  }
}

/** A session is alive if the issuer accepts the refresh token that is stored. */
async function lostOf(side, fleet, redis) {
  let lost = 0;
  for (const grant of await fleet.grants()) {
    const stored = await side.refreshToken(redis, grant);
    const answer = stored === undefined ? {} : await refresh(grant, stored);
    if (answer.refresh_token === undefined) lost += 1;
  }
  return lost;
}

function askAll({ ahead, profiles }, crew, draw) {
  return crew.map((worker) => worker.ask({ ahead, profiles: turned(profiles, draw), tries: TRIES }));
}

/** The users from another one on, so that not all processes begin with the same. */
function turned(profiles, draw) {
  const by = draw.below(profiles.length);
  return [...profiles.slice(by), ...profiles.slice(0, by)];
}

async function expireAll(fleet, crew, { rounds, draw }) {
  const answers = [];
  for (let round = 0; round < rounds; round++) {
    if (round > 0) fleet.expire();
    answers.push(...(await Promise.all(askAll(fleet, crew, draw))));
  }
  return { answers, needed: rounds * fleet.profiles.length };
}

async function slowIssuer(fleet, crew, { draw }) {
  fleet.sandbox.faults.add({ kind: "slow-headers", ms: SLOW_MS, path: "token" });
  const answers = await Promise.all(askAll(fleet, crew, draw));
  fleet.sandbox.faults.clear();
  return { answers, needed: fleet.profiles.length };
}

/** The process is killed before it gets the responses to its first requests. */
async function killOne(fleet, [victim, ...crew], { draw }) {
  fleet.sandbox.faults.add({ kind: "slow-headers", ms: RESPONSE_MS, path: "token" });
  const [own] = askAll(fleet, [victim], draw);
  await until(() => fleet.ledger.all().length > 0, "a refresh");
  const others = askAll(fleet, crew, draw);
  await victim.kill();
  await own;
  return { answers: await Promise.all(others), needed: fleet.profiles.length };
}

async function stopOne(fleet, [victim, ...crew], { draw }) {
  const stage = victim.stage();
  const { ahead, profiles } = fleet;
  const own = victim.ask({ ahead, profiles: profiles.slice(0, 1), tries: TRIES, still: true });
  await stage;
  victim.signal("SIGSTOP");
  victim.go();
  const others = askAll(fleet, crew, draw);
  await pause(STOP_MS);
  victim.signal("SIGCONT");
  return { answers: await Promise.all([own, ...others]), needed: profiles.length };
}
