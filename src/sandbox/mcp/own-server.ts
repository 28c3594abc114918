import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import type {
  AuthInfo,
  CallToolResult,
  EventStore,
  JSONRPCMessage,
  McpHttpHandler,
  McpServer,
  Tool,
  WebStandardStreamableHTTPServerTransport as Transport,
} from "@modelcontextprotocol/server";
import type { RoundTrip } from "../faults/controller.js";
import type { SandboxResponse } from "../http/requests.js";

/** The tool that needs a scope. */
export const REPORTS_TOOL = "admin_report";

export const REPORTS_SCOPE = "reports:read";

const TOOLS: readonly Tool[] = [
  sampleTool("whoami", "Who am I", "Returns the subject, the client, the scopes and the expiry of the access token."),
  sampleTool("echo", "Echo", "Returns its input.", { properties: { text: { type: "string" } }, required: ["text"] }),
  sampleTool(REPORTS_TOOL, "Admin report", `Returns sample figures. Needs the scope ${REPORTS_SCOPE}.`),
];

function sampleTool(name: string, title: string, description: string, schema: object = {}): Tool {
  return { name, title, description, inputSchema: { type: "object", ...schema }, annotations: { readOnlyHint: true } };
}

let handler: Promise<McpHttpHandler> | undefined;

export type McpHandler = (request: Request, authInfo: AuthInfo) => Promise<Response>;

/** Handles it with the sample server, on the official SDK, which is loaded for the first request. */
export const sampleMcp: McpHandler = async (request, authInfo) => {
  handler ??= createSandboxHandler();
  const { fetch } = await handler;
  return fetch(request, { authInfo });
};

/** The handler is stateless, so that one serves every sandbox of the process. */
async function createSandboxHandler(): Promise<McpHttpHandler> {
  const { createMcpHandler, Server } = await import("#packages/mcp-server");
  return createMcpHandler(
    ({ authInfo }) => {
      const server = new Server({ name: "sandbox", version: "1.0.0" }, { capabilities: { tools: {} } });
      server.setRequestHandler("tools/list", () => ({ tools: [...TOOLS] }));
      server.setRequestHandler("tools/call", ({ params }) => callTool(params.name, params.arguments ?? {}, authInfo));
      return server;
    },
    // The sample server never changes.
    { maxSubscriptions: 0, onerror: () => {} },
  );
}

function callTool(name: string, args: Record<string, unknown>, auth: AuthInfo | undefined): CallToolResult {
  if (name === "whoami") {
    const who = {
      subject: auth?.extra?.["subject"],
      client_id: auth?.clientId,
      scopes: auth?.scopes,
      expires_at: auth?.expiresAt,
    };
    return { content: [textContent(JSON.stringify(who))], structuredContent: who };
  }
  if (name === "echo" && typeof args["text"] === "string") return { content: [textContent(args["text"])] };
  if (name === REPORTS_TOOL) return { content: [textContent("12 pools, 340 devices, 3 of them revoked")] };
  const problem = name === "echo" ? 'echo needs the argument "text", a string' : `there is no tool ${name}`;
  return { content: [textContent(problem)], isError: true };
}

function textContent(content: string) {
  return { type: "text" as const, text: content };
}

/** Headers of the connection, and those that the next sender sets itself. */
const DROPPED = new Set(["connection", "keep-alive", "transfer-encoding", "content-length", "host", "expect"]);

/** A web-standard `Request`; its URL has the sandbox's origin, whatever Host the client sent. */
export function webRequest(origin: string, { method, path, request, response, body }: RoundTrip): Request {
  const headers = new globalThis.Headers();
  for (const [name, values] of Object.entries(request.headersDistinct)) {
    if (!DROPPED.has(name)) for (const value of values ?? []) headers.append(name, value);
  }
  const hasBody = body !== undefined && body.length > 0 && method !== "GET" && method !== "HEAD";
  const leaving = new AbortController();
  response.once("close", () => leaving.abort());
  const { signal } = leaving;
  return new globalThis.Request(origin + path, {
    method,
    headers,
    signal,
    ...(hasBody && { body: new Uint8Array(body) }),
  });
}

export function sendStream(response: Response, to: ServerResponse): void {
  to.writeHead(response.status, copyHeaders(response));
  to.flushHeaders();
  // A client that disconnects in the middle is not an error of the sandbox.
  pipeline(Readable.fromWeb(response.body as ReadableStream), to).catch(() => {});
}

/** Buffers a web-standard `Response`. */
export async function bufferResponse(response: Response): Promise<SandboxResponse> {
  const body = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: copyHeaders(response), body };
}

function copyHeaders({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => !DROPPED.has(name)));
}

/** What an MCP server of your own is created with. */
export interface McpServerContext {
  /**
   * The module `@modelcontextprotocol/server` that the sandbox runs on: create the server with its classes. Its own types
   * are those of that package; here is what most servers need.
   */
  readonly sdk: {
    readonly McpServer: new (
      info: { name: string; version: string },
      options?: object,
    ) => { registerTool(name: string, config: object, run: (...parameters: never[]) => unknown): unknown };
  };
  /** `modern`: the server of one request (revision 2026-07-28). `legacy`: the server of a session (earlier ones). */
  readonly era: "modern" | "legacy";
  /** Announces changes to the subscriptions of revision 2026-07-28. */
  readonly notify: McpNotifier;
}

/** Announces changes of an MCP server to its subscribers. */
export interface McpNotifier {
  /** The list of tools has changed. */
  toolsChanged(): void;
  /** The list of prompts has changed. */
  promptsChanged(): void;
  /** The list of resources has changed. */
  resourcesChanged(): void;
  /** The content of a resource has changed. */
  resourceUpdated(uri: string): void;
}

/** Creates an MCP server: an `McpServer` or a `Server` of {@link McpServerContext.sdk}. */
export type CreateMcpServer = (context: McpServerContext) => object;

interface Session {
  server: McpServer;
  transport: Transport;
  /** The user and the client that opened it. */
  owner: string;
}

const MAX_SESSIONS = 1000;
const MAX_EVENTS = 1000;
/** After which a client resumes a stream that the server has closed. */
const RETRY_MS = 500;

/** Handles authorized requests with servers of the user: one for each request of revision 2026-07-28, or session. */
export function ownMcp(create: CreateMcpServer, closed: Promise<void>): McpHandler {
  let loaded: Promise<McpHandler> | undefined;
  return async (request, authInfo) => {
    loaded ??= createHandler(create, closed);
    return (await loaded)(request, authInfo);
  };
}

async function createHandler(create: CreateMcpServer, closed: Promise<void>): Promise<McpHandler> {
  const sdk = await import("#packages/mcp-server");
  const createServer = (era: "modern" | "legacy") => create({ sdk, era, notify: modern.notify }) as McpServer;
  const quiet = { onerror: () => {}, keepAliveMs: 0 };
  const modern = sdk.createMcpHandler(() => createServer("modern"), { ...quiet, legacy: "reject" });
  const sessions = new McpSessions(sdk.WebStandardStreamableHTTPServerTransport, () => createServer("legacy"));
  void closed.then(() => Promise.allSettled([modern.close(), sessions.close()]));
  return async (request: Request, authInfo: AuthInfo) =>
    (await sdk.isLegacyRequest(request)) ? sessions.fetch(request, authInfo) : modern.fetch(request, { authInfo });
}

/** The sessions of clients up to revision 2025-11-25: each has a server, and streams that can be resumed. */
class McpSessions {
  readonly #sessions = new Map<string, Session>();
  readonly #Transport: typeof Transport;
  readonly #create: () => McpServer;

  constructor(transport: typeof Transport, create: () => McpServer) {
    this.#Transport = transport;
    this.#create = create;
  }

  /** Answers a request of a session, or one that opens a session. */
  async fetch(request: Request, authInfo: AuthInfo): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    if (id === null) return this.#open(request, authInfo);
    const session = this.#sessions.get(id);
    // A session ID is no credential: with another user's token there is no such session.
    if (session?.owner !== sessionOwner(authInfo)) return sessionNotFound();
    return session.transport.handleRequest(request, { authInfo });
  }

  /** Closes every session. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#sessions.values()].map(({ server }) => server.close()));
    this.#sessions.clear();
  }

  async #open(request: Request, authInfo: AuthInfo): Promise<Response> {
    const server = this.#create();
    const transport: Transport = new this.#Transport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => this.#add(id, { server, transport, owner: sessionOwner(authInfo) }),
      onsessionclosed: (id) => void this.#sessions.delete(id),
      eventStore: createEventStore(),
      retryInterval: RETRY_MS,
      keepAliveMs: 0,
    });
    await server.connect(transport);
    const response = await transport.handleRequest(request, { authInfo });
    if (transport.sessionId === undefined) await server.close();
    return response;
  }

  #add(id: string, session: Session): void {
    this.#sessions.set(id, session);
    const [oldest] = this.#sessions;
    if (this.#sessions.size <= MAX_SESSIONS || oldest === undefined) return;
    this.#sessions.delete(oldest[0]);
    void oldest[1].server.close();
  }
}

function sessionOwner({ clientId, extra }: AuthInfo): string {
  return JSON.stringify([clientId, extra?.["subject"]]);
}

function sessionNotFound(): Response {
  const error = { code: -32001, message: "Session not found" };
  return globalThis.Response.json({ jsonrpc: "2.0", id: null, error }, { status: 404 });
}

/** The last events of a session, for clients that resume a stream. */
function createEventStore(): EventStore {
  const events: { id: string; stream: string; message: JSONRPCMessage }[] = [];
  let last = 0;
  const findStream = (id: string) => events.find((event) => event.id === id)?.stream;
  return {
    async storeEvent(stream, message) {
      last += 1;
      const id = `event_${last}`;
      events.push({ id, stream, message });
      if (events.length > MAX_EVENTS) events.shift();
      return id;
    },
    getStreamIdForEventId: async (id) => findStream(id),
    async replayEventsAfter(id, { send }) {
      const stream = findStream(id);
      if (stream === undefined) throw new Error("the event is unknown");
      const after = events.slice(events.findIndex((event) => event.id === id) + 1);
      for (const event of after)
        if (event.stream === stream && "jsonrpc" in event.message) await send(event.id, event.message);
      return stream;
    },
  };
}
