// Processes are killed during refreshes, at random moments and at each stage of one.

import { bringTo, AIMS as STAGES } from "../aims.mjs";
import { tallyLanes } from "../lanes.mjs";
import { must, pause, quantile, randomFrom } from "../tools.mjs";
import { inEngines } from "./engines.mjs";
import { countLosses, openFleet } from "./fleet.mjs";
import { missingRedis } from "./redis.mjs";

/** The scenario. */
export const kills = {
  title: "Machines that are killed during a refresh",
  header: ["killed", "issuer's grace", "n", "refresh tokens used twice", "lost", "p99 of the survivors' waits (ms)"],
  unavailable: missingRedis,
  run,
};

const RANDOM = "at a random moment";
const AIMS = STAGES.filter(({ deadly }) => deadly === undefined);
const SIZES = {
  short: { random: 8, each: 1, lanes: 5, graces: [{ grace: 30, part: 1 }] },
  // Most of them within a grace period: without one, only the losses are counted.
  long: {
    random: 860,
    each: 20,
    lanes: 6,
    graces: [
      { grace: 30, part: 1 },
      { grace: 0, part: 0.2 },
    ],
  },
};
const USERS = 12;
const PROCESSES = 3;
/** What others wait for by the default is measured elsewhere: here it would take hours. */
const FAST = { takeover: "fast" };
/** A window in which most of the refreshes of a round happen. */
const SPAN_MS = 600;

/** @returns the rows of its table */
async function run({ size, seed, say }) {
  const { random, each, lanes, graces } = SIZES[size];
  const draw = randomFrom(seed, "fleet kills");
  const rows = [];
  await inEngines(["redis"], async (_, engine) => {
    for (const { grace, part } of graces) {
      const waits = new Map();
      const aimed = AIMS.flatMap((aim) => Array.from({ length: Math.ceil(each * part) }, () => aim));
      const moments = Array.from({ length: Math.ceil(random * part) }, () => ({ what: RANDOM, at: draw.fraction() }));
      const trials = [...aimed, ...moments];
      const open = () => openFleet({ engine, users: USERS, grace });
      const options = { lanes, open, trials, say, done: `killed with a grace of ${grace} s` };
      const tally = await tallyLanes(options, async (fleet, chosen) => {
        const outcome = await killOnce(fleet, chosen);
        must(grace === 0 || outcome.lost === 0, `${chosen.what}: lost within the grace of the issuer`);
        must(outcome.lost <= outcome.twice, `${chosen.what}: lost without a refresh token used twice`);
        if (chosen.at === undefined) {
          const expected = chosen.loses ? 1 : 0;
          must(outcome.twice === expected, `${chosen.what}: ${outcome.twice} refresh tokens were used twice`);
        }
        waits.set(chosen.what, [...(waits.get(chosen.what) ?? []), ...outcome.waits]);
        return { twice: outcome.twice, lost: outcome.lost };
      });
      for (const { what } of [{ what: RANDOM }, ...AIMS]) {
        const { n, twice, lost } = tally.of(what);
        rows.push([what, `${grace} s`, n, twice, lost, quantile(waits.get(what), 0.99)]);
      }
      const all = [...waits.values()].flat();
      say(`grace ${grace} s: the survivors waited p50 ${quantile(all, 0.5)} ms, p99 ${quantile(all, 0.99)} ms`);
    }
  });
  return rows;
}

/** Kills one of the processes that request the same tokens. */
async function killOnce(fleet, trial) {
  fleet.crew ??= await Promise.all(Array.from({ length: PROCESSES }, () => fleet.worker(FAST)));
  const victim = fleet.crew.shift();
  fleet.begin();
  const others = trial.at === undefined ? await killAt(fleet, victim, trial) : await killIn(fleet, victim, trial);
  const answers = await Promise.all(others);
  const outcome = await countLosses(fleet, answers, trial.what);
  fleet.crew.push(await fleet.worker(FAST));
  return outcome;
}

async function killIn(fleet, victim, { at }) {
  const request = fleet.request(fleet.profiles, { tries: 20 });
  // No two processes begin with the same user.
  const turn = (by) => ({ ...request, profiles: [...fleet.profiles.slice(by), ...fleet.profiles.slice(0, by)] });
  const [, ...others] = [victim, ...fleet.crew].map((worker, place) => worker.ask(turn(place * 4)));
  await pause(at * SPAN_MS);
  await victim.kill();
  return others;
}

async function killAt(fleet, victim, trial) {
  const request = fleet.request(fleet.profiles.slice(0, 1));
  const { own } = await bringTo(fleet, victim, trial, (stage) => victim.ask({ ...request, ...stage }));
  const others = fleet.ask(20);
  await victim.kill();
  must((await own).gone, `${trial.what}: the killed process answered`);
  return others;
}
