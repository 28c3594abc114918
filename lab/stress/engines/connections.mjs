// What it costs to list many logins by page, in processes that do nothing else.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { must, quantile } from "../tools.mjs";
import { inEngines, missingEngine } from "./engines.mjs";
import { openFleet } from "./fleet.mjs";
import { connect, fillStore, openStore } from "./store.mjs";

/** The scenario. */
export const connections = {
  title: "Listing the logins of a tenant",
  header: ["", "Redis", "PostgreSQL"],
  unavailable: missingEngine,
  run,
};

const READER = fileURLToPath(new URL("connections-reader.mjs", import.meta.url));
const SIZES = { short: 10_000, long: 100_000 };
/** V8 collects nothing before its heap has grown by far more than a page; so little shows what a reader needs. */
const SMALL_HEAP = ["--max-old-space-size=24", "--max-semi-space-size=1"];
/** Every so manieth login needs another one. */
const EACH_REFUSED = 100;

/** @returns the rows of its table */
async function run({ size, say }) {
  const users = SIZES[size];
  const columns = [];
  await inEngines(["redis", "postgres"], async (_, engine) => {
    const found = await measure(engine, users);
    const [memory, live] = ["peakMb", "liveMb"].map((name) => found.all[name] / found.first[name]);
    const small = found.allSmall.peakMb / found.firstSmall.peakMb;
    say(
      `${engine.name}: goal page p99 ≤ 50: ${quantile(found.all.pages, 0.99).toFixed(1)}; memory ≤ 1.25: peak in a small heap ${small.toFixed(2)}, live ${live.toFixed(2)}`,
    );
    columns.push([
      quantile(found.all.pages, 0.5).toFixed(1),
      quantile(found.all.pages, 0.99).toFixed(1),
      quantile(found.refused.pages, 0.5).toFixed(1),
      (found.all.ms / 1000).toFixed(1),
      `${found.first.peakMb.toFixed(0)} MB`,
      `${found.all.peakMb.toFixed(0)} MB (${memory.toFixed(2)})`,
      `${found.firstSmall.peakMb.toFixed(0)} and ${found.allSmall.peakMb.toFixed(0)} MB (${small.toFixed(2)})`,
      `${found.first.liveMb.toFixed(1)} and ${found.all.liveMb.toFixed(1)} MB (${live.toFixed(2)})`,
    ]);
  });
  const names = [
    "page of 100, p50 (ms)",
    "page of 100, p99 (ms)",
    "page of 100 that need a login, p50 (ms)",
    `all ${users.toLocaleString("en")} logins (s)`,
    "peak memory of a process that reads the first page",
    "that has read all (vs. the first page)",
    "both with a heap of at most 24 MB",
    "what is left after a collection",
  ];
  return names.map((name, row) => [name, ...columns.map((column) => column[row])]);
}

async function measure(engine, users) {
  const fleet = await openFleet({ engine, users: 1 });
  const link = await connect(engine.address);
  const tenant = "many";
  try {
    const [grant] = await fleet.grants();
    const retired = { at: Date.now(), reason: "invalid_grant" };
    const more = (user) => user % EACH_REFUSED === 0 && { retired };
    await fillStore(openStore(link.driver, { tenant }), grant, users, more);
    const read = async ({ query = {}, pages, flags = [] } = {}) => {
      const settings = JSON.stringify({ address: engine.address, tenant, query, pages });
      const args = [...flags, READER, settings];
      const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 1 << 26 });
      return JSON.parse(stdout);
    };
    const [first, all] = [await read({ pages: 1 }), await read()];
    const [firstSmall, allSmall] = [await read({ pages: 1, flags: SMALL_HEAP }), await read({ flags: SMALL_HEAP })];
    const refused = await read({ query: { state: "needs_login" } });
    must(all.items === users, `${all.items} of ${users} logins were listed`);
    must(refused.items === users / EACH_REFUSED, `${refused.items} logins need a login`);
    return { first, all, firstSmall, allSmall, refused };
  } finally {
    await link.close();
    await fleet.close();
  }
}
