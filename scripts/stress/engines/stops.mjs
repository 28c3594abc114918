// A process, or the engine, is suspended (SIGSTOP) during a refresh, and continues.

import { inLanes } from "../files/lane.mjs";
import { must, until } from "../invariant.mjs";
import { Tally } from "../tally.mjs";
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
  { what: "rotated, no response yet", rotated: true, hasSent: true },
  { what: "response read, before the save", still: "answered", hasSent: true },
  { what: "saved, before the lease is released", still: "saved" },
];
const ENGINE = "Redis";
const SIZES = {
  short: { seconds: [2, 6], each: 1, lanes: 6, engines: 1 },
  long: { seconds: [2, 6, 30], each: 10, lanes: 15, engines: 10 },
};
const ARENAS = 5;
const USERS = 4;
/** A holder that stood still for less than this, a lease without two of its four heartbeats, still has the lease. */
const SAFE_MS = 2000;
/** Longer than every stop. */
const GRACE = 60;

/** @returns the rows of its table */
async function run({ size, say }) {
  const { seconds, each, lanes, engines } = SIZES[size];
  const tally = new Tally();
  const trials = seconds.flatMap((time) => STAGES.flatMap((stage) => Array(each).fill({ ...stage, time })));
  await inEngines(["redis"], async (_, engine) => {
    const open = () => openFleet({ engine, users: USERS, grace: GRACE });
    const work = async (fleet, trial) => {
      tally.add(`${trial.what} ${trial.time}`, await stopOnce(fleet, trial));
      if (tally.n % 20 === 0) say(`${tally.n} suspended`);
    };
    await inLanes(lanes, undefined, trials, work, open);
  });
  const times = seconds.flatMap((time) => Array(engines).fill(time));
  const stopIts = async ({ fleet, engine }, time) =>
    tally.add(`${ENGINE} ${time}`, await stopEngine(fleet, engine, time));
  const arena = () => openArena("redis", { users: USERS, grace: GRACE });
  await inLanes(ARENAS, undefined, times, stopIts, arena);
  const rowOf = (what, time) => {
    const { n, twice, lost } = tally.of(`${what} ${time}`);
    return [what, time, n, twice, lost];
  };
  return [...STAGES, { what: ENGINE }].flatMap(({ what }) => seconds.map((time) => rowOf(what, time)));
}

async function stopOnce(fleet, { time, still, rotated, hasSent, ...trial }) {
  const what = `${trial.what}, ${time} s`;
  fleet.crew ??= await crewOf(fleet);
  const [victim, ...others] = fleet.crew;
  begin(fleet);
  if (rotated) fleet.sandbox.faults.add({ kind: "slow-headers", ms: 500, path: "token", times: 1 });
  const stage = rotated ? until(() => fleet.ledger.rotations().length === 1, "the rotation") : victim.stage();
  const own = victim.ask(fleet.request(fleet.profiles.slice(0, 1), { still, tries: 30 }));
  must((await stage) === (rotated || still), `${what}: the process did not come to its stage`);
  victim.signal("SIGSTOP");
  const stopped = Date.now();
  victim.go();
  const calls = others.map((worker) => worker.ask(fleet.request(fleet.profiles, { tries: 30 })));
  await new Promise((resolve) => setTimeout(resolve, time * 1000));
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

async function stopEngine(fleet, engine, time) {
  begin(fleet);
  const calls = fleet.crew.map((worker) => worker.ask(fleet.request(fleet.profiles, { tries: 100 })));
  await until(() => fleet.ledger.all().length > 0, "a refresh");
  engine.signal("SIGSTOP");
  await new Promise((resolve) => setTimeout(resolve, time * 1000));
  engine.signal("SIGCONT");
  return settle(fleet, await Promise.all(calls), `${ENGINE}, ${time} s`);
}

function crewOf(fleet) {
  return Promise.all([fleet.worker(), fleet.worker(), fleet.worker()]);
}

function begin(fleet) {
  fleet.ledger.clear();
  fleet.expire();
}

/** @returns how many refresh tokens were used twice, and how many sessions are lost: none */
async function settle(fleet, answers, what) {
  judgeAnswers(answers, what, { same: false });
  const lost = await fleet.lost();
  must(lost === 0 && fleet.ledger.refusals().length === 0, `${what}: a session was lost within the issuer's grace`);
  return { twice: fleet.ledger.rotations().length - USERS, lost };
}
