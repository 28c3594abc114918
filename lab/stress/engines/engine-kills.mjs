// The engine is killed during refreshes, and started again.

import { tallyLanes } from "../lanes.mjs";
import { must, pause, randomFrom } from "../tools.mjs";
import { missingEngine, openArena } from "./engines.mjs";
import { judgeAnswers } from "./fleet.mjs";

/** The scenario. */
export const engineKills = {
  title: "Engines that are killed during refreshes",
  header: ["killed, and started again", "n", "refreshes", "calls that failed first", "used twice", "lost"],
  unavailable: missingEngine,
  run,
};

const ENGINES = { redis: "Redis", postgres: "PostgreSQL" };
const SIZES = { short: { each: 2, arenas: 1 }, long: { each: 100, arenas: 5 } };
const USERS = 30;
const SPAN_MS = 500;
const DOWN_MS = 300;

/** @returns the rows of its table */
async function run({ size, seed, say }) {
  const { each, arenas } = SIZES[size];
  const draw = randomFrom(seed, "engine kills");
  const rows = [];
  for (const [kind, what] of Object.entries(ENGINES)) {
    const trials = Array.from({ length: each }, () => ({ what, moment: draw.fraction() * SPAN_MS }));
    const open = () => openArena(kind, { users: USERS });
    const tally = await tallyLanes({ lanes: arenas, open, trials, say, done: `${what} killed` }, killOnce);
    const { n, refreshes, failed } = tally.of(what);
    rows.push([what, n, refreshes, failed, refreshes - n * USERS, 0]);
  }
  return rows;
}

/** @returns how many refreshes there were, and how many calls failed before one succeeded */
async function killOnce({ fleet, engine }, { moment }) {
  fleet.begin();
  const calls = fleet.ask(200);
  await pause(moment);
  await engine.kill();
  await pause(DOWN_MS);
  await engine.restart();
  const { failed } = judgeAnswers(await Promise.all(calls), `${engine.name} killed`);
  must(fleet.ledger.refusals().length === 0, `${engine.name}: a refresh token was used twice`);
  must((await fleet.lost()) === 0, `${engine.name}: a session was lost`);
  return { refreshes: fleet.ledger.rotations().length, failed };
}
