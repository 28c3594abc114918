import * as v2 from "@modelcontextprotocol/client";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as Transport1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { AgentClient } from "../../../src/oauth/agent.js";

/** The client of an SDK, connected to an MCP server. */
export interface Connected {
  tools(): Promise<string[]>;
  /** The text that a tool returns. */
  call(name: string): Promise<unknown>;
  close(): Promise<void>;
}

/** Connects a client to an MCP server with the tokens of an agent. */
export type Connect = (url: string, agent: AgentClient) => Promise<Connected>;

function connect2(options: (url: URL, agent: AgentClient) => v2.StreamableHTTPClientTransportOptions): Connect {
  return async (url, agent) => {
    const address = new URL(url);
    const client = new v2.Client({ name: "test", version: "1" });
    await client.connect(new v2.StreamableHTTPClientTransport(address, options(address, agent)));
    return {
      tools: async () => (await client.listTools()).tools.map(({ name }) => name),
      call: async (name) => (await client.callTool({ name, arguments: {} })).content,
      close: () => client.close(),
    };
  };
}

/** A client of SDK 1.x over a transport. */
export async function connected1(transport: Transport): Promise<Connected> {
  const client = new Client1({ name: "test", version: "1" });
  await client.connect(transport);
  return {
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name) => (await client.callTool({ name, arguments: {} })).content,
    close: () => client.close(),
  };
}

/** The ways in which a transport of either SDK gets the tokens of an agent. */
export const LOGIN_FLOWS: readonly [string, Connect][] = [
  ["authProvider, SDK 2.x", connect2((url, agent) => ({ authProvider: agent.authProvider(url) }))],
  ["oauthClientProvider, SDK 2.x", connect2((url, agent) => ({ authProvider: agent.oauthClientProvider(url) }))],
  ["fetch, SDK 2.x", connect2((_url, { fetch }) => ({ fetch }))],
  [
    "oauthClientProvider, SDK 1.x",
    (url, agent) =>
      connected1(
        // SDK 1.x is compiled without exactOptionalPropertyTypes.
        new Transport1(new URL(url), { authProvider: agent.oauthClientProvider(url) }) as Transport,
      ),
  ],
  ["fetch, SDK 1.x", (url, { fetch }) => connected1(new Transport1(new URL(url), { fetch }) as Transport)],
];
