// The same request with agent.fetch, through a broker in this process, and over its socket: broker.mjs <mcp_url> <requests>.
// The same through a broker with 10,000 grants. Prints the CPU of each in µs per request, and the p50 of what a client waits
// in ms, with and without the broker.
import { mkdtempSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createBroker, listen } from "../../../dist/broker/index.js";
import { AgentClient } from "../../../dist/index.js";
import { memoryStore } from "../../../dist/store/index.js";
import { median } from "../lib/compare.mjs";
import { login, TOOLS_LIST } from "../lib/login.mjs";

const [mcpUrl, requests] = process.argv.slice(2);
const agent = new AgentClient({ store: memoryStore(), login });
const authorization = `Bearer ${(await agent.token(mcpUrl)).value}`;
const socketPath = join(mkdtempSync(join(tmpdir(), "b-")), "run", "a.sock");
const broker = createBroker(agent, {
  grants: { mcp: { server: mcpUrl } },
  clients: { job: { listen: `unix:${socketPath}` } },
});
const listening = await listen(broker);
const grants = Object.fromEntries(Array.from({ length: 10_000 }, (_, nth) => [`g${nth}`, { server: mcpUrl }]));
const large = createBroker(agent, { grants: { ...grants, mcp: { server: mcpUrl } }, clients: broker.policy.clients });

const keepAlive = new Agent({ keepAlive: true });
const { headers, body, method } = TOOLS_LIST;
const SIDES = {
  agentFetch: async () => (await agent.fetch(mcpUrl, TOOLS_LIST)).text(),
  broker: async () => (await broker.fetch(new Request("http://broker/mcp", TOOLS_LIST), "job")).text(),
  large: async () => (await large.fetch(new Request("http://broker/mcp", TOOLS_LIST), "job")).text(),
  direct: () => exchange(mcpUrl, { headers: { ...headers, authorization } }),
  socket: () => exchange("http://localhost/mcp", { headers, socketPath }),
};

/** One request with `node:http`, as a client without a library sends it. */
function exchange(url, options) {
  return new Promise((resolve, reject) => {
    const sent = request(url, { ...options, method, agent: keepAlive }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`HTTP ${response.statusCode}`));
      response.resume().on("end", resolve);
    });
    sent.on("error", reject).end(body);
  });
}

// The first part warms up.
const PARTS = 10;
const part = Math.ceil(Number(requests) / PARTS);
const cpu = Object.fromEntries(Object.keys(SIDES).map((name) => [name, 0]));
const waits = Object.fromEntries(Object.keys(SIDES).map((name) => [name, []]));
for (let nth = 0; nth <= PARTS; nth++) {
  for (const [name, send] of Object.entries(SIDES)) {
    const before = process.cpuUsage();
    for (let sent = 0; sent < part; sent++) {
      const started = performance.now();
      await send();
      if (nth > 0) waits[name].push(performance.now() - started);
    }
    const { user, system } = process.cpuUsage(before);
    if (nth > 0) cpu[name] += (user + system) / (part * PARTS);
  }
}
keepAlive.destroy();
await listening.close(0);
const p50 = Object.fromEntries(Object.entries(waits).map(([name, all]) => [name, median(all)]));
console.log(JSON.stringify({ cpu, p50 }));
