import { Client, StreamableHTTPClientTransport, type Tool } from "@modelcontextprotocol/client";
import { untilAborted } from "../http/deadline.js";
import { backpressureFetch } from "./http-transport.js";

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

/**
 * Opens a session over streamable HTTP with the newest revision that both sides support.
 *
 * It throws the errors of the SDK, and so do the methods of the session; `errors.ts` translates them.
 */
export async function openMcp(mcpUrl: string, options: McpOptions): Promise<McpSession> {
  const { name, version, timeoutMs: timeout = DEFAULT_TIMEOUT_MS, signal } = options;
  const client = new Client({ name, version }, { versionNegotiation: { mode: "auto" } });
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
  return {
    async tools(callSignal) {
      // Without the capability the SDK prints a warning to standard output.
      if (client.getServerCapabilities()?.tools === undefined) return [];
      const { tools } = await client.listTools(undefined, { signal: callSignal, timeout });
      return tools;
    },
    async call(tool, args, callSignal) {
      // A server sends progress only if the client asks for it.
      const limits = { timeout, onprogress: () => {}, resetTimeoutOnProgress: true };
      const result = await client.callTool({ name: tool, arguments: args }, { signal: callSignal, ...limits });
      return result as Record<string, unknown>;
    },
    close: () => client.close(),
  };
}
