// The primary of two redis-servers is killed during refreshes, and its asynchronous replica becomes the primary.

import { tallyLanes } from "../lanes.mjs";
import { must, pause, randomFrom } from "../tools.mjs";
import { openArena } from "./engines.mjs";
import { judgeAnswers } from "./fleet.mjs";
import { missingRedis, startRedis } from "./redis.mjs";

/** The scenario. */
export const failover = {
  title: "Failovers to an asynchronous replica",
  header: ["the replica", "issuer's grace", "n", "refreshes", "refresh tokens used twice", "lost"],
  unavailable: missingRedis,
  run,
};

const KINDS = [
  { what: "receives writes; killed during refreshes", grace: 30, isCut: false },
  { what: "has lost the writes; who refreshed asks first", grace: 0, isCut: true, first: "refresher" },
  { what: "has lost the writes; others ask first", grace: 30, isCut: true, first: "others" },
];
const SIZES = { short: { each: 3, arenas: 1 }, long: { each: 50, arenas: 5 } };
const USERS = 10;
const SPAN_MS = 300;
const TRIES = 60;

/** @returns the rows of its table */
async function run({ size, seed, say }) {
  const { each, arenas } = SIZES[size];
  const draw = randomFrom(seed, "failover");
  const rows = [];
  for (const kind of KINDS) {
    const trials = Array.from({ length: each }, () => ({ ...kind, moment: draw.fraction() * SPAN_MS }));
    const open = () => openArena("redis", { users: USERS, grace: kind.grace }, { worker: { movable: true } });
    const tally = await tallyLanes({ lanes: arenas, open, trials, say, done: "failovers" }, failOver);
    const { n, sent, twice } = tally.of(kind.what);
    must(kind.first !== "refresher" || twice === 0, `${kind.what}: refresh tokens were used twice`);
    rows.push([kind.what, `${kind.grace} s`, n, sent, twice, 0]);
  }
  return rows;
}

/** @returns how many refreshes the issuer received, and how many of them with a used refresh token */
async function failOver(arena, kind) {
  const { fleet, engine: primary } = arena;
  const replica = await startRedis({ replicaOf: primary.address.port });
  try {
    await replica.synced();
    fleet.begin();
    await (kind.isCut ? loseWrites : killDuring)(fleet, { primary, replica, kind });
  } finally {
    await primary.close();
    arena.engine = replica;
  }
  must((await fleet.lost()) === 0, `${kind.what}: a session was lost`);
  must(kind.grace > 0 || fleet.ledger.refusals().length === 0, `${kind.what}: a refresh token was used twice`);
  const sent = fleet.ledger.rotations().length;
  await refreshAll(fleet, kind);
  return { sent, twice: sent - USERS };
}

async function killDuring(fleet, { primary, replica, kind }) {
  const calls = fleet.ask(TRIES);
  await pause(kind.moment);
  await primary.kill();
  await replica.promote();
  await fleet.moveTo(replica);
  // Processes may have different tokens for a moment: both are valid.
  judgeAnswers(await Promise.all(calls), kind.what, { same: false });
}

/** One process refreshes all tokens while the replica is cut off, so that no write of that survives. */
async function loseWrites(fleet, { primary, replica, kind }) {
  const [refresher, ...others] = fleet.crew;
  await replica.promote();
  judgeAnswers([await refresher.ask(fleet.request())], kind.what);
  await primary.kill();
  await fleet.moveTo(replica);
  const turns = kind.first === "refresher" ? [[refresher], others] : [others, [refresher]];
  for (const workers of turns) judgeAnswers(await Promise.all(fleet.ask(TRIES, workers)), kind.what, { same: false });
}

/** The sessions are alive only if their refresh tokens are accepted. */
async function refreshAll(fleet, { what }) {
  fleet.expire();
  judgeAnswers(await Promise.all(fleet.ask(TRIES)), `${what}, the next refresh`);
  must((await fleet.lost()) === 0, `${what}: a session was lost at the next refresh`);
}
