// Processes are killed during a refresh, at random moments and at each of its stages.
import { AIMS, bringTo } from "../aims.mjs";
import { tallyLanes } from "../lanes.mjs";
import { DEADLY } from "../stages.mjs";
import { must, pause, randomFrom } from "../tools.mjs";
import { settle } from "./aftermath.mjs";
import { openLane } from "./lane.mjs";

/** The scenario. */
export const kills = {
  title: "Processes killed during a refresh",
  header: ["killed", "issuer's grace", "n", "rotated, not saved", "lost"],
  run,
};

const SIZES = {
  short: { random: 20, each: 1, lanes: 2 },
  long: { random: 1000, each: 20, lanes: 3 },
};
const GRACES = [5, 0];

/** @returns the rows of its table */
async function run({ size, seed, say }) {
  const { random, each, lanes } = SIZES[size];
  const draw = randomFrom(seed, "kills");
  const moment = () => ({ what: "at a random moment", at: draw.fraction(), who: draw.below(3) });
  const kinds = [{ what: "at a random moment" }, ...AIMS];
  const rows = [];
  for (const grace of GRACES) {
    const aimed = AIMS.flatMap((aim) => Array.from({ length: each }, () => ({ ...aim, who: 0 })));
    const trials = [...Array.from({ length: random }, moment), ...aimed];
    const options = { lanes, open: () => openLane({ grace }), trials, say, done: `killed with a grace of ${grace} s` };
    const tally = await tallyLanes(options, async (lane, trial) => {
      const { exposed, lost, after } = await killOnce(lane, trial);
      must(trial.at !== undefined || exposed === (trial.loses === true), `${trial.what}: not at its stage`);
      // On a very busy machine the grace period ends before the next request arrives.
      must(!lost || after >= grace * 800, `${trial.what}: lost ${after} ms after the rotation, within the grace`);
      if (grace > 0 && lost)
        say(`lost ${after} ms after the rotation: this machine is too busy for a grace of ${grace} s`);
      return { exposed: Number(exposed), lost: Number(lost) };
    });
    for (const { what } of kinds) {
      const { n, exposed, lost } = tally.of(what);
      rows.push([what, `${grace} s`, n, exposed, lost]);
    }
  }
  return rows;
}

/** Kills one of three processes that request the same token. @returns whether a rotation was exposed, and the session lost */
async function killOnce(lane, trial) {
  const crew = await crewOf(lane);
  const [victim] = crew.splice(trial.who, 1);
  const before = await lane.begin();
  const kill = trial.at === undefined ? killAt : killIn;
  const calls = await kill(lane, { victim, crew, trial });
  // At this moment every record must be complete.
  await lane.check();
  const outcome = await settle(lane, { before, crew, calls });
  crew.push(await lane.spare);
  lane.spare = lane.worker();
  return outcome;
}

/** Three processes, and a starting spare that replaces the next killed one. */
async function crewOf(lane) {
  if (lane.crew === undefined) {
    lane.crew = await Promise.all([lane.worker(), lane.worker(), lane.worker()]);
    lane.spare = lane.worker();
    lane.span = await measure(lane, lane.crew[0]);
  }
  return lane.crew;
}

/** Measures a refresh: random moments are drawn from this duration. */
async function measure(lane, worker) {
  const started = performance.now();
  for (let round = 0; round < 5; round++) {
    lane.expire();
    const { token } = await worker.ask({ epoch: lane.epoch });
    must(token !== undefined, "no token before anything was killed");
  }
  return ((performance.now() - started) / 5) * 1.5;
}

async function killIn(lane, { victim, crew, trial }) {
  const all = [victim, ...crew].map((worker) => worker.ask(lane.request()));
  await pause(trial.at * lane.span);
  await victim.kill();
  return all.slice(1);
}

/** The victim reaches its stage before the others start, so that it holds the lease. */
async function killAt(lane, { victim, crew, trial }) {
  const { deadly } = trial;
  must(deadly === undefined || deadly in DEADLY, `there is no stage ${deadly}`);
  const { own } = await bringTo(lane, victim, trial, (stage) => victim.ask(lane.request({ ...stage, deadly })));
  const others = crew.map((worker) => worker.ask(lane.request()));
  if (deadly) victim.go();
  else victim.signal("SIGKILL");
  await victim.ended;
  must((await own).gone, "the victim answered");
  return others;
}
