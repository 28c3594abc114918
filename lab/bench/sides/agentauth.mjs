// The SDK of agentauth, as a program uses it.
import { POOL, side, TOKEN } from "../lib/side.mjs";

// Replaceable by another build, to compare the two.
const { ManagementClient } = await import(process.env.BENCH_LIBRARY ?? "../../../dist/index.js");

await side(async ({ url, pageSize, concurrency }, take) => {
  const service = new ManagementClient({ baseUrl: url, token: TOKEN });
  for await (const device of service.devices.list({ pool_id: POOL }, { pageSize, concurrency })) take(device);
});
