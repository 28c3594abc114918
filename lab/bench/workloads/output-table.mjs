import { atMost, goalText } from "../lib/claims.mjs";
import { devicesList, missingCli, withHome } from "../lib/cli.mjs";
import { compare } from "../lib/compare.mjs";
import { program } from "../lib/listing-sides.mjs";
import { run, startServer } from "../lib/process.mjs";
import { duration, megabytes, times } from "../lib/table.mjs";

export const title = "Tables";
export const shows =
  "Wall time of the whole command, from its start over fetching to the last row in a pipe. cli-table3 reads its " +
  "rows from memory and renders one text; it ran once. It does not show a terminal, which takes longer to draw.";

export const unavailable = missingCli;

export const start = "in every figure";

const ROWS = [10_000, 100_000];

export async function measure({ quick }) {
  const rounds = quick ? 1 : 5;
  const server = await startServer(ROWS.at(-1));
  try {
    const results = await withHome((env) =>
      compare(
        ROWS.map((rows) => ({
          name: `agentauth -o table, ${rows.toLocaleString("en")} rows`,
          measure: () => printed(rows, [...devicesList(server.url, "table"), "--limit", rows], env),
        })),
        rounds,
      ),
    );
    const peers = [];
    for (const rows of quick ? [1000] : [2000, 10_000]) {
      const usage = await printed(rows, [program("cli-table3"), rows]);
      peers.push([
        `cli-table3 whole, ${rows.toLocaleString("en")} rows`,
        usage.wallMs,
        usage.cpuMs,
        usage.peakKiB,
        "",
        "",
      ]);
    }
    const [small, large] = results;
    const claims = [
      atMost("a table of 10,000 devices, wall time", "–", small.median("wallMs") / 1000, 1, { unit: "s", start: true }),
      atMost("a table of 100,000 devices, wall time", "10,000", large.ratio("wallMs"), 12, { start: true }),
    ];
    const own = results.map((side, at) => [
      side.name,
      ...["wallMs", "cpuMs", "peakKiB"].map((key) => side.median(key)),
      at === 0 ? "" : times(side.ratio("wallMs")),
      goalText(claims[at]),
    ]);
    return [
      {
        caption: `${rounds} rounds`,
        header: ["side", "wall", "CPU", "peak memory", "vs. 10,000 rows", "goal"],
        rows: [...own, ...peers].map(([name, wall, cpu, peak, ...rest]) => {
          return [name, duration(wall), duration(cpu), megabytes(peak), ...rest];
        }),
        claims,
      },
    ];
  } finally {
    await server.stop();
  }
}

/** A table has at least one line per row, plus header and rules. */
async function printed(rows, args, env) {
  const usage = await run(args.map(String), { env, piped: true });
  if (usage.lines < rows) throw new Error(`${usage.lines} lines were printed for ${rows} rows`);
  return usage;
}
