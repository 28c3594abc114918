// Processes that are suspended (SIGSTOP) during a refresh for longer than their lease, and then continue.
import { tallyLanes } from "../lanes.mjs";
import { openLane } from "./lane.mjs";
import { othersDo, stopOnce } from "./standstill.mjs";

/** The scenario. */
export const stops = {
  title: "Processes suspended during a refresh for longer than their lease",
  header: ["suspended", "n", "other processes", "refresh tokens used twice", "lost"],
  run,
};

const TRIALS = [
  { what: "with the lease, before the reservation", still: "claimed", mayTakeOver: true },
  { what: "before the mark", still: "reserved", mayTakeOver: true },
  { what: "after the mark", still: "committed" },
  { what: "right before the request", still: "sending" },
  { what: "rotated, no response yet", rotated: 1500 },
  { what: "response read, before the save", still: "answered" },
  { what: "in the middle of the save", still: "answered", inSave: "synced" },
  { what: "saved, before the lease is released", still: "saved", isSaved: true },
];
const EACH = { short: 1, long: 13 };

/** @returns the rows of its table */
async function run({ size, say }) {
  const trials = Array.from({ length: EACH[size] }, () => TRIALS).flat();
  const options = { lanes: TRIALS.length, open: openLane, trials, say, done: "stopped" };
  const tally = await tallyLanes(options, async (lane, trial) => {
    lane.crew ??= await Promise.all([lane.worker(), lane.worker(), lane.worker()]);
    const [victim, ...crew] = lane.crew;
    return stopOnce(lane, { victim, crew, trial });
  });
  return TRIALS.map((trial) => {
    const { n, twice, lost } = tally.of(trial.what);
    return [trial.what, n, othersDo(trial), twice, lost];
  });
}
