// Processes of other PID namespaces, as in containers: other processes cannot see whether they are alive.
import { tallyLanes } from "../lanes.mjs";
import { must } from "../tools.mjs";
import { canHaveNamespaces } from "../workers.mjs";
import { settle } from "./aftermath.mjs";
import { openLane } from "./lane.mjs";
import { bringVictim, judge, othersDo, stopOnce } from "./standstill.mjs";

/** The scenario. */
export const namespaces = {
  title: "Processes in separate PID namespaces, suspended or killed during a refresh",
  header: ["process", "n", "other processes", "refresh tokens used twice", "lost"],
  run,
  unavailable,
};

// In the order of a refresh. After the mark others wait for three times the duration of the lease.
const TRIALS = [
  { what: "suspended before the mark", still: "reserved", mayTakeOver: true },
  { what: "suspended after the mark", still: "committed" },
  { what: "suspended, rotated, no response yet", rotated: 1500 },
  { what: "suspended before the save", still: "answered" },
  { what: "killed before the mark", still: "reserved", isKilled: true, mayTakeOver: true },
  { what: "killed after the save", still: "saved", isKilled: true, isSaved: true },
  { what: "killed, rotated, nothing saved", still: "answered", isKilled: true, loses: true, mayTakeOver: true },
];
const SIZES = { short: { each: 1, lanes: 6 }, long: { each: 15, lanes: 10 } };

/** Why the scenario cannot run here, or undefined. */
function unavailable() {
  return canHaveNamespaces() ? undefined : "this machine does not allow PID namespaces (unshare --pid needs root)";
}

/** @returns the rows of its table */
async function run({ size, say }) {
  const { each, lanes } = SIZES[size];
  // A takeover after three times the duration of the lease takes too long for a short run.
  const chosen = TRIALS.filter(({ loses }) => size === "long" || !loses);
  const trials = Array.from({ length: each }, () => chosen).flat();
  const options = { lanes, open: openLane, trials, say, done: "stopped or killed" };
  const tally = await tallyLanes(options, async (lane, trial) => {
    lane.crew ??= await Promise.all([lane.worker(), lane.worker({ namespace: true })]);
    lane.victim ??= await lane.worker({ namespace: true });
    const { victim, crew } = lane;
    return (trial.isKilled ? killOnce : stopOnce)(lane, { victim, crew, trial });
  });
  return chosen.map((trial) => {
    const { n, twice, lost } = tally.of(trial.what);
    return [trial.what, n, othersDo(trial), twice, lost];
  });
}

async function killOnce(lane, { victim, crew, trial }) {
  const before = await lane.begin();
  const { others } = await bringVictim(lane, { victim, crew, trial });
  await victim.kill();
  lane.victim = undefined;
  if (!trial.loses) return judge(lane, { before, answers: await Promise.all(others), trial });
  const { lost } = await settle(lane, { before, crew, calls: others });
  must(lost, `${trial.what}: nothing was lost`);
  return { twice: 1, lost: 1 };
}
