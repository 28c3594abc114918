// The engine is killed during refreshes, and started again.
import { must } from "../soak/invariant.mjs";
import { randomFrom } from "../soak/random.mjs";
import { inEngines, missingEngine } from "./engines.mjs";
import { judgeAnswers, openFleet } from "./fleet.mjs";

/** The scenario. */
export const engineKills = {
  title: "Engines that are killed during refreshes",
  header: ["killed, and started again", "n", "refreshes", "calls that failed first", "used twice", "lost"],
  unavailable: missingEngine,
  run,
};

const SIZES = { short: { redis: 3, postgres: 3 }, long: { redis: 100, postgres: 100 } };
const USERS = 30;
const PROCESSES = 3;
const SPAN_MS = 500;
const DOWN_MS = 300;

/** @returns the rows of its table */
async function run({ size, seed, say }) {
  const draw = randomFrom(seed, "engine kills");
  const rows = [];
  await inEngines(["redis", "postgres"], async (kind, engine) => {
    const fleet = await openFleet({ engine, users: USERS });
    try {
      fleet.crew = await Promise.all(Array.from({ length: PROCESSES }, () => fleet.worker()));
      const trials = SIZES[size][kind];
      let failed = 0;
      for (let trial = 1; trial <= trials; trial++) {
        failed += await killOnce(fleet, engine, draw.fraction() * SPAN_MS);
        if (trial % 10 === 0) say(`${engine.name}: ${trial} killed`);
      }
      const refreshes = fleet.ledger.rotations().length;
      rows.push([engine.name, trials, refreshes, failed, refreshes - trials * USERS, await fleet.lost()]);
    } finally {
      await fleet.close();
    }
  });
  return rows;
}

/** @returns how many calls failed before one succeeded */
async function killOnce(fleet, engine, moment) {
  fleet.expire();
  const calls = fleet.crew.map((worker) => worker.ask(fleet.request(fleet.profiles, { tries: 60 })));
  await new Promise((resolve) => setTimeout(resolve, moment));
  await engine.kill();
  await new Promise((resolve) => setTimeout(resolve, DOWN_MS));
  await engine.restart();
  const { failed } = judgeAnswers(await Promise.all(calls), `${engine.name} killed`);
  must(fleet.ledger.refusals().length === 0, `${engine.name}: a refresh token was used twice`);
  must((await fleet.lost()) === 0, `${engine.name}: a session was lost`);
  return failed;
}
