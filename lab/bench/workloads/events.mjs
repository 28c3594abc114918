import { atMost, goalText } from "../lib/claims.mjs";
import { median } from "../lib/compare.mjs";
import { againstSandbox } from "../lib/process.mjs";
import { times } from "../lib/table.mjs";

export const title = "Events of a cached token";
export const start = "not in the figures";
export const shows =
  "CPU of `agent.token()` with a valid token in the files of a home, with `onEvent` and without. It does not show what the " +
  "receiver itself costs.";

export async function measure({ quick }) {
  const [calls, rounds] = quick ? [4000, 2] : [20_000, 7];
  const [before, after] = [
    await againstSandbox("events", rounds, String(calls), "silent"),
    await againstSandbox("events", rounds, String(calls), "onEvent"),
  ];
  const measured = before.map((one, round) => both(one, after[round]));
  const claim = atMost("a cached token with `onEvent`, CPU", "without", median(measured.map(ratio)), 1.02);
  const microseconds = (side) => `${median(measured.map((one) => one[side])).toFixed(1)} µs`;
  return [
    {
      caption: `${calls.toLocaleString("en")} tokens, ${rounds} rounds of two processes`,
      header: ["side", "CPU per token", "vs. without", "goal"],
      rows: [
        ["without a receiver", microseconds("silent"), times(1), ""],
        ["`onEvent`", microseconds("onEvent"), times(claim.value), goalText(claim)],
      ],
      claims: [claim],
    },
  ];
}

/** The means of two processes, in each of which the other client was created first. */
function both(one, other) {
  return { silent: (one.silent + other.silent) / 2, onEvent: (one.onEvent + other.onEvent) / 2 };
}

/** Both sides ran in the same process, in turns. */
function ratio({ silent, onEvent }) {
  return onEvent / silent;
}
