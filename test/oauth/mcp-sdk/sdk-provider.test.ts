import { describe, expect } from "vitest";
import { systemClock } from "../../../src/http/deadline.js";
import { pendingError } from "../../helpers/captured.js";
import { sceneTest as it } from "../support.js";

describe("a provider whose SDK reports a rejected token", () => {
  it("refreshes it where the challenge names scopes that the login requested in vain", async ({ scene }) => {
    const { agent, mcp, issuer, login } = scene;
    mcp.challenge += ', scope="read admin"';
    issuer.tokenAnswer = { scope: "read" };
    const provider = agent().oauthClientProvider(mcp.url);
    expect(await provider.tokens()).toMatchObject({ access_token: "access-as-1", scope: "read" });
    await provider.prepareTokenRequest("read admin");
    expect((await provider.tokens())?.access_token).toBe("access-as-2");
    expect(login.opened).toHaveLength(1);
  });

  it("logs in where a refreshed token is rejected too, and fails where another login would not help", async ({
    scene,
  }) => {
    const { agent, mcp, login } = scene;
    const provider = agent().authProvider(mcp.url);
    const reject = () => provider.onUnauthorized({ response: new Response(null, { status: 401 }) });
    expect(await provider.token()).toBe("access-as-1");
    await reject();
    expect([await provider.token(), login.opened.length]).toEqual(["access-as-2", 1]);
    await reject();
    expect([await provider.token(), login.opened.length]).toEqual(["access-as-3", 2]);
    const remedy = { action: "login", server: mcp.url };
    expect(await pendingError(reject())).toMatchObject({ code: "login_required", remedy });
    expect(login.opened).toHaveLength(2);
  });

  it("keeps a token that was refreshed while a request with the expired one was in flight", async ({ scene }) => {
    const { agent, mcp, login } = scene;
    let epoch = 1_000_000;
    const provider = agent({ clock: { ...systemClock, epoch: () => epoch } }).authProvider(mcp.url);
    const reject = () => provider.onUnauthorized({ response: new Response(null, { status: 401 }) });
    expect(await provider.token()).toBe("access-as-1");
    epoch += 2 * 3_600_000;
    expect(await provider.token()).toBe("access-as-2");
    await reject();
    expect(await provider.token()).toBe("access-as-2");
    await reject();
    expect([await provider.token(), login.opened.length]).toEqual(["access-as-3", 1]);
  });

  it("takes a rejection for a late one only if a request with the expired token may have been in flight", async ({
    scene,
  }) => {
    const { agent, mcp, login } = scene;
    let [epoch, now] = [1_000_000, 0];
    const clock = { ...systemClock, epoch: () => epoch, now: () => now };
    const provider = agent({ clock }).authProvider(mcp.url);
    await provider.token();
    epoch += 2 * 3_600_000;
    now += 6000;
    expect(await provider.token()).toBe("access-as-2");
    await provider.onUnauthorized({ response: new Response(null, { status: 401 }) });
    expect([await provider.token(), login.opened.length]).toEqual(["access-as-3", 1]);
  });

  it("logs in for the scopes that the challenge names", async ({ scene }) => {
    const { agent, mcp, login } = scene;
    const provider = agent().authProvider(mcp.url);
    await provider.token();
    const headers = { "www-authenticate": `${mcp.challenge}, error="insufficient_scope", scope="admin"` };
    await provider.onUnauthorized({ response: new Response(null, { status: 401, headers }) });
    expect(login.opened).toHaveLength(2);
    expect(login.requested(1).get("scope")?.split(" ")).toContain("admin");
  });

  it("gets its first token where it has returned none", async ({ scene: { agent, mcp, login } }) => {
    const provider = agent().oauthClientProvider(mcp.url, { scope: "read" });
    await provider.prepareTokenRequest();
    expect(login.requested().get("scope")).toBe("read");
  });

  it("gives up a login that waits for the user when its signal fires", async ({ scene: { agent, mcp, login } }) => {
    const controller = new AbortController();
    login.before = () => controller.abort();
    const provider = agent().oauthClientProvider(mcp.url, { signal: controller.signal });
    expect(await pendingError(provider.tokens())).toMatchObject({ code: "aborted" });
  });

  it("gives up a login after a rejection when its signal fires", async ({ scene: { agent, mcp, login } }) => {
    const controller = new AbortController();
    const provider = agent().authProvider(mcp.url, { signal: controller.signal });
    const reject = () => provider.onUnauthorized({ response: new Response(null, { status: 401 }) });
    await provider.token();
    await reject();
    await provider.token();
    login.before = () => controller.abort();
    expect(await pendingError(reject())).toMatchObject({ code: "aborted" });
  });

  it("asks the server for the challenge that the SDK has not passed on", async ({ scene: { agent, mcp } }) => {
    const provider = agent().oauthClientProvider(mcp.url);
    await provider.tokens();
    const requested = mcp.to("/mcp").length;
    await provider.prepareTokenRequest();
    expect(
      mcp
        .to("/mcp")
        .slice(requested)
        .map(({ headers }) => headers.authorization),
    ).toEqual([undefined]);
  });

  it("refreshes it again a minute after it was refreshed because of a rejection", async ({ scene }) => {
    const { agent, mcp, login } = scene;
    let now = 0;
    const provider = agent({ clock: { ...systemClock, now: () => now } }).authProvider(mcp.url);
    for (const token of ["access-as-1", "access-as-2", "access-as-3"]) {
      expect(await provider.token()).toBe(token);
      now += 61_000;
      await provider.onUnauthorized({ response: new Response(null, { status: 401 }) });
    }
    expect(login.opened).toHaveLength(1);
  });

  it("logs in at a server that required no login before", async ({ scene: { agent, mcp, login } }) => {
    const closed = { ...mcp.routes };
    delete mcp.routes[mcp.wellKnown];
    mcp.routes["/mcp"] = { json: { jsonrpc: "2.0", id: 1, result: { tools: [] } } };
    const provider = agent().oauthClientProvider(mcp.url);
    expect(await provider.tokens()).toBeUndefined();
    Object.assign(mcp.routes, closed);
    await provider.prepareTokenRequest();
    expect([(await provider.tokens())?.access_token, login.opened.length]).toEqual(["access-as-1", 1]);
  });

  it("offers the login that is missing as a function", async ({ scene: { agent, mcp } }) => {
    const provider = agent({ login: undefined }).oauthClientProvider(mcp.url);
    expect(await pendingError(provider.tokens())).toMatchObject({
      remedy: { action: "login", start: expect.any(Function) },
    });
  });
});
