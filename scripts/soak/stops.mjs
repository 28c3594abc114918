// Processes that stand still during a renewal for longer than their lease lasts, as under SIGSTOP, and then go on.
import { inLanes } from "./lane.mjs";
import { stopOnce } from "./standstill.mjs";

export const name = "stops";
export const title = "Processes stopped during a renewal for longer than their lease, then let go on";
export const header = ["stopped", "n", "others meanwhile", "refresh tokens used twice", "lost"];

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
/** Milliseconds for an answer. The lease lasts for ten seconds more. */
const TIMEOUT = 3000;

/** @returns the rows of its table */
export async function run({ size, say }) {
  const { each, lanes } = SIZES[size];
  const trials = Array.from({ length: each }, () => TRIALS).flat();
  let done = 0;
  await inLanes(lanes, { timeout: TIMEOUT }, trials, async (lane, trial) => {
    lane.crew ??= await Promise.all([lane.worker(), lane.worker(), lane.worker()]);
    const [victim, ...crew] = lane.crew;
    await stopOnce(lane, { victim, crew, trial });
    if (++done % 20 === 0) say(`${done} stopped`);
  });
  return TRIALS.map(({ what, mayTakeOver, isSaved }) => [
    what,
    each,
    mayTakeOver ? "take over" : isSaved ? "go on" : "wait",
    0,
    0,
  ]);
}
