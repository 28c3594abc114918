import { Client, StreamableHTTPClientTransport, type Tool } from "@modelcontextprotocol/client";
import { untilAborted } from "../http/deadline.js";
import { isSessionLost } from "./errors.js";
import { backpressureFetch } from "./http-transport.js";
import { mayRefuseRevision, olderRevisions, REVISIONS, refusesRevision } from "./revisions.js";

/** A tool as its server describes it, with every field that the protocol has for it. */
export type McpTool = Tool;

/** A session with an MCP server. */
export interface McpSession {
  /** All tools, from every page. */
  tools(signal: AbortSignal): Promise<McpTool[]>;
  /** Calls a tool; `isError` in the result means that the tool failed. */
  call(
    name: string,
    args: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<{ isError?: boolean | undefined } & Record<string, unknown>>;
  close(): Promise<void>;
}

/** Options of {@link openMcp}. */
export interface McpOptions {
  /** Sends each request with the token. */
  fetch: typeof globalThis.fetch;
  /** The name of the client, sent to the server. */
  name: string;
  /** The version of the client, sent to the server. */
  version: string;
  /**
   * Milliseconds until each request must have its response; a progress notification restarts them. Default:
   * 60,000.
   */
  timeoutMs?: number;
  /** Cancels opening the session. */
  signal: AbortSignal;
}

const DEFAULT_TIMEOUT_MS = 60_000;
/** Limit of a response or an event, which is held in memory as a whole. */
const MAX_RESPONSE_BYTES = 16 * 1024 * 1024;

/** A client with its transport. */
interface Connection {
  readonly client: Client;
  readonly transport: StreamableHTTPClientTransport;
  /** The newest revision that was offered; undefined for the newest of all. */
  readonly offered: string | undefined;
}

/**
 * Opens a session over streamable HTTP with the newest revision that both sides support. A session that the server loses,
 * and a revision that it refuses later, are replaced once for each request.
 *
 * It throws the errors of the SDK, and so do the methods of the session; `errors.ts` translates them.
 */
export async function openMcp(mcpUrl: string, options: McpOptions): Promise<McpSession> {
  const { timeoutMs: timeout = DEFAULT_TIMEOUT_MS } = options;
  let connection = await connectNewest(mcpUrl, options);
  const run = async <T>(work: (client: Client) => Promise<T>): Promise<T> => {
    try {
      return await work(connection.client);
    } catch (error) {
      const next = replacement(mcpUrl, options, connection, error);
      if (next === undefined) throw error;
      await connection.client.close().catch(() => undefined);
      connection = await next;
      return work(connection.client);
    }
  };
  return {
    tools: (signal) =>
      run(async (client) => {
        // Without the capability the SDK prints a warning to standard output.
        if (client.getServerCapabilities()?.tools === undefined) return [];
        const { tools } = await client.listTools(undefined, { signal, timeout });
        return tools;
      }),
    call: (tool, args, signal) =>
      run(async (client) => {
        // A server sends progress only if the client asks for it.
        const limits = { timeout, onprogress: () => {}, resetTimeoutOnProgress: true };
        const result = await client.callTool({ name: tool, arguments: args }, { signal, ...limits });
        return result as Record<string, unknown>;
      }),
    close: () => connection.client.close(),
  };
}

/** The connection in place of one whose session is lost or whose revision is refused; undefined for other errors. */
function replacement(
  mcpUrl: string,
  options: McpOptions,
  { client, transport, offered }: Connection,
  error: unknown,
): Promise<Connection> | undefined {
  if (transport.sessionId !== undefined && isSessionLost(error)) return connect(mcpUrl, options, offered);
  const revision = client.getNegotiatedProtocolVersion();
  if (revision === undefined || !refusesRevision(error)) return undefined;
  return stepDown(mcpUrl, options, { error, refused: revision });
}

/** Connects with the newest revision that the server accepts. */
async function connectNewest(mcpUrl: string, options: McpOptions): Promise<Connection> {
  try {
    return await connect(mcpUrl, options);
  } catch (error) {
    if (!mayRefuseRevision(error)) throw error;
    return stepDown(mcpUrl, options, { error, refused: REVISIONS[0] ?? "" });
  }
}

/** Offers older revisions, each once. @throws the first error if the server refuses them all */
async function stepDown(
  mcpUrl: string,
  options: McpOptions,
  { error, refused }: { error: unknown; refused: string },
): Promise<Connection> {
  for (const revision of olderRevisions(error, refused)) {
    try {
      return await connect(mcpUrl, options, revision);
    } catch (next) {
      if (!mayRefuseRevision(next)) throw next;
    }
  }
  throw error;
}

async function connect(mcpUrl: string, options: McpOptions, offered?: string): Promise<Connection> {
  const { name, version, timeoutMs: timeout = DEFAULT_TIMEOUT_MS, signal } = options;
  const negotiation =
    offered === undefined
      ? { versionNegotiation: { mode: "auto" as const } }
      : { supportedProtocolVersions: REVISIONS.slice(REVISIONS.indexOf(offered)) };
  const client = new Client({ name, version }, negotiation);
  const transport = new StreamableHTTPClientTransport(new URL(mcpUrl), {
    fetch: backpressureFetch(options.fetch, async () => {}, MAX_RESPONSE_BYTES) as never,
    redirectPolicy: "same-origin",
  });
  const connecting = client.connect(transport as Parameters<Client["connect"]>[0], { signal, timeout });
  try {
    // The SDK ignores the signal while it negotiates the revision.
    await untilAborted(connecting, signal);
  } catch (error) {
    await transport.close().catch(() => undefined);
    throw error;
  }
  return { client, transport, offered };
}
