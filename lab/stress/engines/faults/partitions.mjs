// Processes that the network separates from the engine.
import { pause } from "../../tools.mjs";
import { beginRefresh, faultScenario, WINDOW_MS } from "../faults.mjs";

const TRIES = 400;
const HEALED_MS = 1000;

/** The scenario. */
export const partitions = faultScenario({
  title: "Processes that are cut off from the engine",
  lanes: 20,
  kinds: [
    {
      what: "the holder, for 5 to 20 s after the issuer has its request",
      short: ["postgres"],
      cuts: true,
      trial: cutHolder,
    },
    { what: "any process, at random for 1 to 20 s", users: 4, cuts: true, trial: cutAtRandom },
  ],
});

/** Connections that the network has forgotten are replaced within the timeout of a call and a second. */
export const forgotten = faultScenario({
  title: "Connections that the network has forgotten",
  kinds: [{ what: "all connections of each process", users: 4, cuts: true, trial: forgetAll }],
});

/** What a holder that is killed between its request and its save costs the others, by the rule of takeover. */
export const waits = faultScenario({
  title: "How long others wait for a process that was killed after its request",
  lanes: 20,
  kinds: ["patient", "fast"].map((takeover) => ({
    what: takeover,
    grace: 600,
    tolerates: "the refresh token is sent again",
    worker: { takeover },
    trial: killHolder,
  })),
});

async function killHolder({ fleet }) {
  const holder = fleet.crew.shift();
  const { own } = await beginRefresh(fleet, holder);
  await holder.kill();
  await own;
  const answers = fleet.ask(TRIES);
  fleet.crew.push(await fleet.worker(holder.settings));
  return Promise.all(answers);
}

async function cutHolder({ fleet }, draw) {
  const [holder, ...others] = fleet.crew;
  const { own } = await beginRefresh(fleet, holder, TRIES);
  holder.proxy.cut();
  const rest = fleet.ask(TRIES, others);
  await pause(5000 + draw.fraction() * 15_000);
  holder.proxy.mend();
  return Promise.all([own, ...rest]);
}

async function cutAtRandom({ fleet }, draw) {
  const calls = fleet.ask(TRIES);
  await pause(draw.fraction() * WINDOW_MS);
  const { proxy } = fleet.crew[draw.below(fleet.crew.length)];
  proxy.cut();
  await pause(1000 + draw.fraction() * 19_000);
  proxy.mend();
  return Promise.all(calls);
}

/** The connections of every process were used, and are forgotten before the next refresh. */
async function forgetAll({ fleet }) {
  await Promise.all(fleet.ask(TRIES));
  fleet.begin();
  for (const { proxy } of fleet.crew) proxy.forget();
  const [first, ...others] = fleet.crew;
  // The first call may fail, the next ones must not.
  await first.ask(fleet.request(fleet.profiles.slice(0, 1)));
  await pause(HEALED_MS);
  const healed = await first.ask(fleet.request());
  const rest = await Promise.all(fleet.ask(TRIES, others));
  return [healed, ...rest];
}
