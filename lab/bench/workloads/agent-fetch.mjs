import { atMost, goalText } from "../lib/claims.mjs";
import { median } from "../lib/compare.mjs";
import { againstSandbox } from "../lib/process.mjs";
import { times } from "../lib/table.mjs";

export const title = "Requests with a token";
export const start = "not in the figures";
export const shows =
  "CPU of one request (`tools/list` at the sandbox on loopback) with `agent.fetch` and a stored token against `fetch` with " +
  "the header. The server is another process. It does not show the time that a network takes.";

export async function measure({ quick }) {
  const [requests, rounds] = quick ? [200, 2] : [1000, 7];
  const measured = await againstSandbox("agent-fetch", rounds, String(requests));
  const claim = atMost("`agent.fetch`, CPU of a request", "`fetch`", ratio(measured), 1.1);
  return [
    {
      caption: `${requests.toLocaleString("en")} requests, ${rounds} rounds`,
      header: ["side", "CPU per request", "vs. fetch", "goal"],
      rows: [
        ["fetch", microseconds(measured, "fetch"), times(1), ""],
        ["agent.fetch", microseconds(measured, "agentFetch"), times(claim.value), goalText(claim)],
      ],
      claims: [claim],
    },
  ];
}

/** The median of the ratios: both sides ran in the same process, in turns. */
function ratio(measured) {
  return median(measured.map(({ fetch, agentFetch }) => agentFetch / fetch));
}

function microseconds(measured, side) {
  return `${median(measured.map((one) => one[side])).toFixed(1)} µs`;
}
