import { atLeast, goalText } from "../lib/claims.mjs";
import { compare } from "../lib/compare.mjs";
import { listingSide } from "../lib/listing-sides.mjs";
import { startServer } from "../lib/process.mjs";
import { duration, times } from "../lib/table.mjs";

export const title = "Listing, 50 ms per page";
export const shows =
  "Wall time of the listing (without the start of the process) when every page takes 50 ms to come; every side checks " +
  "that all items came, once and in order. It does not show a service that slows down under parallel requests.";

export const start = "not in the figures";

const LATENCY = 50;
const PAGE_SIZE = 100;

export async function measure({ quick }) {
  const pages = quick ? 40 : 100;
  const rounds = quick ? 1 : 5;
  const server = await startServer(pages * PAGE_SIZE, LATENCY);
  try {
    const at = { url: server.url, items: pages * PAGE_SIZE, pageSize: PAGE_SIZE };
    const results = await compare(
      [
        listingSide("fetch loop", "loop", at),
        listingSide("agentauth", "agentauth", at),
        listingSide("agentauth, 4 in flight", "agentauth", { ...at, concurrency: 4 }),
        listingSide("agentauth, 8 in flight", "agentauth", { ...at, concurrency: 8 }),
        listingSide("stripe", "stripe", at),
        listingSide("openai", "openai", at),
      ],
      rounds,
    );
    const claims = [4, 8].map((inFlight) => {
      const own = results.find((side) => side.name === `agentauth, ${inFlight} in flight`);
      const what = `a list of ${pages} pages at ${LATENCY} ms, ${inFlight} in flight, times faster`;
      return {
        name: own.name,
        ...atLeast(what, "a `fetch` loop", 1 / own.ratio("listMs"), inFlight === 4 ? 3.5 : 5.5),
      };
    });
    const goals = Object.fromEntries(claims.map(({ name, ...claim }) => [name, goalText(claim)]));
    return [
      {
        caption: `${pages} pages of ${PAGE_SIZE} items, ${LATENCY} ms per page, ${rounds} rounds`,
        header: ["side", "wall", "faster than the loop", "goal"],
        rows: results.map((side) => [
          side.name,
          duration(side.median("listMs")),
          times(1 / side.ratio("listMs")),
          goals[side.name] ?? "",
        ]),
        claims: claims.map(({ name: _, ...claim }) => claim),
      },
    ];
  } finally {
    await server.stop();
  }
}
