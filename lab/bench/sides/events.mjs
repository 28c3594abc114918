// Reads the same stored token with and without a receiver of events, in turns: events.mjs <mcp_url> <calls> <first side>.
// Prints the CPU of each in µs per call. V8 serves the client that a process creates first 5 % faster than an equal one.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgentClient } from "../../../dist/index.js";
import { fileStore } from "../../../dist/node.js";
import { logIn } from "../lib/stored-login.mjs";

const [mcpUrl, calls, first] = process.argv.slice(2);
const home = await mkdtemp(join(tmpdir(), "agentauth-events-"));
await logIn(home, mcpUrl);

let received = 0;
const OPTIONS = { silent: {}, onEvent: { onEvent: () => received++ } };
const names = Object.keys(OPTIONS).sort((name) => (name === first ? -1 : 1));
const sides = names.map((name) => [name, new AgentClient({ store: fileStore(home), ...OPTIONS[name] })]);

// The first part warms up. Many short parts, and each side is the first in half of them: what disturbs the machine, and
// what the earlier side leaves to collect, affects both.
const PARTS = 40;
const part = Math.ceil(Number(calls) / PARTS);
const spent = { silent: 0, onEvent: 0 };
for (let nth = 0; nth <= PARTS; nth++) {
  for (const [name, agent] of nth % 2 === 0 ? sides : sides.toReversed()) {
    const before = process.cpuUsage();
    for (let called = 0; called < part; called++) await agent.token(mcpUrl);
    const { user, system } = process.cpuUsage(before);
    if (nth > 0) spent[name] += user + system;
  }
}
await rm(home, { recursive: true });
if (received < part * PARTS) throw new Error(`${received} events were received for ${part * (PARTS + 1)} tokens`);
console.log(JSON.stringify(Object.fromEntries(Object.entries(spent).map(([name, us]) => [name, us / (part * PARTS)]))));
