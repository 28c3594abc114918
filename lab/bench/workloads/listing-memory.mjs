import { atMost, goalText } from "../lib/claims.mjs";
import { compare } from "../lib/compare.mjs";
import { listingSide } from "../lib/listing-sides.mjs";
import { startServer } from "../lib/process.mjs";
import { megabytes, times } from "../lib/table.mjs";

export const title = "Listing, peak memory";
export const shows =
  "Peak resident memory of the whole process while it streams a million items and keeps none. It does not show a " +
  "program that collects them with `toArray()`.";

export const start = "in every figure";

export async function measure({ quick }) {
  const items = quick ? 100_000 : 1_000_000;
  const rounds = quick ? 1 : 3;
  const server = await startServer(items);
  try {
    const at = { url: server.url, items, pageSize: 100 };
    const results = await compare(
      [
        listingSide("fetch loop", "loop", at),
        listingSide("agentauth", "agentauth", at),
        listingSide("agentauth, 4 in flight", "agentauth", { ...at, concurrency: 4 }),
      ],
      rounds,
    );
    const claims = results.slice(1).map((side) => {
      const what = `a list of ${items.toLocaleString("en")} items, ${side.name}, peak memory`;
      return atMost(what, "a `fetch` loop", side.ratio("peakKiB"), 1.25, { start: true });
    });
    return [
      {
        caption: `${items.toLocaleString("en")} items, 100 per page, ${rounds} rounds`,
        header: ["side", "peak memory", "vs. the loop", "CPU vs. the loop", "goal (memory)"],
        rows: results.map((side, at) => [
          side.name,
          megabytes(side.median("peakKiB")),
          times(side.ratio("peakKiB")),
          times(side.ratio("cpuMs")),
          at === 0 ? "" : goalText(claims[at - 1]),
        ]),
        claims,
      },
    ];
  } finally {
    await server.stop();
  }
}
