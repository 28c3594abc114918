import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import * as oauth from "oauth4webapi";
import { describe, expect } from "vitest";
import type { Sandbox } from "../../../src/sandbox/index.js";
import {
  authOf,
  begin,
  callTool,
  discover,
  type LoggedIn,
  landing,
  logIn,
  post,
  REDIRECT_URI,
  redeem,
  refresh,
  refreshed,
  register,
  rpc,
  TOKEN_EXCHANGE,
} from "../oauth/support.js";
import { it as base } from "../support.js";

const it = base.extend({ options: { devices: 5, autoApprove: "bob" } });

async function errorOf(response: Response): Promise<[number, string]> {
  const { error } = (await response.json()) as { error: string };
  return [response.status, error];
}

async function introspect(session: LoggedIn, token: string | undefined): Promise<Record<string, unknown>> {
  const response = await post(session, session.as.introspection_endpoint, { token: token ?? "" });
  expect(response.status).toBe(200);
  return (await response.json()) as Record<string, unknown>;
}

function claimsOf(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as Record<string, unknown>;
}

describe("the whole way", () => {
  it("from the challenge to the tool, by the documents alone", async ({ start }) => {
    const sandbox = await start();
    const challenged = await rpc(sandbox.mcpUrl, undefined, "tools/list");
    const [, prmUrl = ""] = /resource_metadata="([^"]+)"/.exec(challenged.headers.get("www-authenticate") ?? "") ?? [];
    const resource = new URL(sandbox.mcpUrl);
    const prm = await oauth.processResourceDiscoveryResponse(resource, await fetch(prmUrl));
    const issuer = new URL(prm.authorization_servers?.[0] ?? "");
    const as = await oauth.processDiscoveryResponse(
      issuer,
      await fetch(`${issuer.href}/.well-known/oauth-authorization-server`),
    );
    const client = await register(as);
    const begun = await begin(as, client, { resource: prm.resource });
    const callback = await landing(begun.url);
    expect([...callback.searchParams.keys()].sort()).toEqual(["code", "state"]);
    const tokens = await redeem(as, client, begun, callback);
    expect(tokens).toMatchObject({ token_type: "bearer", expires_in: 3600, scope: "mcp" });
    expect(claimsOf(tokens.access_token)).toMatchObject({
      iss: as.issuer,
      aud: sandbox.mcpUrl,
      sub: "bob",
      client_id: client.client_id,
      scope: "mcp",
    });
    const called = await callTool(sandbox.mcpUrl, tokens.access_token, "whoami");
    expect([called.status, await called.text()]).toEqual([200, expect.stringContaining("bob")]);
    expect(sandbox.requests.map(({ operation }) => operation).filter(Boolean)).toEqual([
      "tools/list",
      "authorization_code",
      "tools/call",
    ]);
  });

  it.for(["legacy", { pin: "2026-07-28" }] as const)("with the official MCP client, %j", async (mode, { start }) => {
    const sandbox = await start();
    const { tokens } = await logIn(sandbox, { resource: sandbox.mcpUrl });
    const transport = new StreamableHTTPClientTransport(new URL(sandbox.mcpUrl), {
      requestInit: { headers: { authorization: `Bearer ${tokens.access_token}` } },
    });
    const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
    await client.connect(transport);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["whoami", "echo", "admin_report"]);
    const echo = await client.callTool({ name: "echo", arguments: { text: "hallo" } });
    expect(echo.content).toEqual([{ type: "text", text: "hallo" }]);
    const who = await client.callTool({ name: "whoami", arguments: {} });
    expect(who.structuredContent).toMatchObject({ subject: "bob", scopes: ["mcp"], expires_at: expect.any(Number) });
    expect(await client.callTool({ name: "echo", arguments: {} })).toMatchObject({ isError: true });
    await client.close();
  });

  it("answers a subscription at once instead of keeping it open", async ({ start }) => {
    const sandbox = await start();
    const { tokens } = await logIn(sandbox);
    const version = "2026-07-28";
    const meta = {
      "io.modelcontextprotocol/protocolVersion": version,
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const method = "subscriptions/listen";
    const response = await fetch(sandbox.mcpUrl, {
      method: "POST",
      headers: {
        authorization: `Bearer ${tokens.access_token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": version,
        "mcp-method": method,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { _meta: meta, notifications: {} } }),
    });
    expect(await response.text()).toContain("Subscription limit reached");
    const get = await fetch(sandbox.mcpUrl, { headers: { authorization: `Bearer ${tokens.access_token}` } });
    expect(get.status).toBe(405);
  });

  it("gives the resource's token where none was named, and none for another resource", async ({ start }) => {
    const sandbox = await start();
    const { as, client, tokens } = await logIn(sandbox);
    expect(claimsOf(tokens.access_token)["aud"]).toBe(sandbox.mcpUrl);
    const { url } = await begin(as, client, { resource: "https://elsewhere.example/mcp" });
    expect((await landing(url)).searchParams.get("error")).toBe("invalid_target");
  });

  it("binds tokens to one MCP server", async ({ start }) => {
    const sandbox = await start();
    const [, other] = sandbox.data.pools(sandbox.ids.domain);
    const theirs = `${sandbox.origin}/mcp/${other?.id}`;
    const session = await logIn(sandbox, { resource: theirs }, {}, other?.id);
    expect((await callTool(theirs, session.tokens.access_token, "whoami")).status).toBe(200);
    const refused = await callTool(sandbox.mcpUrl, session.tokens.access_token, "whoami");
    expect(refused.status).toBe(401);
    expect(refused.headers.get("www-authenticate")).toContain('error="invalid_token"');
    const own = `${sandbox.mcpUrl}/${sandbox.ids.pool}`;
    const ofFirst = await logIn(sandbox, { resource: sandbox.mcpUrl });
    expect((await callTool(own, ofFirst.tokens.access_token, "whoami")).status).toBe(401);
  });

  it("refuses a token whose signature or claims were changed", async ({ start }) => {
    const sandbox = await start();
    const { tokens } = await logIn(sandbox);
    const [head = "", , signature = ""] = tokens.access_token.split(".");
    const claims = { ...claimsOf(tokens.access_token), scope: "mcp reports:read" };
    const forged = [head, Buffer.from(JSON.stringify(claims)).toString("base64url"), signature].join(".");
    expect((await callTool(sandbox.mcpUrl, forged, "whoami")).status).toBe(401);
  });

  it("sends the issuer only where that was asked for", async ({ start }) => {
    const sandbox = await start({ iss: true });
    const as = await discover(sandbox);
    const client = await register(as);
    const begun = await begin(as, client);
    expect((await landing(begun.url)).searchParams.get("iss")).toBe(as.issuer);
    begun.url.searchParams.set("resource", "https://elsewhere.example/mcp");
    expect((await landing(begun.url)).searchParams.get("iss")).toBe(as.issuer);
  });

  it("does not send it in errors either, where it was not", async ({ start }) => {
    const sandbox = await start();
    const as = await discover(sandbox);
    const { url, state } = await begin(as, await register(as), { resource: "https://elsewhere.example/mcp" });
    const { searchParams } = await landing(url);
    expect([searchParams.has("iss"), searchParams.get("state")]).toEqual([false, state]);
  });
});

it("PKCE is required, with S256, and the verifier has to be the right one", async ({ start }) => {
  const sandbox = await start();
  const as = await discover(sandbox);
  const client = await register(as);
  const { url } = await begin(as, client);
  for (const change of [{ code_challenge: null }, { code_challenge_method: "plain" }]) {
    const wrong = new URL(url);
    for (const [name, value] of Object.entries(change)) {
      if (value === null) for (const each of [name, "code_challenge_method"]) wrong.searchParams.delete(each);
      else wrong.searchParams.set(name, value);
    }
    expect((await landing(wrong)).searchParams.get("error")).toBe("invalid_request");
  }
  const begun = await begin(as, client);
  const callback = await landing(begun.url);
  const code = callback.searchParams.get("code") ?? "";
  const exchange = (verifier: string) =>
    post({ client }, as.token_endpoint, {
      grant_type: "authorization_code",
      code,
      redirect_uri: REDIRECT_URI,
      code_verifier: verifier,
    });
  expect(await errorOf(await exchange(oauth.generateRandomCodeVerifier()))).toEqual([400, "invalid_grant"]);
  expect((await exchange(begun.verifier)).status).toBe(200);
  expect(await errorOf(await exchange(begun.verifier))).toEqual([400, "invalid_grant"]);
});

describe("refresh tokens", () => {
  it("rotate, and one that comes again revokes the grant", async ({ start }) => {
    const sandbox = await start();
    const session = await logIn(sandbox);
    const second = await refreshed(session);
    expect(second.refresh_token).not.toBe(session.tokens.refresh_token);
    const third = await refreshed(session, second.refresh_token);
    expect(await introspect(session, third.refresh_token)).toMatchObject({ active: true });
    expect(await errorOf(await refresh(session))).toEqual([400, "invalid_grant"]);
    expect(await errorOf(await refresh(session, third.refresh_token))).toEqual([400, "invalid_grant"]);
    expect(await introspect(session, third.access_token)).toEqual({ active: false });
    expect(await introspect(session, third.refresh_token)).toEqual({ active: false });
  });

  it("are good for one of many that use one at the same time", async ({ start }) => {
    const sandbox = await start();
    const session = await logIn(sandbox);
    const statuses = (await Promise.all(Array.from({ length: 8 }, () => refresh(session)))).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 400, 400, 400, 400, 400, 400, 400]);
  });

  it("may be used again while the grace lasts", async ({ start }) => {
    const sandbox = await start({ refreshReuseGraceSeconds: 30 });
    const session = await logIn(sandbox);
    await refreshed(session);
    sandbox.clock.advance(29_000);
    const again = await refreshed(session);
    sandbox.clock.advance(2_000);
    expect(await errorOf(await refresh(session))).toEqual([400, "invalid_grant"]);
    expect(await errorOf(await refresh(session, again.refresh_token))).toEqual([400, "invalid_grant"]);
  });

  it("are for clients that registered the grant", async ({ start }) => {
    const sandbox = await start();
    expect((await logIn(sandbox, {}, { grant_types: ["authorization_code"] })).tokens).not.toHaveProperty(
      "refresh_token",
    );
  });

  it("need offline_access where that is required", async ({ start }) => {
    const sandbox = await start({ requireOfflineAccess: true });
    expect((await logIn(sandbox)).tokens).not.toHaveProperty("refresh_token");
    const requested = await logIn(sandbox, { scope: "mcp offline_access", prompt: "consent" });
    expect(requested.tokens).toMatchObject({ refresh_token: expect.any(String), scope: "mcp" });
    expect(await refreshed(requested)).toMatchObject({ refresh_token: expect.any(String), scope: "mcp" });
  });

  it("keep the scopes, and can ask for fewer", async ({ start }) => {
    const sandbox = await start();
    const session = await logIn(sandbox, { scope: "mcp reports:read anything" });
    expect(session.tokens.scope).toBe("mcp reports:read anything");
    const response = await post(session, session.as.token_endpoint, {
      grant_type: "refresh_token",
      refresh_token: session.tokens.refresh_token ?? "",
      scope: "mcp",
    });
    const fewer = (await response.json()) as { scope: string; refresh_token: string };
    expect(fewer.scope).toBe("mcp");
    expect((await refreshed(session, fewer.refresh_token)).scope).toBe("mcp reports:read anything");
  });

  it("work for a public client", async ({ start }) => {
    const sandbox = await start();
    const session = await logIn(sandbox, {}, { token_endpoint_auth_method: "none" });
    expect(session.client).not.toHaveProperty("client_secret");
    expect((await refreshed(session)).refresh_token).toEqual(expect.any(String));
  });
});

it("scopes are asked for by the tool that needs one, before it runs", async ({ start }) => {
  const sandbox = await start();
  const { tokens } = await logIn(sandbox);
  const refused = await callTool(sandbox.mcpUrl, tokens.access_token, "admin_report");
  expect(refused.status).toBe(403);
  expect(refused.headers.get("www-authenticate")).toBe(
    `Bearer error="insufficient_scope", scope="reports:read", ` +
      `resource_metadata="${sandbox.origin}/.well-known/oauth-protected-resource/mcp"`,
  );
  const more = await logIn(sandbox, { scope: "mcp reports:read" });
  const allowed = await callTool(sandbox.mcpUrl, more.tokens.access_token, "admin_report");
  expect([allowed.status, await allowed.text()]).toEqual([200, expect.stringContaining("pools")]);
});

describe.each([false, true])("introspection, opaque: %s", (opaque) => {
  it("returns the facts of a token", async ({ start }) => {
    const sandbox = await start({ opaque });
    const session = await logIn(sandbox, { resource: sandbox.mcpUrl });
    expect(session.tokens.access_token.startsWith("eyJ")).toBe(!opaque);
    expect((await callTool(sandbox.mcpUrl, session.tokens.access_token, "whoami")).status).toBe(200);
    const known = await introspect(session, session.tokens.access_token);
    expect(known).toMatchObject({
      active: true,
      sub: "bob",
      client_id: session.client.client_id,
      aud: sandbox.mcpUrl,
      iss: session.as.issuer,
      scope: "mcp",
      token_type: "Bearer",
    });
    expect(Number(known["exp"]) - Number(known["iat"])).toBe(3600);
    expect(await introspect(session, "nonsense")).toEqual({ active: false });
    const anonymous = await fetch(session.as.introspection_endpoint ?? "", {
      method: "POST",
      body: new URLSearchParams({ token: session.tokens.access_token }),
    });
    expect(anonymous.status).toBeGreaterThanOrEqual(400);
  });

  it("lets a public client introspect its own tokens only", async ({ start }) => {
    const sandbox = await start({ opaque });
    const session = await logIn(sandbox);
    const stranger = await register(session.as, { token_endpoint_auth_method: "none" });
    const response = await fetch(session.as.introspection_endpoint ?? "", {
      method: "POST",
      body: new URLSearchParams({ token: session.tokens.access_token, client_id: stranger.client_id }),
    });
    expect(await response.json()).toEqual({ active: false });
  });
});

describe.each([false, true])("token exchange, opaque: %s", (opaque) => {
  const grants = { grant_types: ["authorization_code", "refresh_token", TOKEN_EXCHANGE] };
  const type = "urn:ietf:params:oauth:token-type:access_token";
  const swap = (session: LoggedIn, form: Record<string, string>) =>
    post(session, session.as.token_endpoint, {
      grant_type: TOKEN_EXCHANGE,
      subject_token: session.tokens.access_token,
      subject_token_type: type,
      ...form,
    });

  it("gives a token for another audience, with no more scopes", async ({ start }) => {
    const sandbox = await start({ opaque });
    const session = await logIn(sandbox, { scope: "mcp reports:read" }, grants);
    const response = await swap(session, { audience: "urn:reports", scope: "reports:read" });
    const body = (await response.json()) as Record<string, unknown>;
    expect(body).toEqual({
      access_token: expect.any(String),
      issued_token_type: type,
      token_type: "Bearer",
      expires_in: 3600,
      scope: "reports:read",
    });
    expect(await introspect(session, String(body["access_token"]))).toMatchObject({
      active: true,
      aud: "urn:reports",
      sub: "bob",
      scope: "reports:read",
    });
    const own = `${sandbox.mcpUrl}/${sandbox.ids.pool}`;
    const back = (await (await swap(session, { resource: own })).json()) as { access_token: string };
    expect((await callTool(own, back.access_token, "whoami")).status).toBe(200);
    expect((await callTool(sandbox.mcpUrl, String(body["access_token"]), "whoami")).status).toBe(401);
  });

  it("refuses what it cannot trust or make", async ({ start }) => {
    const sandbox = await start({ opaque });
    const session = await logIn(sandbox, {}, grants);
    const target = { audience: "urn:reports" };
    const refusals = [
      [{}, "invalid_target"],
      [{ resource: "relative" }, "invalid_target"],
      [{ ...target, scope: "reports:read" }, "invalid_scope"],
      [{ ...target, subject_token: "forged" }, "invalid_request"],
      [{ ...target, subject_token_type: "urn:x" }, "invalid_request"],
      [{ ...target, requested_token_type: "urn:ietf:params:oauth:token-type:id_token" }, "invalid_request"],
    ] as const;
    for (const [form, error] of refusals) {
      expect(await errorOf(await swap(session, form as Record<string, string>))).toEqual([400, error]);
    }
    const other = await logIn(sandbox);
    expect((await swap({ ...other, tokens: session.tokens }, target)).status).toBe(400);
    await refreshed(session);
    await refresh(session);
    expect(await errorOf(await swap(session, target))).toEqual([400, "invalid_request"]);
  });
});

it("revocation ends the grant of a refresh token", async ({ start }) => {
  const sandbox = await start({ revocation: true });
  const session = await logIn(sandbox);
  const { refresh_token: token = "" } = session.tokens;
  const { revocation_endpoint } = session.as;
  expect((await post(session, revocation_endpoint, { token })).status).toBe(200);
  expect(await errorOf(await refresh(session))).toEqual([400, "invalid_grant"]);
});

describe("devices", () => {
  const list = async (sandbox: Sandbox) => {
    const url = `${sandbox.baseUrl}/api/v1/device?pool_id=${sandbox.ids.pool}&pagination[page_size]=1000`;
    const response = await fetch(url, { headers: { authorization: `Bearer ${sandbox.apiToken}` } });
    return ((await response.json()) as { summaries: Record<string, unknown>[] }).summaries;
  };

  it("appear in the list after a login, and are seen again at a refresh", async ({ start }) => {
    const now = 1_790_000_000_000;
    const sandbox = await start({ now: () => now });
    const before = await list(sandbox);
    const session = await logIn(sandbox);
    const [device, ...more] = (await list(sandbox)).filter(({ id }) => !before.some((known) => known["id"] === id));
    expect(more).toEqual([]);
    const seen = {
      at: now / 1000,
      remote_ip: expect.stringMatching(/^192\.0\.2\.\d+$/),
      user_agent: expect.stringMatching(/^oauth4webapi\//),
    };
    expect(device).toMatchObject({
      pool_id: sandbox.ids.pool,
      title: "Test agent",
      session_type: "mcp",
      status: "active",
      dynamic_client_details: {
        auth_profile: "mcp",
        client_secret: "<CLIENT_SECRET>",
        pkce_required: true,
        redirect_uris: [REDIRECT_URI],
        title: "Test agent",
      },
      first_seen: seen,
      last_seen: seen,
    });
    sandbox.clock.advance(60_000);
    await refreshed(session);
    const later = (await list(sandbox)).find(({ id }) => id === device?.["id"]);
    expect(later).toMatchObject({ first_seen: { at: now / 1000 }, last_seen: { at: now / 1000 + 60 } });
    expect(await list(sandbox)).toHaveLength(before.length + 1);
  });

  it("are the same ones when the same client and account log in again", async ({ start }) => {
    const sandbox = await start();
    const { as, client } = await logIn(sandbox);
    const begun = await begin(as, client);
    await redeem(as, client, begun, await landing(begun.url));
    expect(sandbox.data.deviceCount(sandbox.ids.pool)).toBe(6);
  });

  it.for(["revoked", "deleted"] as const)("that are %s cannot refresh", async (end, { start }) => {
    const sandbox = await start();
    const before = (await list(sandbox)).map(({ id }) => id);
    const session = await logIn(sandbox);
    const id = String((await list(sandbox)).find((device) => !before.includes(device["id"]))?.["id"]);
    const { pool } = sandbox.ids;
    if (end === "revoked") sandbox.data.updateDevice(pool, id, { status: "revoked" });
    else sandbox.data.deleteDevice(pool, id);
    expect(await errorOf(await refresh(session))).toEqual([400, "invalid_grant"]);
    const begun = await begin(session.as, session.client);
    const tokens = await redeem(session.as, session.client, begun, await landing(begun.url));
    expect((await refreshed({ ...session, auth: authOf(session.client), tokens })).refresh_token).toBeDefined();
  });
});
