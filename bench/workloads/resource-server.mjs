import { median } from "../lib/compare.mjs";
import { program } from "../lib/listing-sides.mjs";
import { run } from "../lib/process.mjs";
import { times } from "../lib/table.mjs";

export const title = "Verifying tokens";
export const shows =
  "CPU of one verification of an ES256 token of a resource server, without HTTP and without the start of the process; " +
  "keys and introspection answers are already cached. It does not show a cold cache.";

const ROWS = [
  ["jose, `jwtVerify`", "jose", "jose", ""],
  ["agentauth, a new token", "fresh", "jose", "≤ 1.05×"],
  ["agentauth, the same token again", "again", "jose", "≤ 0.1×"],
  ["agentauth, a cached introspection", "introspected", "jose", "≤ 0.1×"],
  ["jose, two signatures", "joseTwice", "joseTwice", ""],
  ["agentauth, a new token with a proof (DPoP)", "dpop", "joseTwice", "≤ 1.2×"],
];

export async function measure({ quick }) {
  const [count, rounds] = quick ? [500, 2] : [2000, 7];
  const results = [];
  for (let round = 0; round < rounds; round++) {
    const { out } = await run([program("resource-server"), String(count)]);
    results.push(JSON.parse(out));
  }
  return [
    {
      caption: `${count.toLocaleString("en")} tokens, ${rounds} rounds`,
      header: ["side", "CPU per token", "vs. jose", "goal"],
      rows: ROWS.map(([name, side, base, goal]) => [
        name,
        `${median(results.map((result) => result[side])).toFixed(1)} µs`,
        times(median(results.map((result) => result[side] / result[base]))),
        goal,
      ]),
    },
  ];
}
