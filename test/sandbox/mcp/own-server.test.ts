import { setTimeout as sleep } from "node:timers/promises";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import type * as Sdk from "@modelcontextprotocol/server";
import { describe, expect } from "vitest";
import type { McpServerContext, Sandbox } from "../../../src/sandbox/index.js";
import { logIn } from "../oauth/support.js";
import { it as base } from "../support.js";

/** A server that asks the client, announces a change, and closes a stream before it answers. */
function mcpServer({ sdk, era, notify }: McpServerContext): object {
  const { inputRequired, McpServer } = sdk as typeof Sdk;
  const server = new McpServer({ name: "mine", version: "1.0.0" }, { capabilities: { tools: { listChanged: true } } });
  const text = (content: string) => ({ content: [{ type: "text" as const, text: content }] });
  server.registerTool("era", {}, () => text(era));
  server.registerTool("ask", {}, ({ mcpReq }) => {
    const answer = mcpReq.inputResponses?.["name"];
    if (answer !== undefined) return text(JSON.stringify(answer));
    const requestedSchema = { type: "object" as const, properties: { name: { type: "string" as const } } };
    return inputRequired({ inputRequests: { name: inputRequired.elicit({ message: "Who?", requestedSchema }) } });
  });
  server.registerTool("announce", {}, () => {
    notify.toolsChanged();
    return text("announced");
  });
  server.registerTool("cut", {}, async (context) => {
    context.http?.closeSSE?.();
    await sleep(20);
    return text("on the next stream");
  });
  return server;
}

const it = base.extend({ options: { devices: 1, autoApprove: true, mcpServer } });

async function connect(sandbox: Sandbox, mode: "legacy" | "auto", token: string) {
  const client = new Client(
    { name: "test", version: "1.0.0" },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode } },
  );
  client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { name: "Ann" } }));
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  const transport = new StreamableHTTPClientTransport(new URL(sandbox.mcpUrl), { requestInit });
  await client.connect(transport);
  const call = async (name: string) => (await client.callTool({ name, arguments: {} })).content;
  return { client, transport, call };
}

async function tokenOf(sandbox: Sandbox): Promise<string> {
  return (await logIn(sandbox)).tokens.access_token;
}

function post(sandbox: Sandbox, token: string, session?: string): Promise<Response> {
  return fetch(sandbox.mcpUrl, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(session !== undefined && { "mcp-session-id": session }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} }),
  });
}

describe("an MCP server of the user", () => {
  it.for([
    ["legacy", "legacy", "2025-11-25"],
    ["auto", "modern", "2026-07-28"],
  ] as const)("is served, and asks the client: %s", async ([mode, era, revision], { sandbox }) => {
    const { client, call } = await connect(sandbox, mode, await tokenOf(sandbox));
    expect(client.getNegotiatedProtocolVersion()).toBe(revision);
    expect(await call("era")).toEqual([{ type: "text", text: era }]);
    expect(await call("ask")).toEqual([{ type: "text", text: expect.stringContaining('"Ann"') }]);
    await client.close();
  });

  it("is protected like the sample server", async ({ sandbox }) => {
    const response = await post(sandbox, "wrong");
    expect([response.status, response.headers.get("www-authenticate")]).toEqual([
      401,
      expect.stringContaining("invalid_token"),
    ]);
  });

  it("resumes a stream that the server has closed", async ({ sandbox }) => {
    const { client, call } = await connect(sandbox, "legacy", await tokenOf(sandbox));
    expect(await call("cut")).toEqual([{ type: "text", text: "on the next stream" }]);
    expect(sandbox.requests.filter(({ method }) => method === "GET").map(({ status }) => status)).toContain(200);
    await client.close();
  });

  it("announces a change to a subscription", async ({ sandbox }) => {
    const { client, call } = await connect(sandbox, "auto", await tokenOf(sandbox));
    const changed = new Promise<void>((resolve) =>
      client.setNotificationHandler("notifications/tools/list_changed", () => resolve()),
    );
    const subscription = await client.listen({ toolsListChanged: true });
    await call("announce");
    await changed;
    await subscription.close();
    await client.close();
  });

  it("has sessions that end, and that belong to the user and the client that opened them", async ({ sandbox }) => {
    const token = await tokenOf(sandbox);
    const { client, transport } = await connect(sandbox, "legacy", token);
    const { sessionId = "" } = transport;
    expect((await post(sandbox, token, sessionId)).status).toBe(200);
    const ofAnother = await post(sandbox, await tokenOf(sandbox), sessionId);
    expect([ofAnother.status, await ofAnother.json()]).toMatchObject([404, { error: { code: -32001 } }]);
    expect((await post(sandbox, token)).status).toBe(400);
    await transport.terminateSession();
    expect((await post(sandbox, token, sessionId)).status).toBe(404);
    await client.close();
  });

  it("has no stream left when the sandbox has closed", async ({ sandbox }) => {
    const { client } = await connect(sandbox, "legacy", await tokenOf(sandbox));
    await expect
      .poll(() => sandbox.requests.some(({ method, status }) => method === "GET" && status === 200))
      .toBe(true);
    await sandbox.close();
    await client.close();
  });

  it("suffers the faults that need a whole answer", async ({ sandbox }) => {
    const token = await tokenOf(sandbox);
    const { client, transport } = await connect(sandbox, "legacy", token);
    const answer = async () => (await post(sandbox, token, transport.sessionId)).text();
    const whole = await answer();
    sandbox.faults.add({ kind: "truncated-json", path: "mcp" });
    expect((await answer()).length).toBeLessThan(whole.length);
    expect((await answer()).length).toBeGreaterThanOrEqual(whole.length);
    expect(sandbox.faults.list().map(({ fired }) => fired)).toEqual([1]);
    await client.close();
  });
});
