import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { type EventStore, StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  CallToolRequestSchema,
  CreateMessageResultSchema,
  ListToolsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

/** A request that the server received. */
export interface SeenCall {
  readonly method: string;
  readonly headers: IncomingMessage["headers"];
  /** The method of the message in it, if there is one. */
  readonly rpc: string | undefined;
}

export interface SessionServerOptions {
  /** Whether broken streams can be resumed. */
  resumable?: boolean;
  /** Answers with JSON instead of events. */
  json?: boolean;
  port?: number;
}

export type SessionServer = Awaited<ReturnType<typeof startSessionServer>>;

/** An MCP server with sessions, on the official SDK of the generation before: code that the proxy does not share. */
export async function startSessionServer(options: SessionServerOptions = {}) {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const servers: Server[] = [];
  const calls: SeenCall[] = [];
  const cancelled: string[] = [];
  const held: (() => void)[] = [];
  const sockets = new Set<Socket>();
  const responses = new Set<ServerResponse>();
  const tools = { cancelled, held };

  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const body: unknown = text === "" ? undefined : JSON.parse(text);
    calls.push({ method: request.method ?? "", headers: request.headers, rpc: (body as { method?: string })?.method });
    responses.add(response);
    response.once("close", () => responses.delete(response));
    const id = request.headers["mcp-session-id"];
    const known = typeof id === "string" ? sessions.get(id) : undefined;
    if (id !== undefined && !known) {
      const error = { code: -32_001, message: "Session not found" };
      response.writeHead(404, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", error, id: null }));
      return;
    }
    const transport = known ?? (await openSession(options, sessions, servers, tools));
    await transport.handleRequest(request, response, body);
  };
  const http = createServer((request, response) => {
    answer(request, response).catch(() => response.destroy());
  });
  http.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  http.listen(options.port ?? 0, "127.0.0.1");
  await once(http, "listening");
  const { port } = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    port,
    calls,
    /** The ids of requests that were cancelled. */
    cancelled,
    /** Resolvers of the `hold` calls that wait. */
    held,
    sessions,
    servers,
    release: () => held.splice(0).forEach((go) => void go()),
    /** Resets every connection; the server keeps running. */
    breakOff: () => sockets.forEach((socket) => void socket.resetAndDestroy()),
    /** Number of open responses. */
    openResponses: () => responses.size,
    async close() {
      http.close();
      for (const socket of sockets) socket.resetAndDestroy();
      await Promise.all(servers.map((server) => server.close().catch(() => undefined)));
    },
  };
}

async function openSession(
  { resumable, json }: SessionServerOptions,
  sessions: Map<string, StreamableHTTPServerTransport>,
  servers: Server[],
  tools: Tools,
) {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: json === true,
    ...(resumable && { eventStore: memoryEvents(), retryInterval: 20 }),
    onsessioninitialized: (id) => void sessions.set(id, transport),
    onsessionclosed: (id) => void sessions.delete(id),
  });
  const server = createMcpServer(tools);
  servers.push(server);
  await server.connect(transport as unknown as Parameters<Server["connect"]>[0]);
  return transport;
}

interface Tools {
  cancelled: string[];
  held: (() => void)[];
}

function createMcpServer({ cancelled, held }: Tools): Server {
  const server = new Server({ name: "sessions", version: "1" }, { capabilities: { tools: { listChanged: true } } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: ["hold", "count", "ask", "big"].map((name) => ({ name, inputSchema: { type: "object" as const } })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const text = (said: string) => ({ content: [{ type: "text" as const, text: said }] });
    const { size = 0 } = params.arguments ?? {};
    if (params.name === "big") return text("x".repeat(Number(size)));
    const progressToken = params._meta?.progressToken ?? "none";
    const tell = (progress: number) =>
      extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: 3 } });
    if (params.name === "hold") {
      await tell(0);
      extra.signal.addEventListener("abort", () => void cancelled.push(String(extra.requestId)));
      await new Promise<void>((resolve) => held.push(resolve));
      return text("released");
    }
    if (params.name === "ask") {
      const ask = { method: "sampling/createMessage" as const, params: { messages: [], maxTokens: 1 } };
      const reply = await extra.sendRequest(ask, CreateMessageResultSchema);
      return text(`the host said ${JSON.stringify(reply.content)}`);
    }
    for (const progress of [1, 2, 3]) await tell(progress);
    return text("counted");
  });
  return server;
}

/** Stores events, so that broken streams can be resumed. */
export function memoryEvents(): EventStore {
  const events: { stream: string; message: Parameters<EventStore["storeEvent"]>[1] }[] = [];
  return {
    async storeEvent(stream, message) {
      return String(events.push({ stream, message }));
    },
    async replayEventsAfter(lastEventId, { send }) {
      const last = events[Number(lastEventId) - 1];
      if (!last) throw new Error("no such event");
      for (const [at, { stream, message }] of events.entries()) {
        if (at >= Number(lastEventId) && stream === last.stream) await send(String(at + 1), message);
      }
      return last.stream;
    },
  };
}
