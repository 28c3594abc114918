import { expect, it, onTestFinished } from "vitest";
import { type BrokerEvent, createBroker } from "../../src/broker/broker.js";
import { systemClock } from "../../src/http/deadline.js";
import { HttpRequest } from "../../src/http/http-request.js";
import { AgentClient } from "../../src/oauth/agent.js";
import { startSandbox } from "../../src/sandbox/index.js";
import { memoryStore } from "../../src/store/memory.js";
import { TestLogin } from "../helpers/login.js";

const MINUTE = 60_000;
const REQUESTS = 100 * 60;

it("a login whose tokens are valid for a minute serves a request a minute for 100 hours", {
  timeout: 300_000,
}, async () => {
  const sandbox = await startSandbox({ accessTokenTtlSeconds: 60, autoApprove: true, devices: 1 });
  onTestFinished(() => sandbox.close());
  const now = () => sandbox.clock.now();
  const client = { store: memoryStore(), clock: { ...systemClock, now, epoch: now } };
  await new AgentClient({ ...client, login: new TestLogin() }).login(sandbox.mcpUrl);
  const events: BrokerEvent[] = [];
  const policy = {
    grants: { mcp: { server: sandbox.mcpUrl, tools: ["who*"] } },
    clients: { job: { listen: "127.0.0.1:0" } },
  };
  const broker = createBroker(new AgentClient(client), policy, { onRequest: (event) => events.push(event) });
  const begun = now();
  const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }));
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const statuses = new Map<number, number>();
  for (let nth = 0; nth < REQUESTS; nth++) {
    sandbox.clock.advance(MINUTE);
    const response = await broker.fetch(new HttpRequest("http://broker/mcp", { method: "POST", headers, body }), "job");
    await response.text();
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
  }
  expect(statuses).toEqual(new Map([[200, REQUESTS]]));
  expect(events.filter(({ refused }) => refused !== undefined)).toEqual([]);
  expect([events.length, now() - begun >= 100 * 60 * MINUTE]).toEqual([REQUESTS, true]);
});
