import { atMost, goalText } from "../lib/claims.mjs";
import { compare } from "../lib/compare.mjs";
import { listingSide } from "../lib/listing-sides.mjs";
import { startServer } from "../lib/process.mjs";
import { megabytes, times } from "../lib/table.mjs";

export const title = "Listing, CPU per item";
export const shows =
  "CPU time (user and system) divided by the items, without latency: of the whole process, its start included, and of " +
  "the listing alone. Pages of 25, 100 and 1,000 devices of about 1 KB. It does not show the wall time of a listing over " +
  "a network.";

export const start = "in the first ratio, not in the second, which has the goal";

/** By page size: the most that an item may cost, against the loop. */
const GOALS = { 25: 0.6, 100: 0.75, 1000: 0.9 };

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
          listingSide("agentauth", "agentauth", at),
          listingSide("agentauth, 4 in flight", "agentauth", { ...at, concurrency: 4 }),
          listingSide("stripe", "stripe", at),
          listingSide("openai", "openai", at),
          listingSide("octokit", "octokit", at),
          listingSide("limit: socket + JSON.parse", "socket", at),
        ],
        rounds,
      );
      const own = results.find((side) => side.name === "agentauth");
      const pages = `${pageSize.toLocaleString("en")} per page`;
      const claim = atMost(
        `a list, ${pages}, CPU of an item`,
        "a `fetch` loop",
        own.ratio("listCpuMs"),
        GOALS[pageSize],
      );
      tables.push({
        caption: `${items.toLocaleString("en")} items, ${pages}, ${rounds} rounds`,
        header: HEADER,
        rows: results.map((side) => [
          side.name,
          `${((side.median("cpuMs") * 1000) / items).toFixed(2)} µs`,
          times(side.ratio("cpuMs")),
          times(side.ratio("listCpuMs")),
          megabytes(side.median("peakKiB")),
          side === own ? goalText(claim) : "",
        ]),
        claims: [claim],
      });
    }
    return tables;
  } finally {
    await server.stop();
  }
}
