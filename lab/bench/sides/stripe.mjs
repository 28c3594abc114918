// stripe's auto-pager over the same devices, in its own envelope.
import Stripe from "stripe";
import { side, TOKEN } from "../lib/side.mjs";

await side(async ({ url, pageSize }, take) => {
  const { hostname, port } = new URL(url);
  const client = new Stripe(TOKEN, { host: hostname, port, protocol: "http", telemetry: false });
  for await (const item of client.customers.list({ limit: pageSize })) take(item);
});
