// Sends the same request with fetch and with agent.fetch, in turns: agent-fetch.mjs <mcp_url> <requests>. Prints the CPU of
// each in µs per request.
import { AgentClient } from "../../../dist/index.js";
import { memoryStore } from "../../../dist/store/index.js";
import { login, TOOLS_LIST } from "../lib/login.mjs";

const [mcpUrl, requests] = process.argv.slice(2);
const agent = new AgentClient({ store: memoryStore(), login });
const authorization = `Bearer ${(await agent.token(mcpUrl)).value}`;

const SIDES = {
  fetch: () => fetch(mcpUrl, { ...TOOLS_LIST, headers: { ...TOOLS_LIST.headers, authorization } }),
  agentFetch: () => agent.fetch(mcpUrl, TOOLS_LIST),
};

// The first part warms up.
const PARTS = 10;
const part = Math.ceil(Number(requests) / PARTS);
const spent = { fetch: 0, agentFetch: 0 };
for (let nth = 0; nth <= PARTS; nth++) {
  for (const [name, send] of Object.entries(SIDES)) {
    const before = process.cpuUsage();
    for (let sent = 0; sent < part; sent++) {
      const response = await send();
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      await response.text();
    }
    const { user, system } = process.cpuUsage(before);
    if (nth > 0) spent[name] += user + system;
  }
}
console.log(JSON.stringify(Object.fromEntries(Object.entries(spent).map(([name, us]) => [name, us / (part * PARTS)]))));
