// Many processes find the same token expired at the same moment, repeatedly.
import { must } from "../tools.mjs";
import { openLane } from "./lane.mjs";

/** The scenario. */
export const race = {
  title: "Refreshes that many processes request at once",
  header: ["what", "n"],
  run,
};

const SIZES = {
  short: { generations: 40, alive: 24, processes: 50 },
  long: { generations: 1000, alive: 30, processes: 50 },
};

/** @returns the rows of its table */
async function run({ size, say }) {
  const { generations, alive, processes } = SIZES[size];
  const lane = await openLane();
  try {
    const crew = await Promise.all(Array.from({ length: alive }, () => lane.worker()));
    const replacements = processes - alive;
    const first = (await lane.grant()).generation;
    let started = alive;
    let calls = 0;
    for (let round = 1; round <= generations; round++) {
      calls += await raceOnce(lane, crew, first + round);
      // Some processes exit and others start, evenly over the run.
      for (const due = alive + Math.floor((replacements * round) / generations); started < due; started++) {
        await crew.shift().end();
        crew.push(await lane.worker());
      }
      if (round % 100 === 0) say(`${round} generations`);
    }
    must(started === processes, `${started} processes were started, not ${processes}`);
    return rows({ lane, generations, calls, processes, alive });
  } finally {
    await lane.close();
  }
}

/** All processes request a token at once; one token request must serve all of them. */
async function raceOnce(lane, crew, expected) {
  const before = lane.ledger.all().length;
  lane.expire();
  const answers = await Promise.all(crew.map((worker) => worker.ask({ epoch: lane.epoch })));
  const failed = answers.find(({ token }) => token === undefined);
  must(!failed, () => `generation ${expected}: a call failed: ${JSON.stringify(failed)}`);
  must(new Set(answers.map(({ token }) => token)).size === 1, `generation ${expected}: several tokens were returned`);
  checkEvents(answers, expected);
  const sent = lane.ledger.all().length - before;
  must(sent === 1, `generation ${expected}: ${sent} token requests`);
  const grant = await lane.check();
  must(grant.generation === expected && !grant.retired, `generation ${grant.generation} is stored, not ${expected}`);
  return answers.length;
}

/** One process reports the refresh, and every other one that its token came from there. */
function checkEvents(answers, expected) {
  const of = (type) => answers.flatMap(({ events }) => events.filter((event) => event.type === type));
  const refreshes = of("refresh").map(({ outcome }) => outcome);
  must(refreshes.join() === "refreshed", () => `generation ${expected}: the events of refreshes: ${refreshes.join()}`);
  const sources = of("token").map(({ source }) => source);
  must(sources.length === answers.length, () => `generation ${expected}: ${sources.length} events of tokens`);
  const own = sources.filter((source) => source === "refreshed").length;
  const others = sources.filter((source) => source === "joined" || source === "stored").length;
  must(
    own === 1 && own + others === sources.length,
    () => `generation ${expected}: tokens came from ${sources.join()}`,
  );
}

function rows({ lane, generations, calls, processes, alive }) {
  const { ledger } = lane;
  must(ledger.rotations().length === generations, `${ledger.rotations().length} rotations, ${generations} generations`);
  must(ledger.refusals().length === 0, "a refresh token was used twice");
  return [
    ["generations", generations],
    [`processes (${alive} alive at a time)`, processes],
    ["calls for a token", calls],
    ["calls that failed", 0],
    ["token requests at the issuer", ledger.all().length],
    ["events of a refresh", generations],
    ["refresh tokens used twice", ledger.refusals().length],
    ["sessions lost", 0],
  ];
}
