import { devicesList, missingCli, pipedSide, withHome } from "../lib/cli.mjs";
import { compare } from "../lib/compare.mjs";
import { program } from "../lib/listing-sides.mjs";
import { startServer } from "../lib/process.mjs";
import { duration, megabytes, times } from "../lib/table.mjs";

export const title = "A list into a pipe";
export const shows =
  "CPU of whole processes that fetch the same pages of 1,000 devices and turn each device into a line: the command " +
  "`agentauth devices list`, at its default concurrency and with secrets masked, against scripts that loop over fetch. " +
  "`stringify alone` drops the lines; the others write them into a pipe that `wc` reads. Fetching and parsing are in every figure, so the difference in writing alone is larger than the ratios show.";

const GOALS = {
  "agentauth -o ndjson": "≤ 1.4×, ≤ 1.35×",
  "agentauth -o csv": "≤ 1.6×, ≤ 1.35×",
  "agentauth -o table": "≤ 1.4×, ≤ 1.35×",
};

export const unavailable = missingCli;

export async function measure({ quick }) {
  const items = quick ? 20_000 : 100_000;
  const rounds = quick ? 3 : 7;
  const server = await startServer(items);
  const script = (how, name, lines) => pipedSide(name, [program("ndjson"), how, server.url, 1000], lines);
  try {
    const results = await withHome((env) =>
      compare(
        [
          script("none", "stringify alone", 1),
          pipedSide("agentauth -o ndjson", devicesList(server.url, "ndjson"), items, env),
          pipedSide("agentauth -o csv", devicesList(server.url, "csv"), items + 1, env),
          pipedSide("agentauth -o table", devicesList(server.url, "table"), items + 1, env),
          script("page", "one write per page", items),
          script("line", "console.log per line", items),
        ],
        rounds,
      ),
    );
    return [
      {
        caption: `${items.toLocaleString("en")} devices, ${rounds} rounds`,
        header: ["side", "CPU", "vs. stringify alone", "wall", "peak memory", "memory vs. it", "goal (CPU, memory)"],
        rows: results.map((side) => [
          side.name,
          duration(side.median("cpuMs")),
          times(side.ratio("cpuMs")),
          duration(side.median("wallMs")),
          megabytes(side.median("peakKiB")),
          times(side.ratio("peakKiB")),
          GOALS[side.name] ?? "",
        ]),
      },
    ];
  } finally {
    await server.stop();
  }
}
