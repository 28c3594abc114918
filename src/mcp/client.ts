import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

/** A tool as its server describes it. */
export interface McpTool {
  name: string;
  description?: string | undefined;
  inputSchema: unknown;
}

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

/**
 * Opens a session over streamable HTTP with the newest revision that both sides speak.
 *
 * @param fetch sends each request; it brings the token
 */
export async function openMcp(
  mcpUrl: string,
  options: { fetch: typeof globalThis.fetch; name: string; version: string; signal: AbortSignal },
): Promise<McpSession> {
  const { name, version, signal } = options;
  const client = new Client({ name, version }, { versionNegotiation: { mode: "auto" } });
  const transport = new StreamableHTTPClientTransport(new URL(mcpUrl), {
    fetch: options.fetch as never,
    redirectPolicy: "same-origin",
  });
  await client.connect(transport as Parameters<Client["connect"]>[0], { signal });
  return {
    async tools(within) {
      const { tools } = await client.listTools(undefined, { signal: within });
      return tools.map(({ name: tool, description, inputSchema }) => ({ name: tool, description, inputSchema }));
    },
    async call(tool, args, within) {
      return (await client.callTool({ name: tool, arguments: args }, { signal: within })) as Record<string, unknown>;
    },
    close: () => client.close(),
  };
}
