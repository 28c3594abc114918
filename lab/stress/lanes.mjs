// Trials that are distributed over lanes, each with an issuer, logins and processes of its own.
import { Tally } from "./tools.mjs";

const REPORT_EACH = 20;

// Each generates keys and logs in, all in this process: many at once would block each other.
let opening = Promise.resolve();

function openInTurn(open) {
  const lane = opening.then(() => open());
  opening = lane.catch(() => {});
  return lane;
}

/**
 * Opens lanes and distributes the trials.
 *
 * @param count how many run at once
 * @param open opens a lane, which has a method `close`
 */
export async function inLanes(count, open, trials, work) {
  const queue = [...trials];
  const one = async () => {
    let lane;
    try {
      lane = await openInTurn(open);
      for (let trial = queue.shift(); trial !== undefined; trial = queue.shift()) await work(lane, trial);
    } catch (error) {
      queue.length = 0;
      throw error;
    } finally {
      await lane?.close();
    }
  };
  // All lanes finish: processes and folders must not outlive a failure of one.
  const ended = await Promise.allSettled(Array.from({ length: Math.min(count, queue.length) }, one));
  const failed = ended.find(({ status }) => status === "rejected");
  if (failed) throw failed.reason;
}

/** As {@link inLanes}; the sums of what `work` returns, by the `what` of the trial. @param say reports how many are `done` */
export async function tallyLanes({ lanes, open, trials, say, done }, work) {
  const tally = new Tally();
  await inLanes(lanes, open, trials, async (lane, trial) => {
    tally.add(trial.what, await work(lane, trial));
    if (tally.n % REPORT_EACH === 0) say(`${tally.n} ${done}`);
  });
  return tally;
}
