// Many processes find the tokens of many users expired at the same moment, repeatedly.
import { must, quantile, randomFrom } from "../tools.mjs";
import { inEngines, missingEngine } from "./engines.mjs";
import { judgeAnswers, openFleet } from "./fleet.mjs";

/** The scenario. */
export const race = {
  title: "Refreshes that many machines request at once",
  header: ["what", "Redis", "PostgreSQL"],
  unavailable: missingEngine,
  run,
};

const SIZES = {
  short: { redis: { users: 100, processes: 6, generations: 2 }, postgres: { users: 50, processes: 4, generations: 2 } },
  long: {
    redis: { users: 1000, processes: 16, generations: 10 },
    postgres: { users: 200, processes: 16, generations: 10 },
  },
};

/** @returns the rows of its table */
async function run({ size, seed, say }) {
  const columns = [];
  await inEngines(["redis", "postgres"], async (kind, engine) => {
    columns.push(await raceOn(engine, SIZES[size][kind], { seed, say }));
  });
  const [redis, postgres] = columns;
  return redis.map(([what, n], row) => [what, n, postgres[row][1]]);
}

async function raceOn(engine, { users, processes, generations }, { seed, say }) {
  const fleet = await openFleet({ engine, users });
  say(`${engine.name}: ${users} users are logged in`);
  try {
    const crew = await Promise.all(Array.from({ length: processes }, () => fleet.worker()));
    const waits = [];
    let failed = 0;
    const started = performance.now();
    for (let round = 1; round <= generations; round++) {
      fleet.expire();
      // Not in the same order in each process.
      const answers = await Promise.all(
        crew.map((worker, at) =>
          worker.ask(fleet.request(shuffled(fleet.profiles, seed, `${round} ${at}`), { tries: 20 })),
        ),
      );
      const judged = judgeAnswers(answers, `${engine.name}, generation ${round}`);
      failed += judged.failed;
      for (const wait of judged.waits) waits.push(wait);
      const [sent, refused] = [fleet.ledger.all().length, fleet.ledger.refusals().length];
      const stalled = Math.max(...answers.map((answer) => answer.stalled));
      const found = `${sent} token requests for ${users * round} generations, ${refused} refused`;
      must(sent === users * round, `${engine.name}: ${found}; a process stood still for up to ${stalled} ms`);
      must((await fleet.lost()) === 0, `${engine.name}: a session was lost`);
      say(`${engine.name}: ${round} of ${generations} generations`);
    }
    must(fleet.ledger.refusals().length === 0, `${engine.name}: a refresh token was used twice`);
    return [
      ["users", users],
      ["processes", processes],
      ["calls for a token", waits.length],
      ["calls that failed first", failed],
      ["token requests at the issuer", fleet.ledger.rotations().length],
      ["refresh tokens used twice", fleet.ledger.refusals().length],
      ["sessions lost", 0],
      ["calls per second", Math.round((waits.length * 1000) / (performance.now() - started))],
      ["wait of a call, p99 (ms)", quantile(waits, 0.99)],
    ];
  } finally {
    await fleet.close();
  }
}

function shuffled(items, seed, name) {
  const draw = randomFrom(seed, `race ${name}`);
  const result = [...items];
  for (let at = result.length - 1; at > 0; at--) {
    const other = draw.below(at + 1);
    [result[at], result[other]] = [result[other], result[at]];
  }
  return result;
}
