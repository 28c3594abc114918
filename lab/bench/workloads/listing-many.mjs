import { atMost, goalText } from "../lib/claims.mjs";
import { compare } from "../lib/compare.mjs";
import { program } from "../lib/listing-sides.mjs";
import { run, startServer } from "../lib/process.mjs";
import { megabytes, times } from "../lib/table.mjs";

export const title = "50 listings at once";
export const start = "not in the CPU, but in the memory";
export const shows =
  "CPU and peak memory of one process that reads 50 lists at the same time. It does not show a service that slows down " +
  "under parallel requests. `agentauth` sends with the global `fetch`, `agentauth/node` over node:http.";

const LISTINGS = 50;

export async function measure({ quick }) {
  const items = 2000;
  const rounds = quick ? 1 : 7;
  const server = await startServer(items);
  const side = (name, how) => ({
    name,
    async measure() {
      const { out, ...usage } = await run([program("listing-many"), how, server.url, items, LISTINGS].map(String));
      return { ...usage, ...JSON.parse(out) };
    },
  });
  try {
    const sides = [side("fetch loops", "loop"), side("agentauth, with fetch", "agentauth")];
    const results = await compare([...sides, side("agentauth/node", "agentauth-node")], rounds);
    const own = results[2];
    const claims = [
      atMost("50 listings at once, CPU", "50 `fetch` loops", own.ratio("listCpuMs"), 1.2),
      atMost("50 listings at once, peak memory", "50 `fetch` loops", own.ratio("peakKiB"), 1.2, { start: true }),
    ];
    return [
      {
        caption: `${LISTINGS} lists of ${items.toLocaleString("en")} items, 100 per page, ${rounds} rounds`,
        header: ["side", "CPU", "vs. the loops", "goal", "peak memory", "vs. the loops", "goal"],
        rows: results.map((result) => [
          result.name,
          `${result.median("listCpuMs").toFixed(0)} ms`,
          times(result.ratio("listCpuMs")),
          result === own ? goalText(claims[0]) : "",
          megabytes(result.median("peakKiB")),
          times(result.ratio("peakKiB")),
          result === own ? goalText(claims[1]) : "",
        ]),
        claims,
      },
    ];
  } finally {
    await server.stop();
  }
}
