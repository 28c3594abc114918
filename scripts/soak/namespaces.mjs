// Processes of other namespaces, as in containers: nobody can see whether they live.
import { spawnSync } from "node:child_process";
import { settle } from "./aftermath.mjs";
import { inLanes } from "./lane.mjs";
import { begin, bringTo, judge, stopOnce } from "./standstill.mjs";

export const name = "namespaces";
export const title = "Processes of PID namespaces of their own, stopped or killed during a renewal";
export const header = ["process", "n", "others meanwhile", "refresh tokens used twice", "lost"];

// In the order of a renewal. After the mark others wait three times as long as a lease lasts before they go on.
const TRIALS = [
  { what: "stopped before the mark that it will be sent", still: "reserved", mayTakeOver: true },
  { what: "stopped after the mark", still: "committed" },
  { what: "stopped, rotated, no answer yet", rotated: 1500 },
  { what: "stopped before the save", still: "answered" },
  { what: "killed before the mark", still: "reserved", isKilled: true, mayTakeOver: true },
  { what: "killed after the save", still: "saved", isKilled: true, isSaved: true },
  { what: "killed, rotated, nothing saved", still: "answered", isKilled: true, loses: true, mayTakeOver: true },
];
const SIZES = { short: { each: 1, lanes: 6 }, long: { each: 15, lanes: 10 } };
/** Milliseconds for an answer. The lease lasts for ten seconds more. */
const TIMEOUT = 3000;

/** Why it cannot be run here; undefined where it can. */
export function unavailable() {
  const { status } = spawnSync("unshare", ["--pid", "--fork", "--kill-child", "--mount-proc", "true"]);
  return status === 0 ? undefined : "this machine lets nobody make PID namespaces (unshare --pid needs root)";
}

/** @returns the rows of its table */
export async function run({ size, say }) {
  const { each, lanes } = SIZES[size];
  // One that is given up only after three times its lease takes too long for a short run.
  const chosen = TRIALS.filter(({ loses }) => size === "long" || !loses);
  let done = 0;
  const trials = Array.from({ length: each }, () => chosen).flat();
  await inLanes(lanes, { timeout: TIMEOUT }, trials, async (lane, trial) => {
    lane.crew ??= await Promise.all([lane.worker(), lane.worker({ namespace: true })]);
    lane.victim ??= await lane.worker({ namespace: true });
    const { victim, crew } = lane;
    if (trial.isKilled) await killOnce(lane, { victim, crew, trial });
    else await stopOnce(lane, { victim, crew, trial });
    if (++done % 20 === 0) say(`${done} stopped or killed`);
  });
  return chosen.map(({ what, mayTakeOver, isSaved, loses }) => [
    what,
    each,
    mayTakeOver ? "take over" : isSaved ? "go on" : "wait",
    0,
    loses ? each : 0,
  ]);
}

async function killOnce(lane, { victim, crew, trial }) {
  const before = await begin(lane);
  const { others } = await bringTo(lane, { victim, crew, trial });
  await victim.kill();
  lane.victim = undefined;
  if (trial.loses) await settle(lane, { before, crew, calls: others });
  else await judge(lane, { before, answers: await Promise.all(others), trial });
}
