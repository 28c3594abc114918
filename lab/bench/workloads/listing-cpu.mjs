import { atMost, goalText } from "../lib/claims.mjs";
import { compare } from "../lib/compare.mjs";
import { listingSide } from "../lib/listing-sides.mjs";
import { startServer } from "../lib/process.mjs";
import { megabytes, times } from "../lib/table.mjs";

export const title = "Listing, CPU per item";
export const shows =
  "CPU time (user and system) divided by the items, without latency: of the whole process, its start included, and of " +
  "the listing alone. Pages of 25, 100 and 1,000 devices of about 1 KB. It does not show the wall time of a listing over " +
  "a network. `agentauth` sends with the global `fetch`, `agentauth/node` over node:http, whose own cost is the side " +
  "`limit: node:http loop`: it has no deadline, no cap, no retry and no check.";

export const start = "in the first ratio, not in the second, which has the goal";

/** What a page may cost above the loop, in milliseconds of CPU: no program feels that. */
const GOAL_OF_PAGE = 1.2;
/** The most that an item may cost against the loop over the same `fetch`: deadline, cap and checks come to that. */
const GOAL_OF_FETCH = 1.35;

const HEADER = ["side", "CPU per item", "vs. the loop", "without the start", "peak memory", "goal without the start"];

export async function measure({ quick }) {
  const items = quick ? 20_000 : 100_000;
  const rounds = quick ? 3 : 9;
  const server = await startServer(items);
  try {
    const tables = [];
    for (const pageSize of [25, 100, 1000]) {
      const at = { url: server.url, items, pageSize };
      const results = await compare(
        [
          listingSide("fetch loop", "loop", at),
          listingSide("agentauth, with fetch", "agentauth", at),
          listingSide("agentauth/node", "agentauth-node", at),
          listingSide("agentauth/node, 4 in flight", "agentauth-node", { ...at, concurrency: 4 }),
          listingSide("stripe", "stripe", at),
          listingSide("openai", "openai", at),
          listingSide("octokit", "octokit", at),
          listingSide("limit: node:http loop", "http-loop", at),
          listingSide("limit: socket + JSON.parse", "socket", at),
        ],
        rounds,
      );
      const pages = `${pageSize.toLocaleString("en")} per page`;
      const [, overFetch, ofNode] = results;
      const [what, against] = [`a list over \`fetch\`, ${pages}, CPU of an item`, "a `fetch` loop"];
      const pageOf = (side, name) => {
        const above = (side.difference("listCpuMs") * pageSize) / items;
        return atMost(`a page of ${name}, ${pages}, CPU above the loop`, against, above, GOAL_OF_PAGE, { unit: "ms" });
      };
      const claimed = [
        { side: overFetch, claim: atMost(what, against, overFetch.ratio("listCpuMs"), GOAL_OF_FETCH) },
        { side: overFetch, claim: pageOf(overFetch, "a list over `fetch`") },
        { side: ofNode, claim: pageOf(ofNode, "`agentauth/node`") },
      ];
      const goalOf = (side) => claimed.filter((one) => one.side === side).map(({ claim }) => goalText(claim));
      tables.push({
        caption: `${items.toLocaleString("en")} items, ${pages}, ${rounds} rounds`,
        header: HEADER,
        rows: results.map((side) => [
          side.name,
          `${((side.median("cpuMs") * 1000) / items).toFixed(2)} µs`,
          times(side.ratio("cpuMs")),
          times(side.ratio("listCpuMs")),
          megabytes(side.median("peakKiB")),
          goalOf(side).join(", "),
        ]),
        claims: claimed.map(({ claim }) => claim),
      });
    }
    return tables;
  } finally {
    await server.stop();
  }
}
