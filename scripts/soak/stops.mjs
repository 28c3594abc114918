// Processes that stand still during a renewal for longer than their lease lasts, as under SIGSTOP, and then go on.
import { inLanes } from "./lane.mjs";
import { othersDo, stopOnce } from "./standstill.mjs";
import { Tally } from "./tally.mjs";

/** The scenario. */
export const stops = {
  title: "Processes stopped during a renewal for longer than their lease, then let go on",
  header: ["stopped", "n", "others meanwhile", "refresh tokens used twice", "lost"],
  run,
};

const TRIALS = [
  { what: "with the lease, before room is made", still: "claimed", mayTakeOver: true },
  { what: "before the mark that it will be sent", still: "reserved", mayTakeOver: true },
  { what: "after the mark", still: "committed" },
  { what: "right before sending", still: "sending" },
  { what: "rotated, no answer yet", rotated: 1500 },
  { what: "answer there, before the save", still: "answered" },
  { what: "in the middle of the save", still: "answered", inSave: "synced" },
  { what: "saved, before the lease is given back", still: "saved", isSaved: true },
];
const SIZES = { short: { each: 1, lanes: TRIALS.length }, long: { each: 13, lanes: TRIALS.length } };

/** @returns the rows of its table */
async function run({ size, say }) {
  const { each, lanes } = SIZES[size];
  const trials = Array.from({ length: each }, () => TRIALS).flat();
  const tally = new Tally();
  await inLanes(lanes, {}, trials, async (lane, trial) => {
    lane.crew ??= await Promise.all([lane.worker(), lane.worker(), lane.worker()]);
    const [victim, ...crew] = lane.crew;
    tally.add(trial.what, await stopOnce(lane, { victim, crew, trial }));
    if (tally.n % 20 === 0) say(`${tally.n} stopped`);
  });
  return TRIALS.map((trial) => {
    const { n, twice, lost } = tally.of(trial.what);
    return [trial.what, n, othersDo(trial), twice, lost];
  });
}
