import { describe, expect } from "vitest";
import type { Sandbox } from "../../../src/sandbox/index.js";
import { startLike } from "../../vendors/shape-server.js";
import { logIn, register, rpc } from "../oauth/support.js";
import { ask, it as base, devicesUrl } from "../support.js";

const PAGE = "http://localhost:5173";
const it = base.extend({ options: { devices: 1, autoApprove: true, revocation: true, allowOrigins: [PAGE] } });

/** Every address that a page needs, with a method for it. */
function addressesOf({ origin, mcpUrl, ids }: Sandbox): [string, string][] {
  const issuer = `${origin}/${ids.pool}`;
  return [
    ["POST", mcpUrl],
    ["GET", mcpUrl],
    ["DELETE", `${mcpUrl}/${ids.pool}`],
    ["GET", `${origin}/.well-known/oauth-protected-resource/mcp`],
    ["GET", `${origin}/.well-known/oauth-authorization-server/${ids.pool}`],
    ["GET", `${issuer}/.well-known/oauth-authorization-server`],
    ["POST", `${issuer}/register`],
    ["POST", `${issuer}/token`],
    ["POST", `${issuer}/revoke`],
  ];
}

function preflight(url: string, method: string, origin: string): Promise<Response> {
  const requested = { "access-control-request-method": method, "access-control-request-headers": "authorization,x-y" };
  return fetch(url, { method: "OPTIONS", headers: { origin, ...requested } });
}

function corsOf({ status, headers }: Response) {
  const of = (name: string) => headers.get(`access-control-${name}`);
  return { status, origin: of("allow-origin"), exposed: of("expose-headers"), vary: headers.get("vary") };
}

const READABLE = { origin: PAGE, exposed: expect.stringMatching(/WWW-Authenticate.*Mcp-Session-Id/), vary: "Origin" };
const REFUSED = { status: 403, origin: null, exposed: null, vary: null };

describe("a page of an allowed origin", () => {
  it("may send and read what a client of an MCP server needs", async ({ sandbox }) => {
    for (const [method, url] of addressesOf(sandbox)) {
      const answer = await preflight(url, method, PAGE);
      expect([url, corsOf(answer)]).toEqual([url, { status: 200, ...READABLE }]);
      expect(answer.headers.get("access-control-allow-methods")?.split(", ")).toContain(method);
      expect(answer.headers.get("access-control-allow-headers")).toBe("authorization,x-y");
      const response = await fetch(url, { method, headers: { origin: PAGE } });
      expect(response.headers.get("access-control-allow-credentials")).toBeNull();
      const { status, ...read } = corsOf(response);
      expect([url, status, read]).toEqual([url, expect.not.toSatisfy((code) => code === 403), READABLE]);
    }
  });

  it("reads streams and session ids of the user's own server", async ({ start }) => {
    const mcpServer = ({ sdk }: { sdk: unknown }) => {
      const { McpServer } = sdk as typeof import("@modelcontextprotocol/server");
      const server = new McpServer({ name: "mine", version: "1.0.0" });
      server.registerTool("ping", {}, () => ({ content: [{ type: "text", text: "pong" }] }));
      return server;
    };
    const sandbox = await start({ mcpServer });
    const { tokens } = await logIn(sandbox);
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "page", version: "1" } };
    const answer = await fetch(sandbox.mcpUrl, {
      method: "POST",
      headers: {
        origin: PAGE,
        authorization: `Bearer ${tokens.access_token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
    });
    expect(answer.headers.get("content-type")).toMatch(/^text\/event-stream/);
    expect(answer.headers.get("mcp-session-id")).not.toBeNull();
    expect(corsOf(answer)).toEqual({ status: 200, ...READABLE });
    await answer.body?.cancel();
  });

  it("is answered by the servers of a shape too", async () => {
    await using sandbox = await startLike("linear", { devices: 1, allowOrigins: [PAGE] });
    const addresses = [sandbox.mcpUrl, ...Object.keys(sandbox.like.documents)];
    for (const url of addresses)
      expect(corsOf(await preflight(url, "POST", PAGE))).toEqual({ status: 200, ...READABLE });
  });

  it("may use nothing else", async ({ sandbox }) => {
    const issuer = `${sandbox.origin}/${sandbox.ids.pool}`;
    const others = ["/health", "/_sandbox/faults", "/nothing"].map((path) => sandbox.origin + path);
    for (const url of [devicesUrl(sandbox), `${issuer}/authorize`, `${issuer}/introspect`, `${issuer}/x`, ...others]) {
      expect([url, corsOf(await ask(sandbox, url, { headers: { origin: PAGE } }))]).toEqual([url, REFUSED]);
      expect([url, corsOf(await preflight(url, "GET", PAGE))]).toEqual([url, REFUSED]);
    }
  });
});

it("pages of every other origin are refused", async ({ sandbox }) => {
  const near = ["http://localhost:5174", "https://localhost:5173", `${PAGE}.evil.example`, `${PAGE}/`, "null"];
  for (const origin of near) {
    for (const [method, url] of addressesOf(sandbox)) {
      expect([origin, corsOf(await preflight(url, method, origin))]).toEqual([origin, REFUSED]);
      expect([origin, corsOf(await fetch(url, { method, headers: { origin } }))]).toEqual([origin, REFUSED]);
    }
  }
});

it("a client without an origin is answered as before", async ({ sandbox }) => {
  const unauthorized = await rpc(sandbox.mcpUrl, undefined, "tools/list");
  expect(corsOf(unauthorized)).toEqual({ status: 401, origin: null, exposed: null, vary: null });
  const { as } = await logIn(sandbox);
  expect(await register(as)).toHaveProperty("client_id");
});
