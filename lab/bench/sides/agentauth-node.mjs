// The client of `agentauth/node`, which sends over node:http.
import { POOL, side, TOKEN } from "../lib/side.mjs";

// Replaceable by another build, to compare the two.
const { createManagementClient } = await import(process.env.BENCH_NODE_LIBRARY ?? "../../../dist/node.js");

await side(async ({ url, pageSize, concurrency }, take) => {
  const service = createManagementClient({ baseUrl: url, token: TOKEN });
  for await (const device of service.devices.list({ pool_id: POOL }, { pageSize, concurrency })) take(device);
});
