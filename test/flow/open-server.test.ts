import { describe, expect, it } from "vitest";
import { runCli, temporaryFolder } from "../helpers/cli.js";
import { sendJson, startServer } from "../helpers/server.js";
import { schemaChecks } from "./schema-checks.js";

const TOOL = { name: "echo", description: "repeats", inputSchema: { type: "object" } };

interface Behaviour {
  /** Whether requests outside a session are rejected. */
  hasSessions?: boolean;
  /** Whether resource metadata are published. */
  issuer?: string;
  /** The response to each request of MCP. */
  page?: boolean;
  /** The JSON text of the response to each request of MCP. */
  text?: string;
}

/** An MCP server that requires no token. */
async function startOpen({ hasSessions = false, issuer, page = false, text }: Behaviour = {}) {
  let origin = "";
  const server = await startServer((response, { url: path, method, body, headers }) => {
    if (path.includes("well-known")) {
      if (issuer === undefined || !path.includes("protected-resource")) return sendJson(response, {}, 404);
      return sendJson(response, { resource: `${origin}/mcp`, authorization_servers: [issuer] });
    }
    if (page) return response.setHeader("content-type", "text/html").end("<html>");
    if (text !== undefined) return response.setHeader("content-type", "application/json").end(text);
    if (method !== "POST") return sendJson(response, {}, 405);
    const message = JSON.parse(body) as { id?: number; method: string; params?: { protocolVersion?: string } };
    if (hasSessions && message.method !== "initialize" && headers["mcp-session-id"] !== "session-1")
      return sendJson(response, { jsonrpc: "2.0", error: { code: -32000, message: "no session" }, id: null }, 400);
    if (message.id === undefined) return response.writeHead(202).end();
    if (message.method === "initialize" && hasSessions) response.setHeader("mcp-session-id", "session-1");
    const results: Record<string, unknown> = {
      initialize: {
        protocolVersion: "2025-06-18",
        capabilities: { tools: {} },
        serverInfo: { name: "open", version: "1" },
      },
      "tools/list": { tools: [TOOL] },
      "tools/call": { content: [{ type: "text", text: "hello" }] },
    };
    const result = results[message.method];
    const failed = { error: { code: -32601, message: "no such method" } };
    return sendJson(response, { jsonrpc: "2.0", id: message.id, ...(result ? { result } : failed) });
  });
  origin = server.origin;
  const home = temporaryFolder();
  const run = (...args: string[]) => runCli(args, { env: { AGENTAUTH_HOME: home } });
  return { server, url: `${server.origin}/mcp`, run };
}

describe.each([false, true])("a server that requires no login (with sessions: %s)", (hasSessions) => {
  it("is used by mcp tools, mcp call and request without a token", async () => {
    const { url, run, server } = await startOpen({ hasSessions });
    const tools = await run("mcp", "tools", url);
    expect([tools.code, tools.stdout, tools.stderr]).toEqual([0, expect.stringContaining("echo"), ""]);
    const call = await run("mcp", "call", url, "echo");
    expect([call.code, call.stdout.trim(), call.stderr]).toEqual([0, "hello", ""]);
    if (!hasSessions) {
      const list = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
      expect((await run("request", url, "-d", list)).code).toBe(0);
    }
    expect(server.requests.filter(({ headers }) => headers.authorization !== undefined)).toEqual([]);
  });

  it("is no place to log in at, which login says, and ends with 0", async () => {
    const { url, run } = await startOpen({ hasSessions });
    const { code, stdout, stderr } = await run("login", url, "-o", "text", "--browser", "none");
    expect([code, stdout, stderr]).toEqual([0, "", `${url} requires no login\n`]);
    const json = await run("login", url, "--json", "--browser", "none");
    const report = JSON.parse(json.stdout);
    expect(report).toEqual({ signed_in: false, login_required: false, server: url });
    const problems = await schemaChecks();
    expect(problems("login-not-required", report)).toBeUndefined();
    expect(problems("login-not-required", { ...report, server: undefined })).toBeDefined();
    const unattended = await run("login", url);
    expect([unattended.code, JSON.parse(unattended.stdout).login_required]).toEqual([0, false]);
  });

  it("has no token, which token and exec say, with a command that works", async () => {
    const { url, run } = await startOpen({ hasSessions });
    for (const args of [
      ["token", url],
      ["exec", url, "--", "true"],
      ["token", url, "--login", "--browser", "none"],
    ]) {
      const { code, stdout, stderr } = await run(...args);
      expect([code, stdout]).toEqual([4, ""]);
      expect(stderr).toContain(`error: ${url} requires no login, so there is no token\n`);
      expect(stderr).toContain(`hint: agentauth mcp tools ${url} works without one\n`);
    }
  });

  it("is what discover says it is, with the command that works", async () => {
    const { url, run } = await startOpen({ hasSessions });
    const { code, stdout } = await run("discover", url);
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/\n\nhttp\S+ requires no login\n\nlist its tools with: agentauth mcp tools http\S+\n$/),
    ]);
    const json = JSON.parse((await run("discover", url, "--json")).stdout);
    expect(json).toMatchObject({ server: url, login_required: false, command: `agentauth mcp tools ${url}` });
  });
});

it("a server that answers without a token, and names an issuer, is one to log in at", async () => {
  const { url, run } = await startOpen({ issuer: "http://127.0.0.1:9" });
  const { code, stderr } = await run("login", url, "--browser", "none");
  expect(code).toBe(5);
  expect(stderr).not.toContain("requires no login");
  const tools = await run("mcp", "tools", url);
  expect([tools.code, tools.stderr]).toEqual([4, expect.stringContaining(`hint: agentauth login ${url}`)]);
});

it("a web page is no server without a login", async () => {
  const { url, run } = await startOpen({ page: true });
  const { code, stderr } = await run("login", url, "--browser", "none");
  expect([code, stderr]).toEqual([3, expect.stringContaining("names no authorization server")]);
});

it.each([
  ["an error of JSON-RPC", '{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Unauthorized"}}'],
  ["no object", "[]"],
  ["no JSON", "result"],
  ["cut JSON", '{"result":{}'],
  ["a member twice", '{"result":{},"result":{}}'],
  ["more than 256 KB", `{"result":{"tools":[]},"more":"${"x".repeat(256 * 1024)}"}`],
])("a response with status 200 that is %s is not one of a server without a login", async (_what, text) => {
  const { url, run } = await startOpen({ text });
  const { code, stderr } = await run("login", url, "--browser", "none");
  expect([code, stderr]).toEqual([3, expect.stringContaining("names no authorization server")]);
});
