import { inspect } from "node:util";
import { describe, expect, expectTypeOf } from "vitest";
import type { AgentAuthError } from "../../../src/errors.js";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import type { StartedLogin } from "../../../src/oauth/login/web-app.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import type { LoginRemedy } from "../../../src/remedy.js";
import { memoryStore } from "../../../src/store/memory.js";
import { pendingError } from "../../helpers/captured.js";
import { startSharedScene } from "../login/support.js";
import { REDIRECT_URI, SECRET, visit } from "../login/web-support.js";
import { sceneTest as it } from "../support.js";

async function remedyOf(work: Promise<unknown>): Promise<LoginRemedy> {
  const { remedy } = await work.then(
    () => {
      throw new Error("no error");
    },
    (error: AgentAuthError) => error,
  );
  if (remedy?.action !== "login") throw new Error(`no login: ${JSON.stringify(remedy)}`);
  return remedy;
}

describe("the remedy of an error that needs a login", () => {
  it("begins the login for the scopes that it names", async ({ scene: { agent, mcp, login } }) => {
    const one = agent();
    await one.login(mcp.url, { scope: "read" });
    const remedy = await remedyOf(one.token(mcp.url, { scope: "write", login: false }));
    expect(remedy).toMatchObject({ action: "login", server: mcp.url, scope: "read write" });
    await remedy.start?.();
    expect(login.urls.map(({ searchParams }) => searchParams.get("scope"))).toEqual(["read", "read write"]);
    expect(await one.token(mcp.url, { scope: "write", login: false })).toMatchObject({ scope: "read write" });
  });

  it("asks a user again who declined", async () => {
    const { mcp, issuer, seat } = await startSharedScene(memoryStore);
    const { agent, login } = seat();
    issuer.callback = { code: null, error: "access_denied" };
    expect(await pendingError(agent.token(mcp.url))).toMatchObject({ code: "access_denied" });
    const remedy = await remedyOf(agent.token(mcp.url));
    expect(login.opened).toHaveLength(1);
    issuer.callback = {};
    await remedy.start?.();
    expect(login.opened).toHaveLength(2);
    expect((await agent.token(mcp.url)).value).toMatch(/^access-/);
  });

  it("stops when its signal fires", async ({ scene: { agent, mcp } }) => {
    const remedy = await remedyOf(agent().token(mcp.url, { login: false }));
    expect(await pendingError(remedy.start?.({ signal: AbortSignal.abort() }))).toMatchObject({ code: "aborted" });
  });

  it("has no function in JSON, in a copy or in a log", async ({ scene: { agent, mcp } }) => {
    const remedy = await remedyOf(agent().token(mcp.url, { login: false }));
    expect(remedy.start).toBeTypeOf("function");
    expect(Object.keys(remedy)).toEqual(["action", "server"]);
    expect(JSON.parse(JSON.stringify(remedy))).toEqual({ action: "login", server: mcp.url });
    expect(structuredClone(remedy)).toEqual({ action: "login", server: mcp.url });
    expect(inspect(remedy)).not.toContain("start");
  });

  it("begins nothing where the client has no way to log in", async ({ scene: { agent, mcp, store } }) => {
    const lasting = { ...store, shortLived: undefined };
    expect((await remedyOf(agent({ login: undefined, store: lasting }).token(mcp.url))).start).toBeUndefined();
    const client = { clientId: "id", clientSecret: "a-secret" };
    const machine = agent({ client, grant: { type: "client_credentials" } });
    const error = await machine.login(mcp.url).catch((thrown: AgentAuthError) => thrown);
    expect(error).toMatchObject({ remedy: expect.not.objectContaining({ start: expect.anything() }) });
  });
});

describe("the remedy of an error of a web app, with a redirectUri", () => {
  const FORMS: [string, (store: GrantStore) => Partial<AgentClientOptions>][] = [
    ["a store with short-lived records", (store) => ({ store })],
    ["a loginSecret", (store) => ({ store: { ...store, shortLived: undefined }, loginSecret: SECRET })],
  ];

  it.for(FORMS)("begins a login that the callback finishes, with %s", async ([name, options], { scene }) => {
    const { agent, mcp, store } = scene;
    const app = () => agent({ ...options(store), login: undefined });
    const { start } = await remedyOf(app().token(mcp.url, { scope: "read" }));
    if (start === undefined) throw new Error("the remedy cannot begin a login");
    const started = await start({ redirectUri: REDIRECT_URI, returnTo: "/inbox" });
    expect(started.saved === undefined).toBe(name !== "a loginSecret");
    expect(new URL(started.url).searchParams.get("scope")).toBe("read");
    const { request, saved, state, url } = await visit(started);
    expect(new URL(url).searchParams.get("state")).toBe(state);
    const { done } = await app().handleCallback(request, { saved });
    expect(done).toMatchObject({ server: mcp.url, returnTo: "https://app.example/inbox" });
    expect((await app().token(mcp.url, { scope: "read" })).value).toBe("access-as-1");
  });

  it("asks for the scopes that are given in place of its own", async ({ scene: { agent, mcp } }) => {
    const { start } = await remedyOf(agent({ login: undefined }).token(mcp.url, { scope: "read" }));
    const started = await start?.({ redirectUri: REDIRECT_URI, scope: "write" });
    expect(new URL(started?.url ?? "").searchParams.get("scope")).toBe("write");
  });

  it("does not use the login method of the client", async ({ scene: { agent, mcp, login } }) => {
    const { start } = await remedyOf(agent().token(mcp.url, { login: false }));
    expect((await start?.({ redirectUri: REDIRECT_URI }))?.cookie).toContain("__Host-");
    expect(login.opened).toEqual([]);
  });

  it("begins nothing without one, and says what to give", async ({ scene: { agent, mcp } }) => {
    const { start } = await remedyOf(agent({ login: undefined }).token(mcp.url));
    expect(await pendingError(start?.())).toMatchObject({
      code: "usage",
      message: expect.stringContaining("redirectUri is required"),
      hint: "call start({ redirectUri }), or set the option login of the client",
    });
    expect(await pendingError(start?.({ redirectUri: "http://app.example/" }))).toMatchObject({ code: "usage" });
  });

  it("has the type of what it begins", () => {
    type Start = NonNullable<LoginRemedy["start"]>;
    const inWebApp = (start: Start) => start({ redirectUri: REDIRECT_URI });
    const byMethod = (start: Start) => start({ signal: AbortSignal.abort() });
    expectTypeOf(inWebApp).returns.resolves.toEqualTypeOf<StartedLogin>();
    expectTypeOf(byMethod).returns.resolves.toBeUnknown();
  });
});
