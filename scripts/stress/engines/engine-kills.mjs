// The engine is killed during refreshes, and started again.

import { inLanes } from "../files/lane.mjs";
import { must } from "../invariant.mjs";
import { randomFrom } from "../random.mjs";
import { Tally } from "../tally.mjs";
import { missingEngine, openArena } from "./engines.mjs";
import { judgeAnswers } from "./fleet.mjs";

/** The scenario. */
export const engineKills = {
  title: "Engines that are killed during refreshes",
  header: ["killed, and started again", "n", "refreshes", "calls that failed first", "used twice", "lost"],
  unavailable: missingEngine,
  run,
};

const ENGINES = ["redis", "postgres"];
const SIZES = { short: { each: 2, arenas: 1 }, long: { each: 100, arenas: 5 } };
const USERS = 30;
const SPAN_MS = 500;
const DOWN_MS = 300;

/** @returns the rows of its table */
async function run({ size, seed, say }) {
  const { each, arenas } = SIZES[size];
  const draw = randomFrom(seed, "engine kills");
  const tally = new Tally();
  const rows = [];
  for (const kind of ENGINES) {
    let name;
    const moments = Array.from({ length: each }, () => draw.fraction() * SPAN_MS);
    const trial = async ({ fleet, engine }, moment) => {
      name = engine.name;
      tally.add(name, await killOnce(fleet, engine, moment));
      if (tally.n % 10 === 0) say(`${tally.n} killed`);
    };
    await inLanes(arenas, undefined, moments, trial, () => openArena(kind, { users: USERS }));
    const { n, refreshes, failed } = tally.of(name);
    rows.push([name, n, refreshes, failed, refreshes - n * USERS, 0]);
  }
  return rows;
}

/** @returns how many refreshes there were, and how many calls failed before one succeeded */
async function killOnce(fleet, engine, moment) {
  fleet.ledger.clear();
  fleet.expire();
  const calls = fleet.crew.map((worker) => worker.ask(fleet.request(fleet.profiles, { tries: 200 })));
  await new Promise((resolve) => setTimeout(resolve, moment));
  await engine.kill();
  await new Promise((resolve) => setTimeout(resolve, DOWN_MS));
  await engine.restart();
  const { failed } = judgeAnswers(await Promise.all(calls), `${engine.name} killed`);
  must(fleet.ledger.refusals().length === 0, `${engine.name}: a refresh token was used twice`);
  must((await fleet.lost()) === 0, `${engine.name}: a session was lost`);
  return { refreshes: fleet.ledger.rotations().length, failed };
}
