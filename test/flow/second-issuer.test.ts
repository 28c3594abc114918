import { describe, expect, test } from "vitest";
import type { BrowserResult } from "../../src/login/browser.js";
import { terminalLogin } from "../../src/login/terminal.js";
import { openMcp } from "../../src/mcp/session.js";
import { AgentClient, type AgentClientOptions } from "../../src/oauth/agent.js";
import { memoryStore } from "../../src/store/memory.js";
import { runCli, temporaryFolder, until } from "../helpers/cli.js";
import { DEMO_SCOPE, type DemoRequest, startDemoProvider } from "../helpers/demo-provider.js";
import { freePort } from "../helpers/port.js";
import { LOGIN_FLAGS } from "./support.js";

const it = test
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  .extend("demo", async ({}, { onCleanup }) => {
    const demo = await startDemoProvider();
    onCleanup(() => demo.close());
    return demo;
  })
  /** The pages at which the user's browser arrived. */
  .extend("pages", (): string[] => [])
  .extend("agentWith", ({ pages }) => (options: Partial<AgentClientOptions> = {}, redirectPort?: number) => {
    /** A browser without a window: follows the redirects, and reads the page at their end. */
    const openBrowser = async (url: string): Promise<BrowserResult> => {
      pages.push(await (await fetch(url)).text());
      return "opened";
    };
    const login = terminalLogin({ say() {}, env: {}, browser: "any", openBrowser, redirectPort });
    return new AgentClient({ store: memoryStore(), login, ...options });
  })
  .extend("run", () => {
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    return (...args: string[]) => runCli(args, { env });
  });

const summary = ({ server, method, path, status }: DemoRequest) => `${server} ${method} ${path} ${status}`;
const only = <T>(list: readonly T[]): T => {
  if (list.length !== 1 || list[0] === undefined) throw new Error(`one was expected, ${list.length} are there`);
  return list[0];
};

const PRM = "/.well-known/oauth-protected-resource/mcp";
const METADATA = "/.well-known/oauth-authorization-server";
const FIRST_LOGIN = [
  "mcp POST /mcp 401",
  `mcp GET ${PRM} 200`,
  `issuer GET ${METADATA} 200`,
  "issuer GET /.well-known/openid-configuration 404",
  "issuer POST /register 201",
  "issuer GET /authorize 302",
  "issuer POST /token 200",
];

describe("the library at an authorization server of another implementation", () => {
  it("gets a token in seven requests, by metadata at the root and an issuer that ends in a slash", async ({
    agentWith,
    demo,
    pages,
  }) => {
    const token = await agentWith().token(demo.mcpUrl);
    expect(demo.requests.map(summary)).toEqual(FIRST_LOGIN);
    expect(token).toMatchObject({ issuer: demo.issuer, resource: demo.mcpUrl, scope: DEMO_SCOPE });
    expect(demo.issuer).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
    await until(() => pages.length > 0);
    expect(pages).toEqual([expect.stringContaining("<h1>You are logged in</h1>")]);
  });

  it("names the resource and the challenged scope, and sends the code with its verifier", async ({
    agentWith,
    demo,
  }) => {
    await agentWith().token(demo.mcpUrl);
    const { query, location } = only(demo.to("/authorize"));
    const registered = only(demo.to("/register")).body;
    expect(Object.fromEntries(query)).toMatchObject({
      resource: demo.mcpUrl,
      scope: DEMO_SCOPE,
      code_challenge_method: "S256",
      redirect_uri: String(registered["redirect_uris"]),
    });
    expect(only(demo.to("/token")).body).toMatchObject({
      grant_type: "authorization_code",
      resource: demo.mcpUrl,
      code: new URL(location ?? "").searchParams.get("code"),
      code_verifier: expect.stringMatching(/^[\w-]{43,}$/),
    });
  });

  it("accepts a callback without iss, since the metadata does not promise one", async ({ agentWith, demo }) => {
    await agentWith().token(demo.mcpUrl);
    const callback = new URL(only(demo.to("/authorize")).location ?? "").searchParams;
    expect([...callback.keys()].sort()).toEqual(["code", "state"]);
  });

  it("authenticates as the metadata lists it: the secret in the form, no Basic", async ({ agentWith, demo }) => {
    await agentWith().token(demo.mcpUrl);
    expect(only(demo.to("/register")).body).toMatchObject({ token_endpoint_auth_method: "client_secret_post" });
    const { authorization, body } = only(demo.to("/token"));
    expect(authorization).toBeUndefined();
    expect(body["client_secret"]).toMatch(/^[0-9a-f]{64}$/);
  });

  it("uses the token, refreshes it, and uses the new one; each refresh with the latest refresh token", async ({
    agentWith,
    demo,
  }) => {
    const agent = agentWith();
    const first = await agent.token(demo.mcpUrl);
    expect(await whoami(demo.mcpUrl, agent)).toContain(DEMO_SCOPE);
    const second = await agent.token(demo.mcpUrl, { forceRefresh: true });
    const third = await agent.token(demo.mcpUrl, { forceRefresh: true });
    expect(new Set([first.value, second.value, third.value]).size).toBe(3);
    const [, one, two] = demo.to("/token").map(({ body }) => body);
    expect(one).toMatchObject({ grant_type: "refresh_token", resource: demo.mcpUrl });
    expect(two?.["refresh_token"]).not.toBe(one?.["refresh_token"]);
    const before = demo.to("/mcp").length;
    expect(await whoami(demo.mcpUrl, agent)).toContain(DEMO_SCOPE);
    for (const { authorization } of demo.to("/mcp").slice(before)) expect(authorization).toBe(`Bearer ${third.value}`);
    expect(demo.to("/authorize")).toHaveLength(1);
  });

  it("logs out by revocation, after which the server refuses the token", async ({ agentWith, demo }) => {
    const agent = agentWith();
    const { value } = await agent.token(demo.mcpUrl);
    expect(await agent.disconnect(demo.mcpUrl)).toMatchObject({ removed: true, revoked: true });
    const revoked = demo.to("/revoke");
    expect(revoked.map(({ status }) => status)).toEqual([200, 200]);
    const [refreshToken, accessToken] = revoked.map(({ body }) => body["token"]);
    expect(refreshToken).toMatch(/^[\w-]{36}$/);
    expect(accessToken).toBe(value);
    expect(await agent.status()).toEqual([]);
    const answer = await fetch(demo.mcpUrl, { method: "POST", headers: { authorization: `Bearer ${value}` } });
    expect(answer.status).toBe(401);
  });

  it("logs in with a pre-registered public client, and sends no secret anywhere", async ({ agentWith, demo }) => {
    const port = await freePort();
    await demo.addPublicClient("known-client", `http://127.0.0.1:${port}/callback`);
    const agent = agentWith({ client: { clientId: "known-client" } }, port);
    await agent.token(demo.mcpUrl);
    await agent.token(demo.mcpUrl, { forceRefresh: true });
    await agent.disconnect(demo.mcpUrl);
    expect(demo.to("/register")).toEqual([]);
    const sent = [...demo.to("/token"), ...demo.to("/revoke")];
    expect(sent.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    for (const { body, authorization } of sent) {
      expect(authorization).toBeUndefined();
      expect(body).toMatchObject({ client_id: "known-client" });
      expect(body).not.toHaveProperty("client_secret");
    }
  });

  it("requests a new login where its token was revoked elsewhere and the refresh fails", async ({
    agentWith,
    demo,
  }) => {
    const store = memoryStore();
    const agent = agentWith({ store });
    await agent.token(demo.mcpUrl);
    const { refreshToken } = only(await store.list()).tokens;
    const { client_id, client_secret } = only(demo.to("/token")).body;
    const form = { client_id: String(client_id), client_secret: String(client_secret) };
    const token = refreshToken?.reveal() ?? "";
    await fetch(`${demo.issuer}revoke`, { method: "POST", body: new URLSearchParams({ ...form, token }) });
    expect(await whoami(demo.mcpUrl, agent)).toContain(DEMO_SCOPE);
    expect(demo.to("/token").map(({ body, status }) => `${body["grant_type"]} ${status}`)).toEqual([
      "authorization_code 200",
      "refresh_token 400",
      "authorization_code 200",
    ]);
    expect(demo.to("/register")).toHaveLength(1);
  });

  it("registers again where the issuer no longer has its client", async ({ agentWith, demo }) => {
    const store = memoryStore();
    await agentWith({ store }).token(demo.mcpUrl);
    const { client_id } = only(demo.to("/token")).body;
    demo.forgetClient(String(client_id));
    await agentWith({ store }).login(demo.mcpUrl);
    expect(demo.to("/register")).toHaveLength(2);
    expect(demo.to("/token").at(-1)).toMatchObject({ status: 200 });
  });
});

describe("the command line there", () => {
  it("prints a token that the server accepts, after seven requests and one login", async ({ demo, run }) => {
    const { code, stdout } = await run("token", demo.mcpUrl, ...LOGIN_FLAGS);
    expect(code).toBe(0);
    expect(demo.requests.map(summary)).toEqual(FIRST_LOGIN);
    const headers = {
      authorization: `Bearer ${stdout.trim()}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
    const answer = await fetch(demo.mcpUrl, { method: "POST", headers, body });
    expect(await answer.text()).toContain("whoami");
  });

  it("calls a tool, refreshes and logs out, each in a separate run, with one login for all", async ({ demo, run }) => {
    const first = await run("token", demo.mcpUrl, ...LOGIN_FLAGS);
    const called = await run("mcp", "call", demo.mcpUrl, "whoami");
    expect([called.code, called.stdout]).toEqual([
      0,
      `${String(only(demo.to("/token")).body["client_id"])} ${DEMO_SCOPE}\n`,
    ]);
    const refreshed = await run("token", demo.mcpUrl, "--force-refresh");
    expect(refreshed.code).toBe(0);
    expect(refreshed.stdout).not.toBe(first.stdout);
    expect(demo.to("/token").map(({ body }) => body["grant_type"])).toEqual(["authorization_code", "refresh_token"]);
    const out = await run("logout", demo.mcpUrl);
    expect([out.code, out.stderr]).toEqual([0, `logged out of ${demo.mcpUrl}\n`]);
    expect(demo.to("/revoke").map(({ status }) => status)).toEqual([200, 200]);
    expect((await run("status", demo.mcpUrl)).code).toBe(4);
    expect(demo.to("/authorize")).toHaveLength(1);
  });

  it("reports that the issuer has no introspection endpoint", async ({ demo, run }) => {
    await run("token", demo.mcpUrl, ...LOGIN_FLAGS);
    const { code, stdout, stderr } = await run("introspect", demo.mcpUrl);
    expect([code, stdout]).toEqual([6, ""]);
    expect(stderr).toMatch(/^error: .* has no introspection_endpoint\n/);
  });
});

async function whoami(server: string, agent: AgentClient): Promise<string> {
  const { signal } = new AbortController();
  const fetch: typeof globalThis.fetch = (input, init) => agent.fetch(input as string | URL | Request, init);
  const session = await openMcp(server, { fetch, name: "test", version: "1.0.0", signal });
  try {
    return JSON.stringify(await session.call("whoami", {}, signal));
  } finally {
    await session.close();
  }
}
