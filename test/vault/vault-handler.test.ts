import { describe, expect, it } from "vitest";
import { grantStore } from "../../src/store/driver/grant-store.js";
import { memoryDriver } from "../../src/store/driver/memory-driver.js";
import { createVaultClient } from "../../src/vault/vault-client.js";
import { vaultHandler } from "../../src/vault/vault-handler.js";
import { TestLogin } from "../helpers/login.js";
import { consent, cookieHeader, SECRET } from "../oauth/login/web-support.js";
import { BASE_URL, ORIGIN, OWN_PAGE, problemOf, startVault } from "./support.js";

describe("the vault", () => {
  it.each([undefined, SECRET])("connects a server, lists it and disconnects it, with the secret %s", async (secret) => {
    const { send, post, connect, mcp, issuer } = await startVault({}, { loginSecret: secret });
    expect(await (await send("/connections")).json()).toEqual({ items: [], cursor: null });
    const done = await connect({}, { return_to: "/settings?a=1" });
    expect([done.status, done.headers.get("location")]).toEqual([303, `${ORIGIN}/settings?a=1`]);
    expect(done.headers.getSetCookie().every((cookie) => cookie.includes("Max-Age=0"))).toBe(true);
    const listed = await (await send("/connections")).json();
    expect(listed).toMatchObject({
      items: [{ server: mcp.url, account: null, issuer: issuer.issuer, state: "valid", refreshable: true }],
      cursor: null,
    });
    expect(await (await post("/disconnect", { server: mcp.url })).json()).toEqual({ revoked: true });
    expect(await (await send("/connections")).json()).toEqual({ items: [], cursor: null });
    expect(issuer.to("/pool/revoke").length).toBeGreaterThan(0);
    expect(await problemOf(await post("/disconnect", { server: mcp.url }))).toEqual([404, "not_found"]);
  });

  it("serves plain forms with the token of the browser, and sends the browser on", async () => {
    const { vault, send, mcp } = await startVault({ returnTo: "/connections" });
    const page = new Request(`${ORIGIN}/`);
    const { token, cookie = "" } = vault.formToken(page);
    expect(cookie).toMatch(/^__Host-agentauth-form=[\w-]{36}; Path=\/; Max-Age=86400; Secure; HttpOnly; SameSite=Lax$/);
    const jar = cookieHeader(cookie);
    expect(vault.formToken(new Request(page, { headers: { cookie: jar } }))).toEqual({ token, cookie: undefined });
    const submit = (path: string, fields: Record<string, string>) =>
      // A page without a referrer has no origin either.
      send(path, {
        method: "POST",
        headers: { origin: "null", cookie: jar },
        body: new URLSearchParams({ form_token: token, ...fields }),
      });
    const started = await submit("/connect", { server: mcp.url, return_to: "", scope: "" });
    expect(started.status).toBe(303);
    const { search } = await consent(started.headers.get("location") ?? "");
    const done = await send(`/callback${search}`, {
      headers: { cookie: cookieHeader(...started.headers.getSetCookie()) },
    });
    expect([done.status, done.headers.get("location")]).toEqual([303, `${ORIGIN}/connections`]);
    const ended = await submit("/disconnect", { server: mcp.url, return_to: "/bye" });
    expect([ended.status, ended.headers.get("location")]).toEqual([303, `${ORIGIN}/bye`]);
    expect(await (await send("/connections")).json()).toMatchObject({ items: [] });
  });

  it("sends a browser whose login failed to the page with the code alone", async () => {
    const { connect, issuer, onError, vault, send, mcp } = await startVault({ returnTo: "/page?tab=2" });
    issuer.callback = { error: "access_denied", error_description: "PLANTED", code: null };
    const failed = await connect();
    expect([failed.status, failed.headers.get("location")]).toEqual([303, `${ORIGIN}/page?tab=2&error=access_denied`]);
    expect(onError).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ code: "access_denied" }));
    const { url: server } = mcp;
    await mcp.close();
    const { token, cookie = "" } = vault.formToken(new Request(ORIGIN));
    const body = new URLSearchParams({ form_token: token, server });
    const form = await send("/connect", { method: "POST", headers: { cookie: cookieHeader(cookie) }, body });
    expect(form.headers.get("location")).toMatch(/^https:\/\/app\.example\/page\?tab=2&error=[a-z_]+$/);
  });

  it("lists in pages, by state and by server", async () => {
    const { send, connect, mcp, post } = await startVault();
    await connect();
    const items = async (query: string) =>
      ((await (await send(`/connections?${query}`)).json()) as { items: object[] }).items.length;
    expect(await items(`server=${encodeURIComponent(mcp.url)}&limit=1&state=valid`)).toBe(1);
    expect(await items(`server=${encodeURIComponent(`${mcp.url}#fragment`)}`)).toBe(1);
    expect(await items("server=https://other.example/mcp")).toBe(0);
    expect(await items("state=needs_login")).toBe(0);
    for (const query of ["limit=0", "limit=x", "limit=1001", "state=odd", "limit=", "state="])
      expect(await problemOf(await send(`/connections?${query}`)), query).toEqual([400, "usage"]);
    expect((await post("/disconnect", { server: mcp.url, account: "another" })).status).toBe(404);
    expect((await post("/disconnect", { server: mcp.url, account: null })).status).toBe(200);
  });

  it("keeps the users of tenants apart", async () => {
    const { send, connect } = await startVault({}, { store: grantStore(memoryDriver(), { seal: "none" }) });
    const count = async (headers: Record<string, string>) =>
      ((await (await send("/connections", { headers })).json()) as { items: object[] }).items.length;
    await connect({ tenant: "one", user: "ann" });
    expect(await count({ tenant: "one", user: "ann" })).toBe(1);
    expect(await count({ tenant: "two", user: "ann" })).toBe(0);
    expect(await count({ tenant: "one", user: "bob" })).toBe(0);
  });

  it("requests the scopes that it offers", async () => {
    const { post, mcp } = await startVault({ scopes: ["tools", "reports"] });
    const started = await post("/connect", { server: mcp.url, scope: "reports tools" });
    const { url } = (await started.json()) as { url: string };
    expect(new URL(url).searchParams.get("scope")).toBe("reports tools");
    expect((await post("/connect", { server: mcp.url, scope: "reports admin" })).status).toBe(404);
  });

  it("answers with a token where that is switched on, and refreshes it", async () => {
    const { post, connect, mcp, clock, issuer } = await startVault({ token: true });
    expect(await problemOf(await post("/token", { server: mcp.url }))).toEqual([409, "login_required"]);
    await connect();
    const first = (await (await post("/token", { server: mcp.url })).json()) as Record<string, unknown>;
    expect(first).toMatchObject({ access_token: "access-as-1", token_type: "Bearer", scope: null });
    await clock.sleep(3_600_000, new AbortController().signal);
    expect(await (await post("/token", { server: mcp.url })).json()).toMatchObject({ access_token: "access-as-2" });
    issuer.routes["/pool/token"] = { status: 400, json: { error: "invalid_grant" } };
    await clock.sleep(3_600_000, new AbortController().signal);
    expect(await problemOf(await post("/token", { server: mcp.url }))).toEqual([409, "login_required"]);
    expect(await problemOf(await post("/token", { server: "https://other.example/mcp" }))).toEqual([404, "not_found"]);
  });

  it("begins no login for a token, whatever login method the client has", async () => {
    const log: string[] = [];
    const { post, mcp } = await startVault({ token: true }, { login: new TestLogin(log) });
    expect(await problemOf(await post("/token", { server: mcp.url }))).toEqual([409, "login_required"]);
    expect(log).toEqual([]);
  });

  it("says 503 for an issuer that is down, and 500 for its own mistakes", async () => {
    const { post, mcp, connect, issuer, clock } = await startVault({ token: true });
    await connect();
    issuer.routes["/pool/token"] = { status: 503, text: "" };
    await clock.sleep(3_600_000, new AbortController().signal);
    expect((await post("/token", { server: mcp.url })).status).toBe(503);
    const broken = await startVault({
      authenticate: () => {
        throw new RangeError("PLANTED");
      },
    });
    expect(await problemOf(await broken.send("/connections"))).toEqual([500, "internal_error"]);
    expect(broken.onError).toHaveBeenCalledOnce();
    // The store of the scene has no tenants.
    const wrong = await startVault({ authenticate: () => ({ tenant: "one", user: "ann" }) });
    expect(await problemOf(await wrong.send("/connections"))).toEqual([500, "internal_error"]);
  });

  it("is mounted at any path, behind any host", async () => {
    const { agent, mcp } = await startVault();
    const vault = vaultHandler(agent(), {
      authenticate: async () => ({ user: "ann" }),
      baseUrl: `${ORIGIN}/`,
      servers: [mcp.url],
    });
    expect((await vault.fetch(new Request("http://10.0.0.1:8080/connections?limit=1"))).status).toBe(200);
    for (const path of ["/", "/vault/connections", "/connections/", "/connections/x", "//connections", "/constructor"])
      expect((await vault.fetch(new Request(`${ORIGIN}${path}`))).status, path).toBe(404);
    expect((await vault.fetch(new Request(`${ORIGIN}/connections`, { method: "HEAD" }))).status).toBe(405);
  });

  it("refuses options that are wrong", async () => {
    const { agent } = await startVault();
    const of = (options: object) => () =>
      vaultHandler(agent(), { authenticate: () => undefined, baseUrl: BASE_URL, servers: [], ...options });
    expect(of({ authenticate: undefined })).toThrow(/^authenticate is required/);
    expect(of({ baseUrl: "http://app.example/vault" })).toThrow(/must be an https address/);
    expect(of({ baseUrl: `${BASE_URL}?a=1` })).toThrow(/must have no query/);
    expect(of({ servers: ["mcp.example"] })).toThrow(/MCP server's address/);
    expect(of({ returnTo: "https://evil.example/" })).toThrow(/returnTo/);
    expect(of({ requestsPerMinute: 0 })).toThrow(/requestsPerMinute must be 1 or more, not 0/);
    expect(of({ requestsPerMinute: 1 })).not.toThrow();
    expect(of({ token: true, tokens: true })).toThrow(/no option "tokens"; did you mean token\?/);
  });

  it("has a typed client", async () => {
    const { vault, mcp } = await startVault();
    const client = createVaultClient({
      baseUrl: BASE_URL,
      headers: { user: "ann", ...OWN_PAGE },
      fetch: (request) => vault.fetch(request),
    });
    const { data, response } = await client.POST("/connect", { body: { server: mcp.url } });
    expect(new URL(data?.url ?? "").searchParams.get("redirect_uri")).toBe(`${BASE_URL}/callback`);
    const { search } = await consent(data?.url ?? "");
    const cookie = cookieHeader(...response.headers.getSetCookie());
    await vault.fetch(new Request(`${BASE_URL}/callback${search}`, { headers: { user: "ann", cookie } }));
    const listed = await client.GET("/connections", { params: { query: { limit: 1, state: "valid" } } });
    expect(listed.data?.items.map(({ server, state }) => [server, state])).toEqual([[mcp.url, "valid"]]);
    const { error } = await client.POST("/disconnect", { body: { server: "https://other.example/" } });
    expect(error?.code).toBe("not_found");
  });
});
