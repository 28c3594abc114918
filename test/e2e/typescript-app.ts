// The first hour of an app in TypeScript that has the packed package: its test, its login, its MCP client and its mistakes.
// It runs as it is shown, in a folder of its own; the compiler rejects the mistakes too.
import { strict as assert } from "node:assert";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { type AccessToken, AgentClient, type Device, isAgentAuthError, ManagementClient } from "agentauth";
import { createAgentClient, terminalLogin } from "agentauth/node";
import { type Fault, parseFault, startSandbox } from "agentauth/sandbox";
import { memoryStore } from "agentauth/store";

// 1. A test: every device arrives, although the service fails once.
const faults: Fault[] = [{ kind: "status", status: 503, path: "device" }];
await using sandbox = await startSandbox({ autoApprove: true, devices: 120, faults });
const { mcpUrl, baseUrl } = sandbox;
const url = new URL(mcpUrl);
const service = new ManagementClient({ baseUrl, token: sandbox.apiToken });
const devices: Device[] = await service.devices.list({ pool_id: sandbox.ids.pool }).toArray();
assert.equal(new Set(devices.map(({ id }) => id)).size, 120);
assert.equal(sandbox.faults.list()[0]?.fired, 1);

// 2. Without a login the error says what to do; it never prompts.
const agent = createAgentClient();
const loginRequired = (error: unknown) => isAgentAuthError(error, "login_required") && error.remedy?.action === "login";
await assert.rejects(agent.token(mcpUrl), loginRequired);

// 3. The user logs in once; every client of the user then has the token.
const openBrowser = async (url: string) => {
  await (await fetch(url)).text();
  return "opened" as const;
};
// An explicit browser starts even without a display.
const login = terminalLogin({ say: () => {}, env: process.env, browser: "of this app", openBrowser });
const token: AccessToken = await createAgentClient({ login }).login(url);
assert.equal(token.issuer, sandbox.authUrl(sandbox.ids.pool));
assert.equal((await agent.token(mcpUrl, { scope: "mcp", minTtl: 30 })).value, token.value);

// 4. A request of its own, whose rejected token is replaced once.
const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
const request = { method: "POST", headers, body };
assert.equal((await fetch(mcpUrl, request)).status, 401);
sandbox.faults.add(parseFault("401:path=mcp"));
const fetchLike: typeof globalThis.fetch = agent.fetch;
assert.equal((await fetchLike(mcpUrl, request)).status, 200);
assert.notEqual((await agent.token(mcpUrl)).value, token.value);

// 5. The official MCP SDK.
const client = new Client({ name: "my-agent", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(url, { authProvider: agent.authProvider(url) }));
const { structuredContent } = await client.callTool({ name: "whoami", arguments: {} });
assert.equal(Object(structuredContent).subject, "alice");
await client.close();

// 6. What a beginner writes: the error names the argument, and the next best.
const wrong = (message: RegExp) => ({ name: "TypeError", message });
const store = memoryStore();
// @ts-expect-error an agent needs its options
assert.throws(() => new AgentClient(), wrong(/AgentClient requires an object of options/));
// @ts-expect-error an agent needs a store
assert.throws(() => new AgentClient({}), wrong(/store is required/));
// @ts-expect-error there is no such option
assert.throws(() => new AgentClient({ store, loginn: login }), wrong(/"loginn"; did you mean login\?/));
// @ts-expect-error there is no such option
assert.throws(() => new ManagementClient({ baseURL: baseUrl, token: "" }), wrong(/"baseURL"; did you mean baseUrl\?/));
// @ts-expect-error there is no such option
await assert.rejects(startSandbox({ device: 1 }), wrong(/"device"; did you mean devices\?/));
await assert.rejects(startSandbox({ port: -1 }), (error) => isAgentAuthError(error, "usage"));
// @ts-expect-error a list needs what it belongs to
assert.throws(() => service.devices.list(), { code: "usage", message: /^pool_id must be a non-empty string/ });
await assert.rejects(agent.fetch("/mcp", request), wrong(/"\/mcp" is not an absolute URL/));
const stranger = new ManagementClient({ baseUrl, token: "another" });
await assert.rejects(stranger.domains.list({ account_id: sandbox.ids.account }).toArray(), (error) =>
  isAgentAuthError(error, "bad_authtoken"),
);

// 7. After the logout it is as it was.
assert.equal((await agent.disconnect(url)).removed, true);
await assert.rejects(agent.token(url), loginRequired);
