import { atMost, goalText } from "../lib/claims.mjs";
import { devicesList, missingCli, pipedSide, withHome } from "../lib/cli.mjs";
import { compare } from "../lib/compare.mjs";
import { run, startServer } from "../lib/process.mjs";
import { duration, times } from "../lib/table.mjs";

export const title = "YAML against JSON";
export const start = "in every figure";
export const shows =
  "CPU of the whole command that prints 10,000 devices as YAML, against the same command as JSON. A third of their addresses " +
  "are of IPv6, and a fifth of their titles have an apostrophe. It does not show how long a reader of YAML takes.";

const ITEMS = 10_000;

export const unavailable = missingCli;

export async function measure({ quick }) {
  const rounds = quick ? 1 : 7;
  const server = await startServer(ITEMS);
  try {
    const results = await withHome(async (env) => {
      const lines = async (format) => (await run(devicesList(server.url, format), { env, piped: true })).lines;
      const side = async (format) =>
        pipedSide(`agentauth -o ${format}`, devicesList(server.url, format), await lines(format), env);
      return compare([await side("json"), await side("yaml")], rounds);
    });
    const claim = atMost("10,000 devices as YAML, CPU", "as JSON", results[1].ratio("cpuMs"), 2, { start: true });
    return [
      {
        caption: `${ITEMS.toLocaleString("en")} devices, ${rounds} rounds`,
        header: ["side", "CPU", "vs. JSON", "goal"],
        rows: results.map((result, at) => [
          result.name,
          duration(result.median("cpuMs")),
          times(result.ratio("cpuMs")),
          at === 1 ? goalText(claim) : "",
        ]),
        claims: [claim],
      },
    ];
  } finally {
    await server.stop();
  }
}
