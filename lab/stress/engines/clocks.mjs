// The clocks of the machines differ by an hour, in the agent and in the store.
import { must } from "../tools.mjs";
import { inEngines, missingEngine } from "./engines.mjs";
import { judgeAnswers, openFleet } from "./fleet.mjs";

/** The scenario. */
export const clocks = {
  title: "Machines with wrong clocks",
  header: ["engine, and life of a token", "generations", "refreshes of a token", "most", "used twice", "lost"],
  unavailable: missingEngine,
  run,
};

const HOUR = 3_600_000;
const SKEWS = [-HOUR, 0, HOUR];
/** Lifetimes of a token in hours: longer than all differences, and shorter than the largest one. */
const LIVES = [12, 1];
const SIZES = { short: 2, long: 50 };
const USERS = 10;
const CALLS = 4;
/** Refreshes of a token in a generation. */
const MOST = 2;

/** @returns the rows of its table */
async function run({ size }) {
  const rows = [];
  await inEngines(["redis", "postgres"], async (_, engine) => {
    for (const hours of LIVES) rows.push(await refreshAll(engine, hours, SIZES[size]));
  });
  return rows;
}

async function refreshAll(engine, hours, rounds) {
  const what = `${engine.name}, ${hours} h`;
  const fleet = await openFleet({ engine, users: USERS, hours });
  try {
    const crew = await Promise.all(SKEWS.map((skew) => fleet.worker({ skew })));
    const counts = [];
    for (let round = 1; round <= rounds; round++) {
      const refreshes = await refreshOnce(fleet, crew);
      must(refreshes <= MOST * USERS, () => `${what}: ${refreshes} refreshes of ${USERS} tokens`);
      counts.push(refreshes / USERS);
    }
    const mean = counts.reduce((sum, one) => sum + one, 0) / rounds;
    return [what, rounds, mean.toFixed(1), Math.max(...counts).toFixed(1), 0, await fleet.lost()];
  } finally {
    await fleet.close();
  }
}

/** @returns how often the tokens were refreshed while all machines requested them */
async function refreshOnce(fleet, crew) {
  fleet.ledger.clear();
  // For the slowest clock too.
  for (let left = 3; left > 0; left -= fleet.hours) fleet.expire();
  for (let call = 0; call < CALLS; call++) {
    const answers = await Promise.all(crew.map((worker) => worker.ask(fleet.request(undefined, { tries: 5 }))));
    judgeAnswers(answers, "wrong clocks", { same: false });
  }
  must(fleet.ledger.refusals().length === 0, "wrong clocks: a refresh token was used twice");
  must((await fleet.lost()) === 0, "wrong clocks: a session was lost");
  return fleet.ledger.rotations().length;
}
