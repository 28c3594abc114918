import { atMost, goalText } from "../lib/claims.mjs";
import { CLI, devicesList, missingCli, pipedSide, withHome } from "../lib/cli.mjs";
import { compare } from "../lib/compare.mjs";
import { program } from "../lib/listing-sides.mjs";
import { run, startServer } from "../lib/process.mjs";
import { POOL } from "../lib/side.mjs";
import { duration, megabytes, times } from "../lib/table.mjs";

export const title = "A list into a pipe";
export const shows =
  "CPU of whole processes that fetch the same pages of 1,000 devices and turn each device into a line: the command " +
  "`agentauth devices list`, at its default concurrency and with secrets masked, against scripts that loop over fetch. " +
  "`stringify alone` drops the lines; the others write them into a pipe that `wc` reads. Fetching and parsing are in every figure, so the difference in writing alone is larger than the ratios show.";

export const start = "in every figure";

/** The most CPU and memory, against `stringify alone`. */
const GOALS = {
  "agentauth -o ndjson": { cpuMs: 1.4, peakKiB: 1.35 },
  "agentauth -o csv": { cpuMs: 1.6, peakKiB: 1.35 },
  "agentauth -o table": { cpuMs: 1.4, peakKiB: 1.35 },
  "agentauth --jq": { peakKiB: 2 },
  "agentauth devices report": { cpuMs: 1.7 },
};

const MEASURES = { cpuMs: "CPU", peakKiB: "peak memory" };

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
          pipedSide("agentauth --jq", devicesList(server.url, "json", "--jq", ".[].id"), items, env),
          reportSide(server.url, env),
          script("page", "one write per page", items),
          script("line", "console.log per line", items),
        ],
        rounds,
      ),
    );
    const claims = results.map((side) =>
      Object.entries(GOALS[side.name] ?? {}).map(([key, goal]) => {
        const what = `\`${side.name}\` of ${items.toLocaleString("en")} devices, ${MEASURES[key]}`;
        return atMost(what, "`JSON.stringify` alone", side.ratio(key), goal, { start: true });
      }),
    );
    return [
      {
        caption: `${items.toLocaleString("en")} devices, ${rounds} rounds`,
        header: ["side", "CPU", "vs. stringify alone", "wall", "peak memory", "memory vs. it", "goal (CPU, memory)"],
        rows: results.map((side, at) => [
          side.name,
          duration(side.median("cpuMs")),
          times(side.ratio("cpuMs")),
          duration(side.median("wallMs")),
          megabytes(side.median("peakKiB")),
          times(side.ratio("peakKiB")),
          claims[at].map(goalText).join(", "),
        ]),
        claims: claims.flat(),
      },
    ];
  } finally {
    await server.stop();
  }
}

/** The report of all devices, as text. */
function reportSide(url, env) {
  const args = [CLI, "devices", "report", "--pool", POOL, "--base-url", url, "--page-size", "1000"];
  return { name: "agentauth devices report", measure: () => run(args, { env }) };
}
