// The main program of a listing side: reads its arguments, checks the items, prints the duration and the CPU of the listing alone.
import { Checker } from "./check.mjs";

/** The token that every side sends. */
export const TOKEN = "bench-token-0123456789";
/** The pool that every side lists. */
export const POOL = "pool_2n5v8b1hjd";

/**
 * Runs a side.
 *
 * @param list receives base address, page size and pages in flight, and calls `take` with each item in order
 */
export async function side(list) {
  const [url, items, pageSize, concurrency] = process.argv.slice(2);
  const checker = new Checker();
  const cpuBefore = process.cpuUsage();
  const startedAt = performance.now();
  await list({ url, pageSize: Number(pageSize), concurrency: Number(concurrency ?? 1) }, (item) => checker.take(item));
  const listMs = performance.now() - startedAt;
  const cpu = process.cpuUsage(cpuBefore);
  checker.finish(Number(items));
  console.log(JSON.stringify({ listMs, listCpuMs: (cpu.user + cpu.system) / 1000 }));
}

/** The address of the page at an offset, for the sides that build it by hand. */
export function pageUrl(url, offset, pageSize) {
  const query = new URLSearchParams({
    pool_id: POOL,
    "pagination[offset]": String(offset),
    "pagination[page_size]": String(pageSize),
  });
  return `${url}/api/v1/device?${query}`;
}
