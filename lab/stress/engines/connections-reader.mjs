// Lists logins, and prints what that took: node connections-reader.mjs <settings as JSON>
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { connect, openStore } from "./store.mjs";

const { address, tenant, query, pages: most = Number.POSITIVE_INFINITY } = JSON.parse(process.argv[2]);
const link = await connect(address, { timeoutMs: 30_000 });
setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc");
const pages = [];
let items = 0;
const store = openStore(link.driver, { tenant });
// The connection, and the look at the clock of the engine, are no part of a page.
await store.read({ profile: "user-0", server: "https://mcp.example/mcp" });
const started = performance.now();
let from = started;
for await (const page of store.connections({ limit: 100, ...query })) {
  pages.push(performance.now() - from);
  items += page.items.length;
  if (pages.length >= most) break;
  from = performance.now();
}
const ms = performance.now() - started;
const peakMb = process.resourceUsage().maxRSS / 1024;
gc();
// What a collection frees outside of the heap is counted until the next one.
await new Promise(setImmediate);
gc();
const { heapUsed, external } = process.memoryUsage();
await link.close();
console.log(JSON.stringify({ pages, items, ms, peakMb, liveMb: (heapUsed + external) / 2 ** 20 }));
