import { atMost, goalText } from "../lib/claims.mjs";
import { median } from "../lib/compare.mjs";
import { againstSandbox } from "../lib/process.mjs";
import { times } from "../lib/table.mjs";

export const title = "Requests through the broker";
export const start = "not in the figures";
export const shows =
  "One request (`tools/list` at the sandbox on loopback) through the broker against `agent.fetch`, and over the broker's " +
  "socket against a direct one. The server is another process, client and broker are one.";

export async function measure({ quick }) {
  const [requests, rounds] = quick ? [200, 2] : [1000, 7];
  const measured = await againstSandbox("broker", rounds, String(requests));
  const of = (read) => median(measured.map(read));
  const cpu = atMost(
    "broker, CPU of a request",
    "`agent.fetch`",
    of(({ cpu }) => cpu.broker / cpu.agentFetch),
    1.5,
  );
  const large = atMost(
    "broker, CPU of a request at 10,000 grants",
    "one grant",
    of(({ cpu }) => cpu.large / cpu.broker),
    1.1,
  );
  const wait = atMost(
    "broker, ms that its socket adds at p50",
    "direct",
    of(({ p50 }) => p50.socket - p50.direct),
    1,
    { unit: "ms" },
  );
  return [
    {
      caption: `${requests.toLocaleString("en")} requests, ${rounds} rounds`,
      header: ["side", "CPU per request", "p50", "vs. the line above", "goal"],
      rows: [
        [
          "agent.fetch",
          microseconds(of(({ cpu }) => cpu.agentFetch)),
          milliseconds(of(({ p50 }) => p50.agentFetch)),
          "",
          "",
        ],
        [
          "broker.fetch",
          microseconds(of(({ cpu }) => cpu.broker)),
          milliseconds(of(({ p50 }) => p50.broker)),
          times(cpu.value),
          goalText(cpu),
        ],
        [
          "broker.fetch, 10,000 grants",
          microseconds(of(({ cpu }) => cpu.large)),
          milliseconds(of(({ p50 }) => p50.large)),
          times(large.value),
          goalText(large),
        ],
        [
          "direct, node:http",
          microseconds(of(({ cpu }) => cpu.direct)),
          milliseconds(of(({ p50 }) => p50.direct)),
          "",
          "",
        ],
        [
          "over the socket",
          microseconds(of(({ cpu }) => cpu.socket)),
          milliseconds(of(({ p50 }) => p50.socket)),
          `+${wait.value.toFixed(2)} ms`,
          goalText(wait),
        ],
      ],
      claims: [cpu, large, wait],
    },
  ];
}

function microseconds(value) {
  return `${value.toFixed(1)} µs`;
}

function milliseconds(value) {
  return `${value.toFixed(2)} ms`;
}
