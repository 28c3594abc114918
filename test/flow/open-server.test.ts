import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { describe, expect, it, onTestFinished } from "vitest";
import { runCli, temporaryFolder } from "../helpers/cli.js";
import { sendJson, startServer } from "../helpers/server.js";
import { schemaChecks } from "./schema-checks.js";

const TOOL = { name: "echo", description: "repeats", inputSchema: { type: "object" } };

interface Behaviour {
  /** The status of the response to a request outside a session; undefined if the server has no sessions. */
  noSession?: 400 | 404 | undefined;
  /** Whether resource metadata are published. */
  issuer?: string;
  /** The response to each request of MCP. */
  page?: boolean;
  /** The JSON text of the response to each request of MCP. */
  text?: string;
}

/** An MCP server that requires no token. */
async function startOpen({ noSession, issuer, page = false, text }: Behaviour = {}) {
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
    if (noSession && message.method !== "initialize" && headers["mcp-session-id"] !== "session-1")
      return sendJson(
        response,
        { jsonrpc: "2.0", error: { code: -32000, message: "no session" }, id: null },
        noSession,
      );
    if (message.id === undefined) return response.writeHead(202).end();
    if (message.method === "initialize" && noSession) response.setHeader("mcp-session-id", "session-1");
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

describe.each([undefined, 400, 404] as const)("a server that requires no login (no session: %s)", (noSession) => {
  it("is used by mcp tools, mcp call and request without a token", async () => {
    const { url, run, server } = await startOpen({ noSession });
    const tools = await run("mcp", "tools", url);
    expect([tools.code, tools.stdout, tools.stderr]).toEqual([0, expect.stringContaining("echo"), ""]);
    const call = await run("mcp", "call", url, "echo");
    expect([call.code, call.stdout.trim(), call.stderr]).toEqual([0, "hello", ""]);
    if (!noSession) {
      const list = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
      expect((await run("request", url, "-d", list)).code).toBe(0);
    }
    expect(server.requests.filter(({ headers }) => headers.authorization !== undefined)).toEqual([]);
  });

  it("is no place to log in at, which login says, and ends with 0", async () => {
    const { url, run } = await startOpen({ noSession });
    const { code, stdout, stderr } = await run("login", url, "-o", "text", "--browser", "none");
    expect([code, stdout, stderr]).toEqual([0, "", `${url} requires no login\n`]);
    const json = await run("login", url, "--json", "--browser", "none");
    const report = JSON.parse(json.stdout);
    expect(report).toEqual({ logged_in: false, login_required: false, server: url });
    const problems = await schemaChecks();
    expect(problems("login-not-required", report)).toBeUndefined();
    expect(problems("login-not-required", { ...report, server: undefined })).toBeDefined();
    const unattended = await run("login", url);
    expect([unattended.code, JSON.parse(unattended.stdout).login_required]).toEqual([0, false]);
  });

  it("has no token, which token and exec say, with a command that works", async () => {
    const { url, run } = await startOpen({ noSession });
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
    const { url, run } = await startOpen({ noSession });
    const { code, stdout } = await run("discover", url);
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/\n\nhttp\S+ requires no login\n\nlist its tools with: agentauth mcp tools http\S+\n$/),
    ]);
    const json = JSON.parse((await run("discover", url, "--json")).stdout);
    expect(json).toMatchObject({ server: url, login_required: false, command: `agentauth mcp tools ${url}` });
  });
});

/** A server of the official SDK that speaks revision 2026-07-28 alone. */
async function startSessionless() {
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: "open", version: "1" });
      server.registerTool("echo", {}, () => ({ content: [{ type: "text", text: "hello" }] }));
      return server;
    },
    { legacy: "reject" },
  );
  onTestFinished(() => handler.close());
  const server = await startServer(async (response, { url, method, headers, body }) => {
    if (url !== "/mcp") return sendJson(response, {}, 404);
    const init = { method, headers: headers as Record<string, string>, ...(method === "POST" && { body }) };
    const answer = await handler.fetch(new Request(`http://127.0.0.1${url}`, init));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  const home = temporaryFolder();
  const run = (...args: string[]) => runCli(args, { env: { AGENTAUTH_HOME: home } });
  return { server, url: `${server.origin}/mcp`, run };
}

describe("a server that requires no login and speaks revision 2026-07-28 alone", () => {
  it("is used without a token, and is no place to log in at", async () => {
    const { url, run, server } = await startSessionless();
    const login = await run("login", url, "-o", "text", "--browser", "none");
    expect([login.code, login.stdout, login.stderr]).toEqual([0, "", `${url} requires no login\n`]);
    const tools = await run("mcp", "tools", url);
    expect([tools.code, tools.stdout, tools.stderr]).toEqual([0, expect.stringContaining("echo"), ""]);
    const call = await run("mcp", "call", url, "echo");
    expect([call.code, call.stdout.trim(), call.stderr]).toEqual([0, "hello", ""]);
    const token = await run("token", url);
    expect([token.code, token.stderr]).toEqual([4, expect.stringContaining("requires no login, so there is no token")]);
    expect(server.requests.filter(({ headers }) => headers.authorization !== undefined)).toEqual([]);
  });

  it("is called once more in that revision, which discover shows", async () => {
    const { url, run, server } = await startSessionless();
    const { code, stdout } = await run("discover", url, "--json");
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { server: url, login_required: false }]);
    const posts = server.requests.filter(({ method }) => method === "POST");
    expect(posts.map(({ headers }) => headers["mcp-protocol-version"])).toEqual([undefined, "2026-07-28"]);
    expect(stdout).toContain("the server speaks revision 2026-07-28 alone");
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

describe("a mistyped address", () => {
  /** A server whose other paths have nothing. */
  async function startElsewhere(status = 404) {
    const server = await startServer((response) => response.writeHead(status).end());
    const home = temporaryFolder();
    const run = (...args: string[]) => runCli(args, { env: { AGENTAUTH_HOME: home } });
    return { url: `${server.origin}/mpc`, run };
  }

  it.each([
    ["login", "--browser", "none"],
    ["discover"],
    ["mcp", "tools"],
    ["request", "-d", "{}"],
    ["token"],
    ["token", "--login", "--browser", "none"],
    ["exec", "--login", "--browser", "none"],
  ])("has nothing, which %s says, and to check its path", async (...words) => {
    const { url, run } = await startElsewhere();
    const command = words[0] === "mcp" ? words.splice(0, 2) : words.splice(0, 1);
    const { code, stdout, stderr } = await run(
      ...command,
      url,
      ...words,
      ...(command[0] === "exec" ? ["--", "true"] : []),
    );
    expect([code, stdout]).toEqual([6, command[0] === "discover" ? expect.anything() : ""]);
    expect(stderr).toContain(`nothing is at "${url}": it answered HTTP 404\n`);
    expect(stderr).toContain("hint: check the path of the address");
    expect(stderr).not.toContain("legacy");
  });

  it.each([403, 405, 200])("is not taken for a server of 2025-03-26 where it answers %s", async (status) => {
    const { url, run } = await startElsewhere(status);
    const { code, stderr } = await run("login", url, "--browser", "none");
    expect([code, stderr]).toEqual([3, expect.stringContaining("names no authorization server (RFC 9728)")]);
    expect(stderr).toContain(`hint: check the address: it answered a request without a token with HTTP ${status}\n`);
  });

  it("is one of a server of 2025-03-26 where it answers 401", async () => {
    const { url, run } = await startElsewhere(401);
    const { stderr } = await run("login", url, "--browser", "none");
    expect(stderr).toContain("hint: a server of the MCP revision 2025-03-26 is reached with --legacy-discovery");
  });
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
