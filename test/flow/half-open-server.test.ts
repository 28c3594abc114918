import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/http/deadline.js";
import { runCli, temporaryFolder } from "../helpers/cli.js";
import { sendJson, startServer } from "../helpers/server.js";
import { FETCH_BROWSER } from "./support.js";

interface Behaviour {
  /** Where the resource metadata are; undefined for none. */
  metadata?: string;
  /** The address that the challenge names, where it is another one. */
  named?: string;
}

/** An MCP server that lists its tools without a token, and calls them only with one; it is its own issuer. */
async function startHalfOpen({ metadata, named = metadata }: Behaviour) {
  let origin = "";
  const user = { declines: false };
  const issuer = { isGone: false };
  const requested: { scope: string | null; resource: string | null }[] = [];
  const server = await startServer((response, { url: path, method, body, headers }) => {
    const { pathname, searchParams } = new URL(path, origin);
    if (pathname === metadata) {
      return sendJson(response, { resource: `${origin}/mcp`, authorization_servers: [`${origin}/issuer`] });
    }
    if (issuer.isGone && pathname.startsWith("/issuer")) return sendJson(response, {}, 404);
    if (pathname === "/issuer/.well-known/oauth-authorization-server") {
      return sendJson(response, {
        issuer: `${origin}/issuer`,
        ...{ authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token` },
        registration_endpoint: `${origin}/register`,
        code_challenge_methods_supported: ["S256"],
      });
    }
    if (pathname === "/register") return sendJson(response, { ...JSON.parse(body), client_id: "client-1" }, 201);
    if (pathname === "/authorize") {
      requested.push({ scope: searchParams.get("scope"), resource: searchParams.get("resource") });
      const back = new URL(searchParams.get("redirect_uri") ?? "");
      if (user.declines) back.searchParams.set("error", "access_denied");
      else back.searchParams.set("code", "code-1");
      back.searchParams.set("state", searchParams.get("state") ?? "");
      return response.writeHead(302, { location: back.href }).end();
    }
    if (pathname === "/token")
      return sendJson(response, { access_token: "at-1", token_type: "Bearer", expires_in: 60 });
    if (pathname !== "/mcp" || method !== "POST") return sendJson(response, {}, 404);
    const message = JSON.parse(body) as { id?: number; method: string };
    if (message.id === undefined) return response.writeHead(202).end();
    if (message.method === "tools/call" && headers.authorization === undefined) {
      const address = named === undefined ? "" : `, resource_metadata="${new URL(named, origin).href}"`;
      response.setHeader("www-authenticate", `Bearer scope="tools:call"${address}`);
      return sendJson(response, { error: "invalid_token" }, 401);
    }
    const results: Record<string, unknown> = {
      initialize: {
        protocolVersion: "2025-06-18",
        capabilities: { tools: {} },
        serverInfo: { name: "half-open", version: "1" },
      },
      "tools/list": { tools: [{ name: "echo", inputSchema: { type: "object" } }] },
      "tools/call": { content: [{ type: "text", text: "hello" }] },
    };
    const result = results[message.method];
    const failed = { error: { code: -32601, message: "no such method" } };
    return sendJson(response, { jsonrpc: "2.0", id: message.id, ...(result ? { result } : failed) });
  });
  origin = server.origin;
  const home = temporaryFolder();
  let ahead = 0;
  const run = (...args: string[]) =>
    runCli(args, { env: { AGENTAUTH_HOME: home }, clock: { ...systemClock, epoch: () => Date.now() + ahead } });
  return {
    url: `${origin}/mcp`,
    requested,
    user,
    issuer,
    run,
    /** Runs the command of a hint, with a browser. */
    paste: (stderr: string) => {
      const [, words = ""] = /agentauth (login .*)/.exec(stderr.replace(/ --browser '[^']*'/, "")) ?? [];
      return run(...words.split(" ").map((word) => word.replaceAll("'", "")), "--browser", FETCH_BROWSER);
    },
    expire: () => {
      ahead += 3_600_000;
    },
  };
}

describe("a server that requires a login for some requests only", () => {
  it("is logged in at with the command that a rejected call names, again and again", async () => {
    const { url, run, paste, requested, expire } = await startHalfOpen({ metadata: "/hidden" });
    expect(await run("mcp", "tools", url, "-o", "id")).toMatchObject({ code: 0, stdout: "echo\n" });
    const rejected = await run("mcp", "call", url, "echo");
    const flags = `--scope tools:call --resource-metadata ${new URL("/hidden", url).href}`;
    expect(rejected).toMatchObject({ code: 4, stderr: expect.stringContaining(`agentauth login ${url} ${flags}\n`) });
    expect(await paste(rejected.stderr)).toMatchObject({ stderr: expect.stringContaining("logged in"), code: 0 });
    expect(requested).toEqual([{ scope: "tools:call", resource: url }]);
    expect(await run("mcp", "call", url, "echo")).toMatchObject({ code: 0, stdout: "hello\n" });
    expire();
    for (const command of [
      ["call", url, "echo"],
      ["tools", url],
    ]) {
      const expired = await run("mcp", ...command);
      const way = `hint: it answers without a token now, and after agentauth logout ${url} it is used that way`;
      expect([expired.code, expired.stderr]).toEqual([4, expect.stringContaining(way)]);
      expect(expired.stderr).toContain(`; to keep the login: agentauth login ${url}\n`);
    }
    const again = await run("login", url, "--browser", FETCH_BROWSER);
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining("answers without a token now") });
    expect(await run("mcp", "call", url, "echo")).toMatchObject({ code: 0, stdout: "hello\n" });
  });

  it("is one without a login if the issuer of the stored login is gone", async () => {
    const half = await startHalfOpen({ metadata: "/hidden" });
    const { url, run, paste, expire, issuer } = half;
    await paste((await run("mcp", "call", url, "echo")).stderr);
    issuer.isGone = true;
    expire();
    const login = await run("login", url, "--browser", FETCH_BROWSER);
    expect([login.code, login.stderr]).toEqual([0, `${url} requires no login\n`]);
    const tools = await run("mcp", "tools", url);
    expect([tools.code, tools.stderr]).toEqual([4, expect.stringContaining(`agentauth logout ${url}`)]);
    expect((await run("status", url, "--json")).stdout).toContain('"expired"');
    await run("logout", url);
    expect(await run("mcp", "tools", url, "-o", "id")).toMatchObject({ code: 0, stdout: "echo\n" });
  });

  it("is logged in at by the call itself where a user can be prompted", async () => {
    const { url, run } = await startHalfOpen({ metadata: "/hidden" });
    const called = await run("mcp", "call", url, "echo", "--login", "--browser", FETCH_BROWSER);
    expect(called).toMatchObject({ code: 0, stdout: "hello\n" });
  });

  it("is logged in at without a flag where its metadata are at the well-known address", async () => {
    const metadata = "/.well-known/oauth-protected-resource/mcp";
    const { url, run, paste } = await startHalfOpen({ metadata });
    const rejected = await run("mcp", "call", url, "echo");
    expect(rejected).toMatchObject({ code: 4, stderr: expect.stringContaining(`agentauth login ${url}\n`) });
    expect(await paste(rejected.stderr)).toMatchObject({ stderr: expect.stringContaining("logged in"), code: 0 });
    expect(await run("mcp", "call", url, "echo")).toMatchObject({ code: 0 });
  });

  it("is one of the revision 2025-03-26 if its challenge names no metadata", async () => {
    const { url, run, paste } = await startHalfOpen({});
    const rejected = await run("mcp", "call", url, "echo");
    const command = `agentauth login ${url} --legacy-discovery\n`;
    expect(rejected).toMatchObject({ code: 3, stderr: expect.stringContaining(command) });
    expect(await paste(rejected.stderr)).toMatchObject({ stderr: expect.stringContaining("logged in"), code: 0 });
    expect(await run("mcp", "call", url, "echo")).toMatchObject({ code: 0 });
  });

  it("names every flag again to a program that comes after the user declined the login", async () => {
    const { url, run, paste, requested, user } = await startHalfOpen({ metadata: "/hidden" });
    user.declines = true;
    const call = ["mcp", "call", url, "echo", "--login", "--browser", FETCH_BROWSER];
    const flags = `--scope tools:call --resource-metadata ${new URL("/hidden", url).href}`;
    const declined = await run(...call);
    expect([declined.code, declined.stderr]).toEqual([4, expect.stringContaining(`agentauth login ${url} ${flags}`)]);
    const again = await run(...call);
    expect([again.code, again.stderr]).toEqual([4, expect.stringMatching(/failed \d+ s ago/)]);
    expect(again.stderr).toContain(`agentauth login ${url} ${flags}`);
    expect(requested).toHaveLength(1);
    user.declines = false;
    expect(await paste(again.stderr)).toMatchObject({ code: 0, stderr: expect.stringContaining("logged in") });
    expect(await run("mcp", "call", url, "echo")).toMatchObject({ code: 0, stdout: "hello\n" });
  });

  it.each([[], ["--login", "--browser", FETCH_BROWSER]])(
    "names every flag at once where its metadata are at another origin %j",
    async (...flags) => {
      const documents = await startServer((response) =>
        sendJson(response, { resource: half.url, authorization_servers: [new URL("/issuer", half.url).href] }),
      );
      const address = `${documents.origin}/metadata`;
      const half = await startHalfOpen({ named: address });
      const { url, run, paste, requested } = half;
      const rejected = await run("mcp", "call", url, "echo", ...flags);
      expect(rejected.code).toBe(3);
      expect(rejected.stderr).toContain("must be on the MCP server's origin");
      const more = `--allow-cross-origin-metadata --scope tools:call --resource-metadata ${address}`;
      expect(rejected.stderr).toMatch(new RegExp(`agentauth login ${url}.* ${more}\n$`));
      expect(documents.requests).toEqual([]);
      expect(await paste(rejected.stderr)).toMatchObject({ stderr: expect.stringContaining("logged in"), code: 0 });
      expect(requested).toEqual([{ scope: "tools:call", resource: url }]);
      expect(await run("mcp", "call", url, "echo")).toMatchObject({ code: 0, stdout: "hello\n" });
    },
  );

  it.each([
    ["of another origin", "http://127.0.0.1:9/hidden", "must be on the MCP server's origin"],
    ["that is not one of the web", "file:///etc/passwd", "resource_metadata"],
  ])("may not have metadata at an address %s", async (_what, address, rule) => {
    const { url, run } = await startHalfOpen({ metadata: "/hidden" });
    const { code, stderr } = await run("login", url, "--resource-metadata", address, "--browser", FETCH_BROWSER);
    expect(code).toBe(3);
    expect(stderr).toContain('from "the option resourceMetadata"');
    expect(stderr).toContain(rule);
  });

  it("puts nothing into the command that a shell would run", async () => {
    const { url, run } = await startHalfOpen({ metadata: "/hidden", named: "/hidden?$(id)" });
    const { code, stderr } = await run("mcp", "call", url, "echo");
    expect([code, stderr]).toEqual([4, expect.stringContaining("--resource-metadata <url>\n")]);
  });

  it("is said to name no authorization server if there is nothing at the address", async () => {
    const { url, run } = await startHalfOpen({});
    const address = new URL("/nothing", url).href;
    const { code, stderr } = await run("login", url, "--resource-metadata", address, "--browser", FETCH_BROWSER);
    expect([code, stderr]).toEqual([3, expect.stringContaining("names no authorization server")]);
  });
});
