// A process, or the engine, is suspended (SIGSTOP) during a refresh, and continues.
import { bringTo } from "../aims.mjs";

import { tallyLanes } from "../lanes.mjs";
import { must, pause, until } from "../tools.mjs";
import { inEngines, openArena } from "./engines.mjs";
import { judgeAnswers, openFleet } from "./fleet.mjs";
import { missingRedis } from "./redis.mjs";

/** The scenario. */
export const stops = {
  title: "Machines and engines that are suspended during a refresh",
  header: ["suspended", "seconds", "n", "refresh tokens used twice", "lost"],
  unavailable: missingRedis,
  run,
};

const STAGES = [
  { what: "with the lease, before the reservation", still: "claimed" },
  { what: "after the mark", still: "committed" },
  { what: "right before the request", still: "sending" },
  { what: "rotated, no response yet", rotated: 500, hasSent: true },
  { what: "response read, before the save", still: "answered", hasSent: true },
  { what: "saved, before the lease is released", still: "saved" },
];
const ENGINE = { what: "Redis" };
const SIZES = {
  short: { seconds: [2, 6], each: 1, lanes: 6, engines: 1 },
  long: { seconds: [2, 6, 30], each: 10, lanes: 15, engines: 10 },
};
const ARENAS = 5;
const USERS = 4;
const TRIES = 30;
/** A holder that stood still for less than this, a lease without two of its four heartbeats, still has the lease. */
const SAFE_MS = 2000;
/** Longer than every stop. */
const GRACE = 60;

/** @returns the rows of its table */
async function run({ size, say }) {
  const { seconds, each, lanes, engines } = SIZES[size];
  const trialsOf = (stage, count) =>
    seconds.flatMap((time) => Array(count).fill({ ...stage, what: nameOf(stage, time), time }));
  const stages = STAGES.flatMap((stage) => trialsOf(stage, each));
  const tallies = [];
  await inEngines(["redis"], async (_, engine) => {
    const open = () => openFleet({ engine, users: USERS, grace: GRACE });
    tallies.push(await tallyLanes({ lanes, open, trials: stages, say, done: "suspended" }, stopOnce));
  });
  const open = () => openArena("redis", { users: USERS, grace: GRACE });
  const options = { lanes: ARENAS, open, trials: trialsOf(ENGINE, engines), say, done: "engines suspended" };
  tallies.push(await tallyLanes(options, stopEngine));
  return [...STAGES, ENGINE].flatMap((stage) =>
    seconds.map((time) => {
      const { n, twice, lost } = tallies[stage === ENGINE ? 1 : 0].of(nameOf(stage, time));
      return [stage.what, time, n, twice, lost];
    }),
  );
}

function nameOf({ what }, time) {
  return `${what}, ${time} s`;
}

async function stopOnce(fleet, trial) {
  const { what, time, hasSent } = trial;
  fleet.crew ??= await Promise.all([fleet.worker(), fleet.worker(), fleet.worker()]);
  const [victim, ...others] = fleet.crew;
  fleet.begin();
  const request = fleet.request(fleet.profiles.slice(0, 1), { tries: TRIES });
  const { own } = await bringTo(fleet, victim, trial, (stage) => victim.ask({ ...request, ...stage }));
  victim.signal("SIGSTOP");
  const stopped = Date.now();
  victim.go();
  const calls = fleet.ask(TRIES, others);
  await pause(time * 1000);
  victim.signal("SIGCONT");
  const continued = Date.now() - stopped;
  const answers = await Promise.all([own, ...calls]);
  const outcome = await settle(fleet, answers, what);
  const sent = fleet.ledger.rotations().map(({ at }) => at - stopped);
  const found = () =>
    `the issuer rotated after ${sent} ms, continued after ${continued} ms; ${JSON.stringify(answers)}`;
  must(hasSent || outcome.twice === 0, () => `${what}: sent a used refresh token: ${found()}`);
  const last = sent.at(-1);
  must(outcome.twice === 0 || last >= SAFE_MS, `${what}: used twice after ${last} ms, while its lease lived`);
  return outcome;
}

async function stopEngine({ fleet, engine }, { what, time }) {
  fleet.begin();
  const calls = fleet.ask(100);
  await until(() => fleet.ledger.all().length > 0, "a refresh");
  engine.signal("SIGSTOP");
  await pause(time * 1000);
  engine.signal("SIGCONT");
  return settle(fleet, await Promise.all(calls), what);
}

/** @returns how many refresh tokens were used twice, and how many sessions are lost: none */
async function settle(fleet, answers, what) {
  judgeAnswers(answers, what, { same: false });
  const lost = await fleet.lost();
  must(lost === 0 && fleet.ledger.refusals().length === 0, `${what}: a session was lost within the issuer's grace`);
  return { twice: fleet.ledger.rotations().length - USERS, lost };
}
