import { Client, StreamableHTTPClientTransport, type Tool } from "@modelcontextprotocol/client";
import { untilAborted } from "../http/deadline.js";
import { backpressureFetch } from "./http-transport.js";

/** A tool as its server describes it, with every field that the protocol has for it. */
export type McpTool = Tool;

/** A session with an MCP server. */
export interface McpSession {
  /** Every tool, all pages. */
  tools(signal: AbortSignal): Promise<McpTool[]>;
  /** Calls a tool; `isError` in the result is the tool's own failure. */
  call(
    name: string,
    args: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<{ isError?: boolean | undefined } & Record<string, unknown>>;
  close(): Promise<void>;
}

/** How {@link openMcp} speaks to a server. */
export interface McpOptions {
  /** Sends each request; it brings the token. */
  fetch: typeof globalThis.fetch;
  /** The name of the client, sent to the server. */
  name: string;
  /** The version of the client, sent to the server. */
  version: string;
  /**
   * Milliseconds until each request must have its answer; a progress notification restarts them. Default:
   * 60,000.
   */
  timeoutMs?: number;
  /** Ends the attempt to open the session. */
  signal: AbortSignal;
}

const DEFAULT_TIMEOUT_MS = 60_000;
/** Of an answer, or of an event of a stream: it is held in memory as a whole. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/**
 * Opens a session over streamable HTTP with the newest revision that both sides speak.
 *
 * It throws what the SDK throws, and so do the calls of the session: see `errors.ts`.
 */
export async function openMcp(mcpUrl: string, options: McpOptions): Promise<McpSession> {
  const { name, version, timeoutMs: timeout = DEFAULT_TIMEOUT_MS, signal } = options;
  const client = new Client({ name, version }, { versionNegotiation: { mode: "auto" } });
  const transport = new StreamableHTTPClientTransport(new URL(mcpUrl), {
    fetch: backpressureFetch(options.fetch, async () => {}, MAX_ANSWER_BYTES) as never,
    redirectPolicy: "same-origin",
  });
  const connecting = client.connect(transport as Parameters<Client["connect"]>[0], { signal, timeout });
  try {
    // The SDK ignores the signal while it finds out which revision the server speaks.
    await untilAborted(connecting, signal);
  } catch (error) {
    await transport.close().catch(() => undefined);
    throw error;
  }
  return {
    async tools(within) {
      // Asked in vain the SDK would say so on standard output.
      if (client.getServerCapabilities()?.tools === undefined) return [];
      const { tools } = await client.listTools(undefined, { signal: within, timeout });
      return tools;
    },
    async call(tool, args, within) {
      // News of progress come only to those who listen.
      const patience = { timeout, onprogress: () => {}, resetTimeoutOnProgress: true };
      const result = await client.callTool({ name: tool, arguments: args }, { signal: within, ...patience });
      return result as Record<string, unknown>;
    },
    close: () => client.close(),
  };
}
