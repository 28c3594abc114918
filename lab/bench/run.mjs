// Runs the benchmarks: node lab/bench/run.mjs [workload…] [--quick] [--write]
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { installPackages } from "../install.mjs";
import { describeRun, readResults, resultOf, section, writeResults } from "./lib/report.mjs";

const WORKLOADS = [
  "listing-cpu",
  "listing-latency",
  "listing-memory",
  "listing-many",
  "output-ndjson",
  "output-table",
  "resource-server",
  "agent-fetch",
  "events",
  "broker",
  "mcp-proxy",
  "startup",
  "startup-network",
  "token-cached",
  "many-logins",
  "first-token",
  "refresh-race",
  "sandbox",
  "install-size",
];

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: "boolean", default: false }, write: { type: "boolean", default: false } },
});
const unknown = positionals.find((name) => !WORKLOADS.includes(name));
if (unknown !== undefined) fail(`no workload ${JSON.stringify(unknown)}; there are ${WORKLOADS.join(", ")}`);
if (flags.quick && flags.write) fail("a short run is not worth writing down: leave out --quick or --write");

const folder = fileURLToPath(new URL(".", import.meta.url));
if (!existsSync(`${folder}../../dist/index.js`)) fail("there is no dist/: run `npm run build` first");
if (!installPackages()) fail("the peers could not be installed");

const about = describeRun();
console.log(`${about}${flags.quick ? ", short run: finds errors, gives no figures" : ""}\n`);
const skipped = [];
for (const name of positionals.length > 0 ? positionals : WORKLOADS) {
  const workload = await import(`./workloads/${name}.mjs`);
  const reason = workload.unavailable?.();
  if (reason !== undefined) {
    skipped.push(`${name} was NOT measured: ${reason}`);
    console.log(`!!! ${skipped.at(-1)}\n`);
    continue;
  }
  const result = resultOf(workload, await workload.measure(flags), about);
  console.log(`## ${name}: ${section(result)}\n`);
  // After each workload: what an interrupted run has measured counts.
  if (flags.write) writeResults({ ...readResults(), [name]: result });
}
if (skipped.length > 0) fail(skipped.join("\n"));

function fail(message) {
  console.error(message);
  process.exit(1);
}
