// An agent: logs in at an MCP server once, stores the login in files, and sends requests with its token.
import { strict as assert } from "node:assert";
import { AgentClient, isAgentAuthError } from "agentauth";
import { fileStore, terminalLogin } from "agentauth/node";
import { startSandbox } from "agentauth/sandbox";

const sandbox = await startSandbox({ autoApprove: true });
const login = terminalLogin({
  say() {},
  env: {},
  // An explicit browser starts even without a display.
  browser: "fetch",
  openBrowser: async (url) => {
    await (await fetch(url)).text();
    return "opened";
  },
});
const store = fileStore(`${import.meta.dirname}/logins`);

const token = await new AgentClient({ store, login }).token(sandbox.mcpUrl);
assert.equal(token.issuer, sandbox.authUrl(sandbox.ids.pool));
assert.equal((await new AgentClient({ store }).token(sandbox.mcpUrl)).value, token.value);

const ask = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const request = { method: "POST", headers, body: JSON.stringify(ask) };
assert.equal((await fetch(sandbox.mcpUrl, request)).status, 401);
assert.equal((await new AgentClient({ store }).fetch(sandbox.mcpUrl, request)).status, 200);

assert.equal((await new AgentClient({ store }).disconnect(sandbox.mcpUrl)).removed, true);
const loggedOut = new AgentClient({ store }).token(sandbox.mcpUrl);
await assert.rejects(loggedOut, (error) => isAgentAuthError(error) && error.code === "login_required");
await sandbox.close();
