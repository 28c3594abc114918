import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  CreateMessageResultSchema,
  ElicitResultSchema,
  GetPromptRequestSchema,
  isInitializeRequest,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListRootsResultSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  SetLevelRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { NodeMiddleware } from "../../src/resource-server/index.js";
import { memoryEvents } from "./session-server.js";

type Guard = NodeMiddleware<IncomingMessage & { auth?: unknown }>;

/** What the server says to a session that it does not know: `404` of the specification, `400` of the reference server. */
export type LostSession = "404" | "400";

/** The resource that the server has. */
export const RESOURCE = "notes://1";

/** An MCP server with every feature, on the official SDK of the generation before, behind a guard. */
export async function startOfficialServer(guardOf: (url: string) => Guard) {
  const sessions = new Map<string, { transport: StreamableHTTPServerTransport; server: Server }>();
  const state = {
    cancelled: [] as string[],
    held: [] as (() => void)[],
    subscribed: new Set<string>(),
    calls: 0,
    initialized: 0,
  };
  const sockets = new Set<Socket>();
  let lost: LostSession = "404";
  let isResumable = true;
  let http = createServer();

  const open = async () => {
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      ...(isResumable && { eventStore: memoryEvents(), retryInterval: 20 }),
      onsessioninitialized: (id) => void sessions.set(id, { transport, server }),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    const server = createMcpServer(state);
    state.initialized += 1;
    await server.connect(transport as unknown as Parameters<Server["connect"]>[0]);
    return transport;
  };
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const body = request.method === "POST" ? await readJson(request) : undefined;
    const id = request.headers["mcp-session-id"];
    const known = typeof id === "string" ? sessions.get(id)?.transport : undefined;
    if (known || isInitializeRequest(body)) return (known ?? (await open())).handleRequest(request, response, body);
    const error =
      lost === "404"
        ? { code: -32_001, message: "Session not found" }
        : { code: -32_000, message: "Bad Request: No valid session ID provided" };
    response.writeHead(Number(lost), { "content-type": "application/json" });
    return response.end(JSON.stringify({ jsonrpc: "2.0", error, id: null }));
  };
  let guard: Guard;
  const listen = async (port: number): Promise<HttpServer> => {
    const created = createServer((request, response) => {
      const next = (error?: unknown) =>
        error ? response.writeHead(500).end() : answer(request, response).catch(() => response.destroy());
      guard(request, response, next).catch(() => response.destroy());
    });
    created.on("connection", (socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    });
    created.listen(port, "127.0.0.1");
    await once(created, "listening");
    return created;
  };
  const stop = async () => {
    const closed = once(http, "close");
    http.close();
    breakOff();
    await closed;
    sessions.clear();
    state.subscribed.clear();
  };
  const breakOff = () => sockets.forEach((socket) => void socket.resetAndDestroy());
  guard = () => Promise.reject(new Error("not started"));
  http = await listen(0);
  const { port } = http.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/mcp`;
  guard = guardOf(url);
  return {
    url,
    state,
    sessions,
    release: () => state.held.splice(0).forEach((go) => void go()),
    /** The server of the only session. */
    server(): Server {
      const [only, ...more] = sessions.values();
      if (!only || more.length > 0) throw new Error("one session was expected");
      return only.server;
    },
    /** Resets every connection; the server keeps running. */
    breakOff,
    /** Ends the server, and starts it again on the same port without its sessions. */
    async restart(answerToLost: LostSession, { resumable = true } = {}) {
      await stop();
      lost = answerToLost;
      isResumable = resumable;
      http = await listen(port);
    },
    stop,
  };
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString());
}

interface State {
  /** Tools whose calls were cancelled. */
  cancelled: string[];
  /** Resolvers of the calls that wait. */
  held: (() => void)[];
  /** Resources with a subscription. */
  subscribed: Set<string>;
  /** Number of tool calls. */
  calls: number;
  /** Number of sessions. */
  initialized: number;
}

const text = (said: string) => ({ content: [{ type: "text" as const, text: said }] });

function createMcpServer(state: State): Server {
  const server = new Server(
    { name: "official", version: "1" },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        completions: {},
        logging: {},
      },
    },
  );
  addTools(server, state);
  const { subscribed } = state;
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: [{ uri: RESOURCE, name: "note" }] }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [{ uriTemplate: "notes://{id}", name: "notes" }],
  }));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => ({
    contents: [{ uri, text: "a note" }],
  }));
  server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    subscribed.add(params.uri);
    return {};
  });
  server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    subscribed.delete(params.uri);
    return {};
  });
  server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts: [{ name: "greet" }] }));
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) => ({
    messages: [
      { role: "user" as const, content: { type: "text" as const, text: `greet ${params.arguments?.["who"]}` } },
    ],
  }));
  server.setRequestHandler(CompleteRequestSchema, ({ params }) => ({
    completion: { values: [`${params.argument.value}!`] },
  }));
  server.setRequestHandler(SetLevelRequestSchema, () => ({}));
  return server;
}

function addTools(server: Server, state: State): void {
  const names = ["echo", "big", "hold", "count", "sample", "elicit", "roots", "log"];
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: names.map((name) => ({ name, inputSchema: { type: "object" as const } })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    state.calls += 1;
    const args = params.arguments ?? {};
    const progressToken = params._meta?.progressToken ?? "none";
    const report = (progress: number) =>
      extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: 3 } });
    switch (params.name) {
      case "echo":
        return text(String(args["text"]));
      case "big":
        return text("x".repeat(Number(args["size"])));
      case "hold":
        await report(0);
        extra.signal.addEventListener("abort", () => void state.cancelled.push(params.name));
        await new Promise<void>((resolve) => state.held.push(resolve));
        return text("released");
      case "count":
        for (const progress of [1, 2, 3]) await report(progress);
        await new Promise<void>((resolve) => state.held.push(resolve));
        return text("counted");
      case "sample": {
        const message = { role: "user" as const, content: { type: "text" as const, text: "who?" } };
        const ask = { method: "sampling/createMessage" as const, params: { messages: [message], maxTokens: 9 } };
        return text(JSON.stringify((await extra.sendRequest(ask, CreateMessageResultSchema)).content));
      }
      case "elicit": {
        const requestedSchema = { type: "object" as const, properties: { name: { type: "string" as const } } };
        const ask = { method: "elicitation/create" as const, params: { message: "who?", requestedSchema } };
        return text(JSON.stringify((await extra.sendRequest(ask, ElicitResultSchema)).content));
      }
      case "roots":
        return text(JSON.stringify((await extra.sendRequest({ method: "roots/list" }, ListRootsResultSchema)).roots));
      default:
        await extra.sendNotification({ method: "notifications/message", params: { level: "error", data: "logged" } });
        return text("logged");
    }
  });
}
