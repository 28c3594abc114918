import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  CallToolRequestSchema,
  ElicitResultSchema,
  ListToolsRequestSchema,
  UrlElicitationRequiredError,
} from "@modelcontextprotocol/sdk/types.js";
import { createMcpHandler, inputRequired, McpServer } from "@modelcontextprotocol/server";
import { describe, expect, it, onTestFinished } from "vitest";
import type { PresentUser } from "../../src/mcp/elicitation.js";
import { openMcp } from "../../src/mcp/session.js";
import { sendJson, startServer, until } from "../helpers/server.js";
import { rejection } from "../helpers/service.js";
import { startPlainServer } from "./plain-server.js";

const LINK = "https://accounts.example/connect?state=s1&code=c1";
const WORDS = "Connect your account";
const { signal } = new AbortController();
const said = (text: string) => ({ content: [{ type: "text" as const, text }] });

/** A user who opens what is shown, and is done when the server says so, or else after the first look. */
function user(agrees = true) {
  const shown: string[] = [];
  const waited: boolean[] = [];
  const present: PresentUser = {
    async open({ url, message }) {
      shown.push(url, message);
      return agrees;
    },
    async wait(done) {
      waited.push(await done);
      return true;
    },
  };
  return { shown, waited, present };
}

async function call(url: string, present?: PresentUser, tool = "connect") {
  const session = await openMcp(url, { fetch, name: "test", version: "1", signal, timeoutMs: 5000, user: present });
  onTestFinished(() => session.close());
  return session.call(tool, {}, signal);
}

/** The official server of revision 2025-11-25. `connect` needs the user first; two others request it while they are called. */
async function startOfficial() {
  const state = { isConnected: false, calls: 0 };
  const servers = new Map<string, { server: Server; transport: StreamableHTTPServerTransport }>();
  const elicitation = { mode: "url" as const, elicitationId: "e1", url: LINK, message: WORDS };
  const open = async () => {
    const server = new Server({ name: "official", version: "1" }, { capabilities: { tools: {} } });
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void servers.set(id, { server, transport }),
    });
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [] }));
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
      state.calls += 1;
      if (params.name === "inline") {
        const request = { method: "elicitation/create" as const, params: elicitation };
        return said((await extra.sendRequest(request, ElicitResultSchema)).action);
      }
      if (params.name === "apart") return said((await server.elicitInput(elicitation)).action);
      if (!state.isConnected) throw new UrlElicitationRequiredError([elicitation]);
      return said("connected");
    });
    await server.connect(transport as never);
    return transport;
  };
  const http = createServer((request: IncomingMessage, response: ServerResponse) => {
    const known = servers.get(String(request.headers["mcp-session-id"]))?.transport;
    if (known === undefined && request.method !== "POST") return void response.writeHead(405).end();
    void Promise.resolve(known ?? open()).then((transport) => transport.handleRequest(request, response));
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  onTestFinished(() => void http.close().closeAllConnections());
  const complete = async () => {
    state.isConnected = true;
    for (const { server } of servers.values()) await server.createElicitationCompletionNotifier("e1")();
  };
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`, state, complete };
}

/** The official server of revision 2026-07-28, whose tool needs its user `times` times. */
async function startNewest(times = 1) {
  const states: unknown[] = [];
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: "newest", version: "1" });
      server.registerTool("connect", {}, (context) => {
        states.push(context.mcpReq.requestState());
        if (states.length > times) return said(JSON.stringify(context.mcpReq.inputResponses));
        const account = inputRequired.elicitUrl({ url: LINK, message: WORDS });
        return inputRequired({ inputRequests: { account }, requestState: "opaque" });
      });
      return server;
    },
    { legacy: "reject" },
  );
  onTestFinished(() => handler.close());
  const { origin } = await startServer(async (response, { url, method, headers, body }) => {
    const init = { method, headers: headers as Record<string, string>, ...(method === "POST" && { body }) };
    const answer = await handler.fetch(new Request(`http://127.0.0.1${url}`, init));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  return { url: `${origin}/mcp`, states };
}

const required = (server: string) => ({
  code: "user_action_required",
  class: "auth",
  message: expect.stringContaining(`at accounts.example: "${WORDS}"`),
  remedy: expect.objectContaining({ action: "open", url: LINK, server }),
});

describe("a call that needs the user to open an address", () => {
  it.each(["connect", "inline", "apart"])("fails with the address where no user is there: %s", async (tool) => {
    const { url, state } = await startOfficial();
    expect(await rejection(call(url, undefined, tool))).toMatchObject(required(url));
    expect(state.calls).toBe(1);
  });

  it("fails with it at the newest revision too", async () => {
    const { url, states } = await startNewest();
    expect(await rejection(call(url))).toMatchObject(required(url));
    expect(states).toEqual([undefined]);
  });

  it("is sent once more when the server says that the user is done", async () => {
    const { url, state, complete } = await startOfficial();
    const { present, shown, waited } = user();
    const result = call(url, {
      ...present,
      open: (address) => present.open(address).finally(() => setTimeout(complete, 50)),
    });
    expect((await result)["content"]).toEqual(said("connected").content);
    expect([shown, waited, state.calls]).toEqual([[LINK, WORDS], [true], 2]);
  });

  it.each(["inline", "apart"])("goes on with the user's answer while the server waits: %s", async (tool) => {
    for (const [agrees, action] of [
      [true, "accept"],
      [false, "decline"],
    ] as const) {
      const { url, state } = await startOfficial();
      const { present, shown } = user(agrees);
      expect((await call(url, present, tool))["content"]).toEqual(said(action).content);
      expect([shown, state.calls]).toEqual([[LINK, WORDS], 1]);
    }
  });

  it("is repeated with the consent and the state of the server at the newest revision", async () => {
    const { url, states } = await startNewest();
    const { present, waited } = user();
    expect((await call(url, present))["content"]).toEqual(said('{"account":{"action":"accept"}}').content);
    expect([states, waited]).toEqual([[undefined, "opaque"], [false]]);
  });

  it("is not sent again where the user declines, or is not done", async () => {
    const { url, state } = await startOfficial();
    expect(await rejection(call(url, user(false).present))).toMatchObject(required(url));
    expect(await rejection(call(url, { ...user().present, wait: async () => false }))).toMatchObject(required(url));
    expect(state.calls).toBe(2);
  });

  it("ends at a server that needs the user again and again", async () => {
    const { url, states } = await startNewest(9);
    const { present, shown } = user();
    expect(await rejection(call(url, present))).toMatchObject(required(url));
    expect([states.length, shown.length]).toEqual([2, 2]);
  });
});

describe("a hostile server", () => {
  type Elicitations = readonly unknown[];
  const link = (url: string, more: object = {}) => ({ mode: "url", elicitationId: "e", url, message: "x", ...more });
  /** A server whose calls fail with what it needs. */
  const startRequiring = (elicitations: Elicitations) =>
    startPlainServer(({ id }, response) => {
      const error = { code: -32_042, message: "m", data: { elicitations } };
      sendJson(response, { jsonrpc: "2.0", id, error });
    });

  it.each([
    "javascript:alert(1)",
    "file:///etc/passwd",
    "data:text/html,x",
    "http://accounts.example/",
    "https://user:pass@accounts.example/",
    "https://accounts.example/\u001b[31m",
    "https://accounts.example/\u202egnp",
    `https://accounts.example/${"x".repeat(9000)}`,
    "/relative",
    "",
  ])("shows no user the address %j", async (url) => {
    const { present, shown } = user();
    for (const one of [undefined, present]) {
      const server = await startRequiring([link(url)]);
      expect(await rejection(call(server.url, one))).toMatchObject({ code: "bad_address", class: "refused" });
    }
    expect(shown).toEqual([]);
  });

  it("shows the words of the server cut, and its message in one line", async () => {
    const { url } = await startRequiring([link(LINK, { message: `\u001b[31m\n${"y".repeat(1_000_000)}` })]);
    const { message } = (await rejection(call(url))) as Error;
    expect(message).toMatch(
      /^the MCP server "\S+" needs you to open an address at accounts\.example: "\\e\[31m\\ny{1,500}…?"$/,
    );
    expect(message.length).toBeLessThan(800);
  });

  it.each<[string, Elicitations]>([
    ["nothing", []],
    ["a form", [{ mode: "form", message: "x", requestedSchema: {} }]],
    ["a form beside an address", [link(LINK), { message: "x" }]],
    ["more than three addresses", Array.from({ length: 4 }, () => link(LINK))],
    ["no object", [null]],
  ])("that needs %s gets no user, and the call fails with its error", async (_what, elicitations) => {
    const { present, shown } = user();
    const { url } = await startRequiring(elicitations);
    expect(await rejection(call(url, present))).toMatchObject({ name: "RpcFailure", code: -32_042 });
    expect(shown).toEqual([]);
  });

  /** A server that sends requests of its own while a call waits, and what it gets for them. */
  async function startAsking(requests: (send: (message: object) => void, response: ServerResponse) => unknown) {
    const replies: { id: unknown; result?: unknown; error?: { code: number } }[] = [];
    const server = await startServer(async (response, { method, body }) => {
      if (method !== "POST") return void response.writeHead(405).end();
      const message = JSON.parse(body);
      if (message.method === undefined) replies.push(message);
      if (message.id === undefined || message.method === undefined) return void response.writeHead(202).end();
      if (message.method === "server/discover") return void response.writeHead(404).end();
      const answer = (result: object) => ({ jsonrpc: "2.0", id: message.id, result });
      const initialized = {
        protocolVersion: "2025-11-25",
        capabilities: { tools: {} },
        serverInfo: { name: "s", version: "1" },
      };
      if (message.method === "initialize") return sendJson(response, answer(initialized));
      response.writeHead(200, { "content-type": "text/event-stream" });
      const send = (one: object) => void response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", ...one })}\n\n`);
      await requests(send, response);
      return send(answer(said("done")));
    });
    return { url: `${server.origin}/mcp`, replies };
  }

  it("cannot show one address after the other while a call waits", async () => {
    const { present, shown } = user();
    const { url, replies } = await startAsking((send) => {
      for (let id = 0; id < 20; id++) send({ id: `r${id}`, method: "elicitation/create", params: link(LINK) });
      return new Promise(() => undefined);
    });
    expect(await rejection(call(url, { ...present, wait: async () => false }))).toMatchObject({
      code: "user_action_required",
    });
    expect(shown.length).toBeLessThanOrEqual(4);
    await until(() => replies.length > 1);
    expect(replies.map(({ result }) => result)).toContainEqual({ action: "cancel" });
  });

  it("that requests a form or a sample while a call waits is refused, and the call continues", async () => {
    const { url, replies } = await startAsking(async (send) => {
      send({ id: 0, method: "elicitation/create", params: { message: "who?", requestedSchema: {} } });
      send({ id: 1, method: "sampling/createMessage", params: {} });
      await until(() => replies.length === 2);
    });
    expect((await call(url, user().present))["content"]).toEqual(said("done").content);
    expect(replies.map(({ id, error }) => `${id} ${error?.code}`).sort()).toEqual(["0 -32602", "1 -32601"]);
  });
});
