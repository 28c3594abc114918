// Lock files of owners that are gone: dead processes, other boots, other PID namespaces.
import { readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { tallyLanes } from "../lanes.mjs";
import { must } from "../tools.mjs";
import { openLane } from "./lane.mjs";
import { bootClock, bringVictim, judge } from "./standstill.mjs";

/** The scenario. */
export const claims = {
  title: "Lock files left behind",
  header: ["lock file", "n", "refresh tokens used twice", "lost"],
  run,
};

const HOUR = 3_600_000;
/** Remaining milliseconds of a lock file whose owner is invisible. */
const REST = 1500;

// The change to the lock file of a killed process. The file is real, so that only the change matters.
const CHANGES = {
  "of a dead process": () => ({}),
  "of a process number in use again": ({ holder }) => ({ holder: { ...holder, pid: process.pid } }),
  "of another boot, an hour old": ({ holder, at }) => ({
    holder: { ...holder, boot: "another run" },
    at: at - HOUR,
  }),
  "of another boot, just created": ({ holder }) => ({
    holder: { ...holder, boot: "another run" },
    duration: REST,
  }),
  "of another namespace, expired": ({ holder }) => ({
    holder: { ...holder, space: "pid:[1]" },
    deadline: bootClock() - HOUR,
  }),
  "of another namespace, not expired": ({ holder }) => ({
    holder: { ...holder, space: "pid:[1]" },
    deadline: bootClock() + REST,
    duration: REST,
  }),
  "truncated by a power failure": () => undefined,
};
const STAGES = [
  { still: "reserved", where: "not yet sent" },
  { still: "committed", where: "marked as sent" },
];
const TRIALS = Object.keys(CHANGES).flatMap((change) =>
  STAGES.map(({ still, where }) => ({ what: `${change}, ${where}`, still, change })),
);
const SIZES = { short: { each: 1, lanes: 7 }, long: { each: 8, lanes: 8 } };

/** @returns the rows of its table */
async function run({ size, say }) {
  const { each, lanes } = SIZES[size];
  const trials = Array.from({ length: each }, () => TRIALS).flat();
  const tally = await tallyLanes({ lanes, open: openLane, trials, say, done: "left behind" }, leaveClaim);
  return TRIALS.map(({ what }) => {
    const { n, twice, lost } = tally.of(what);
    return [what, n, twice, lost];
  });
}

/** Kills a process, changes its lock file, and checks that the other processes replace it. */
async function leaveClaim(lane, trial) {
  lane.crew ??= await Promise.all([lane.worker(), lane.worker()]);
  const { crew } = lane;
  const victim = await lane.worker();
  const before = await lane.begin();
  await bringVictim(lane, { victim, crew: [], trial });
  await victim.kill();
  const file = change(join(lane.home, "claims"), CHANGES[trial.change]);
  const answers = await Promise.all(crew.map((worker) => worker.insist(lane.request())));
  const outcome = await judge(lane, { before, answers, trial });
  const name = file.split(".")[0];
  const left = readdirSync(join(lane.home, "claims")).filter((one) => one.startsWith(name));
  must(left.length === 0, () => `${trial.what}: not removed: ${left}`);
  return outcome;
}

function change(folder, changed) {
  const claims = readdirSync(folder)
    .filter((file) => file.endsWith(".claim"))
    .map((file) => ({ file, path: join(folder, file), claim: JSON.parse(readFileSync(join(folder, file), "utf8")) }))
    // Lock files of logins stay for the next processes.
    .filter(({ claim }) => !claim.extend);
  must(claims.length === 1, () => `expected one lock file, found: ${claims.map(({ file }) => file)}`);
  const [{ file, path, claim }] = claims;
  const fields = changed(claim);
  writeFileSync(path, fields === undefined ? "" : JSON.stringify({ ...claim, ...fields }));
  if (fields?.at !== undefined) utimesSync(path, fields.at / 1000, fields.at / 1000);
  return file;
}
