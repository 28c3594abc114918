import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Client as Client2, SSEClientTransport as SseTransport2 } from "@modelcontextprotocol/client";
import { SSEClientTransport as SseTransport1 } from "@modelcontextprotocol/sdk/client/sse.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { describe, expect, onTestFinished } from "vitest";
import type { AgentClient } from "../../../src/oauth/agent.js";
import type { Scene } from "../../helpers/issuer.js";
import { type Connect, type Connected, connected1 } from "../mcp-sdk/login-flows.js";
import { sceneTest as it } from "../support.js";

const METADATA = "/.well-known/oauth-protected-resource/sse";
const MINUTE_MS = 60_000;

/** A server of SDK 1.x over SSE that requires a token of the scene's issuer. */
class SseServer {
  /** Which tokens it accepts. */
  accepts: (token: string) => boolean = (token) => token.startsWith("access-");
  /** The tokens of its requests, in order. */
  readonly tokens: (string | undefined)[] = [];
  readonly #sessions = new Map<string, SSEServerTransport>();
  readonly #server = createServer((request, response) => this.#answer(request, response));
  readonly #issuer: string;

  constructor(issuer: string) {
    this.#issuer = issuer;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return `${this.origin}/sse`;
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    onTestFinished(async () => {
      this.#server.closeAllConnections();
      await new Promise((resolve) => this.#server.close(resolve));
    });
    return this;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "/", this.origin);
    if (pathname === METADATA) {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ resource: this.url, authorization_servers: [this.#issuer] }));
      return;
    }
    const token = request.headers.authorization?.replace(/^Bearer /, "");
    const isLogin = request.method === "POST" && pathname === "/sse";
    if (!isLogin) this.tokens.push(token);
    if (token === undefined || !this.accepts(token)) {
      response.writeHead(401, { "www-authenticate": `Bearer resource_metadata="${this.origin}${METADATA}"` }).end();
    } else if (request.method === "GET") {
      const transport = new SSEServerTransport("/messages", response);
      this.#sessions.set(transport.sessionId, transport);
      const mcp = new McpServer({ name: "test", version: "1" });
      mcp.registerTool("hello", {}, () => ({ content: [{ type: "text", text: "hello" }] }));
      await mcp.connect(transport);
    } else {
      await this.#sessions.get(searchParams.get("sessionId") ?? "")?.handlePostMessage(request, response);
    }
  }
}

const LOGIN_FLOWS: readonly [string, Connect][] = [
  [
    "SDK 1.x",
    (url, agent) => connected1(new SseTransport1(new URL(url), { authProvider: agent.oauthClientProvider(url) })),
  ],
  ["SDK 2.x", connected2],
];

async function connected2(url: string, agent: AgentClient): Promise<Connected> {
  const client = new Client2({ name: "test", version: "1" });
  await client.connect(new SseTransport2(new URL(url), { authProvider: agent.authProvider(url) }) as Transport);
  return {
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name) => (await client.callTool({ name, arguments: {} })).content,
    close: () => client.close(),
  };
}

function startSse({ issuer }: Scene): Promise<SseServer> {
  return new SseServer(issuer.issuer).start();
}

function grants(scene: Scene): (string | null)[] {
  return scene.issuer.to("/pool/token").map((_, nth) => scene.issuer.form("/pool/token", nth).get("grant_type"));
}

describe.each(LOGIN_FLOWS)("a provider of %s, over SSE", (_name, connect) => {
  it("logs in, and refreshes a token that expires in mid-session", async ({ scene }) => {
    const server = await startSse(scene);
    const client = await connect(server.url, scene.agent());
    expect(await client.tools()).toEqual(["hello"]);
    await scene.clock.sleep(60 * MINUTE_MS, new AbortController().signal);
    expect(await client.call("hello")).toEqual([{ type: "text", text: "hello" }]);
    expect(grants(scene)).toEqual(["authorization_code", "refresh_token"]);
    expect([server.tokens[0], server.tokens.at(-1)]).toEqual(["access-as-1", "access-as-2"]);
    await client.close();
  });

  it("replaces a token that the server rejects, at the stream and at a message", async ({ scene }) => {
    const server = await startSse(scene);
    await scene.agent().login(server.url);
    server.accepts = (token) => token === "access-as-2";
    const client = await connect(server.url, scene.agent());
    expect(await client.tools()).toEqual(["hello"]);
    server.accepts = (token) => token === "access-as-3";
    await scene.clock.sleep(MINUTE_MS, new AbortController().signal);
    expect(await client.call("hello")).toEqual([{ type: "text", text: "hello" }]);
    expect(grants(scene)).toEqual(["authorization_code", "refresh_token", "refresh_token"]);
    await client.close();
  });

  it("ends where the server rejects every token", async ({ scene }) => {
    const server = await startSse(scene);
    server.accepts = () => false;
    await expect(connect(server.url, scene.agent())).rejects.toThrow(/rejected|401/);
    expect(scene.login.opened.length).toBeLessThanOrEqual(2);
    expect(server.tokens.length).toBeLessThan(8);
  });
});
