import { atMost, goalText } from "../lib/claims.mjs";
import { median } from "../lib/compare.mjs";
import { program } from "../lib/listing-sides.mjs";
import { run } from "../lib/process.mjs";
import { times } from "../lib/table.mjs";

export const title = "Verifying tokens";
export const shows =
  "CPU of one verification of an ES256 token of a resource server, without HTTP; keys and introspection answers are already " +
  "cached. The middlewares of others check a signature, issuer, audience and times; fast-jwt is called without a " +
  "middleware. It does not show a cold cache.";
export const start = "not in the figures";

const ROWS = [
  ["jose, `jwtVerify`", "jose", "jose"],
  ["agentauth, a new token", "fresh", "jose", 1.35],
  ["agentauth, the same token again", "again", "jose", 5, "µs"],
  ["agentauth, a cached introspection", "introspected", "jose", 0.1],
  ["official SDK, `requireBearerAuth` with jose", "official", "jose"],
  ["express-oauth2-jwt-bearer", "express", "jose"],
  ["fast-jwt, without its cache", "fastJwt", "jose"],
  ["fast-jwt, the same token again", "fastJwtAgain", "jose"],
  ["jose, two signatures", "joseTwice", "joseTwice"],
  ["agentauth, a new token with a proof (DPoP)", "dpop", "joseTwice", 1.2],
];

export async function measure({ quick }) {
  const [count, rounds] = quick ? [500, 2] : [2000, 7];
  const results = [];
  for (let round = 0; round < rounds; round++) {
    const { out } = await run([program("resource-server"), String(count)]);
    results.push(JSON.parse(out));
  }
  const ratio = (side, base) => median(results.map((result) => result[side] / result[base]));
  const claims = ROWS.map(([name, side, base, goal, unit]) => {
    if (goal === undefined) return undefined;
    const what = `verify: ${name}, CPU`;
    if (unit !== undefined) return atMost(what, "–", median(results.map((result) => result[side])), goal, { unit });
    return atMost(what, base === "jose" ? "jose" : "jose, two signatures", ratio(side, base), goal);
  });
  return [
    {
      caption: `${count.toLocaleString("en")} tokens, ${rounds} rounds`,
      header: ["side", "CPU per token", "vs. jose", "goal"],
      rows: ROWS.map(([name, side, base], at) => [
        name,
        `${median(results.map((result) => result[side])).toFixed(1)} µs`,
        times(ratio(side, base)),
        claims[at] ? goalText(claims[at]) : "",
      ]),
      claims: claims.filter((claim) => claim !== undefined),
    },
  ];
}
