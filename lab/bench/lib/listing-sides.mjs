// The sides of the listing workloads: one program per side, one process per measurement.
import { fileURLToPath } from "node:url";
import { run } from "./process.mjs";

/** The path of a side's program. */
export function program(name) {
  return fileURLToPath(new URL(`../sides/${name}.mjs`, import.meta.url));
}

/** A side that lists: measures the process and the duration of the listing. */
export function listingSide(name, script, { url, items, pageSize, concurrency = 1 }) {
  return {
    name,
    async measure() {
      const { out, ...usage } = await run([program(script), url, items, pageSize, concurrency].map(String));
      return { ...usage, ...JSON.parse(out) };
    },
  };
}
