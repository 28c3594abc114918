import { compare } from "../lib/compare.mjs";
import { listingSide } from "../lib/listing-sides.mjs";
import { startServer } from "../lib/process.mjs";
import { duration, times } from "../lib/table.mjs";

export const title = "Listing, 50 ms per page";
export const shows =
  "Wall time of the listing (without the start of the process) when every page takes 50 ms to come; every side checks " +
  "that all items came, once and in order. It does not show a service that slows down under parallel requests.";

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
    const goals = { "agentauth, 4 in flight": "≥ 3.5×", "agentauth, 8 in flight": "≥ 5.5×" };
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
      },
    ];
  } finally {
    await server.stop();
  }
}
