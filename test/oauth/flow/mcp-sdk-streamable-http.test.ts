import { describe, expect } from "vitest";
import { systemClock } from "../../../src/http/deadline.js";
import { AgentClient } from "../../../src/oauth/agent.js";
import { memoryStore } from "../../../src/store/memory.js";
import { pendingError } from "../../helpers/captured.js";
import { loginAt } from "../../helpers/remedy.js";
import { LOGIN_FLOWS } from "../mcp-sdk/login-flows.js";
import { it } from "../mcp-sdk/support.js";

const HOUR_MS = 3_600_000;

describe.each(LOGIN_FLOWS)("%s, over streamable HTTP", (name, connect) => {
  it("logs in once for all clients of a store", async ({ sandbox, agent, login, count }) => {
    const first = await connect(sandbox.mcpUrl, agent());
    expect(await first.tools()).toEqual(["whoami", "echo", "admin_report"]);
    expect(JSON.stringify(await first.call("whoami"))).toContain("alice");
    const second = await connect(sandbox.mcpUrl, agent({ login: undefined }));
    expect(await second.tools()).toHaveLength(3);
    expect([login.opened.length, count("authorization_code")]).toEqual([1, 1]);
    await Promise.all([first.close(), second.close()]);
  });

  it("refreshes a token that expires in mid-session", async ({ sandbox, agent, login, count }) => {
    const client = await connect(sandbox.mcpUrl, agent());
    sandbox.clock.advance(2 * HOUR_MS);
    expect(await Promise.all([client.tools(), client.tools(), client.tools()])).toHaveLength(3);
    expect([login.opened.length, count("refresh_token")]).toEqual([1, 1]);
    await client.close();
  });

  it("refreshes a token that the server rejects, once for all requests", async ({ sandbox, agent, login, count }) => {
    // This agent does not see that the token has expired.
    const client = await connect(sandbox.mcpUrl, agent({ clock: systemClock }));
    sandbox.clock.advance(2 * HOUR_MS);
    // The transport of SDK 1.x fails a request whose 401 arrives after another one's, whatever the provider does.
    const length = name === "oauthClientProvider, SDK 1.x" ? 1 : 10;
    const calls = await Promise.all(Array.from({ length }, () => client.call("whoami")));
    expect(calls.filter((content) => JSON.stringify(content).includes("alice"))).toHaveLength(length);
    expect([login.opened.length, count("refresh_token")]).toEqual([1, 1]);
    await client.close();
  });

  it("logs in again where the issuer refuses to refresh a rejected token", async ({ sandbox, agent, login }) => {
    const client = await connect(sandbox.mcpUrl, agent({ clock: systemClock }));
    sandbox.clock.advance(2 * HOUR_MS);
    sandbox.faults.add({ kind: "refuse-refresh" });
    expect(JSON.stringify(await client.call("whoami"))).toContain("alice");
    expect(login.opened).toHaveLength(2);
    await client.close();
  });

  it("steps up within the call that lacks scopes", async ({ sandbox, agent, login }) => {
    const client = await connect(sandbox.mcpUrl, agent());
    expect(JSON.stringify(await client.call("admin_report"))).toContain("12 pools");
    expect(JSON.stringify(await client.call("admin_report"))).toContain("12 pools");
    expect(login.urls.map(({ searchParams }) => searchParams.get("scope"))).toEqual([null, "mcp reports:read"]);
    await client.close();
  });

  it("without a way to log in, reports the login that is needed", async ({ sandbox, agent, count }) => {
    const error = { code: "login_required", remedy: loginAt(sandbox.mcpUrl) };
    expect(await pendingError(connect(sandbox.mcpUrl, agent({ login: undefined })))).toMatchObject(error);
    expect(count("authorization_code")).toBe(0);
  });

  it("without a way to log in, reports the scopes that are missing", async ({ sandbox, agent }) => {
    await agent().login(sandbox.mcpUrl);
    const client = await connect(sandbox.mcpUrl, agent({ login: undefined }));
    const wanted = loginAt(sandbox.mcpUrl, { scope: "mcp reports:read" });
    const error = { code: "insufficient_scope", remedy: wanted };
    expect(await pendingError(client.call("admin_report"))).toMatchObject(error);
    await client.close();
  });
});

describe.each(LOGIN_FLOWS)("%s, with a machine grant", (_name, connect) => {
  it("requests a new token in place of a rejected one", async ({ start }) => {
    await using sandbox = await start({ machineGrants: true });
    if (sandbox.machine === undefined) throw new Error("no machine grants");
    const { secretClient, issuer } = sandbox.machine;
    const preRegistered = { ...secretClient, issuer };
    const agent = new AgentClient({
      store: memoryStore(),
      client: preRegistered,
      grant: { type: "client_credentials" },
    });
    const client = await connect(sandbox.mcpUrl, agent);
    sandbox.clock.advance(2 * HOUR_MS);
    expect(JSON.stringify(await client.call("whoami"))).toContain(secretClient.clientId);
    expect(sandbox.requests.filter(({ operation }) => operation === "authorization_code")).toEqual([]);
    await client.close();
  });
});

it("a provider names agent.fetch for tokens that are bound to a key", async ({ start, login }) => {
  await using sandbox = await start({ dpop: "required" });
  const agent = new AgentClient({ store: memoryStore(), login });
  const providers = LOGIN_FLOWS.filter(([name]) => !name.startsWith("fetch"));
  for (const [, connect] of providers) {
    const hint = "pass agent.fetch as the fetch of the transport instead of a provider";
    expect(await pendingError(connect(sandbox.mcpUrl, agent))).toMatchObject({ code: "usage", hint });
  }
});
