// Runs the benchmarks: node bench/run.mjs [workload…] [--quick] [--write]
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { describeRun, section, writeSections } from "./lib/report.mjs";

const WORKLOADS = [
  "listing-cpu",
  "listing-latency",
  "listing-memory",
  "output-ndjson",
  "output-table",
  "resource-server",
  "startup",
  "token-cached",
  "many-logins",
  "first-token",
  "refresh-race",
];

const PEERS = ["stripe", "openai", "cli-table3", "@modelcontextprotocol/client", "@modelcontextprotocol/sdk"];

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: "boolean", default: false }, write: { type: "boolean", default: false } },
});
const unknown = positionals.find((name) => !WORKLOADS.includes(name));
if (unknown !== undefined) fail(`no workload ${JSON.stringify(unknown)}; there are ${WORKLOADS.join(", ")}`);
if (flags.quick && flags.write) fail("a short run is not worth writing down: leave out --quick or --write");

const folder = fileURLToPath(new URL(".", import.meta.url));
if (!existsSync(`${folder}../dist/index.js`)) fail("there is no dist/: run `npm run build` first");
installPeers();

const about = describeRun();
console.log(`${about}${flags.quick ? ", short run: finds errors, gives no figures" : ""}\n`);
const sections = new Map();
const skipped = [];
for (const name of positionals.length > 0 ? positionals : WORKLOADS) {
  const workload = await import(`./workloads/${name}.mjs`);
  const reason = workload.unavailable?.();
  if (reason !== undefined) {
    skipped.push(`${name} was NOT measured: ${reason}`);
    console.log(`!!! ${skipped.at(-1)}\n`);
    continue;
  }
  const text = section(workload, await workload.measure(flags), about);
  console.log(`## ${name}: ${text}\n`);
  sections.set(name, text);
}
if (flags.write) writeSections(`${folder}README.md`, sections);
if (skipped.length > 0) fail(skipped.join("\n"));

/** Installs the peers, which only the benchmarks need, on demand. */
function installPeers() {
  if (PEERS.every((name) => existsSync(`${folder}node_modules/${name}`))) return;
  const installed = spawnSync("npm", ["ci", "--prefix", folder], { stdio: "inherit" });
  if (installed.status !== 0) fail("the peers could not be installed");
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
