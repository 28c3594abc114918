import { describe, expect } from "vitest";
import { systemClock } from "../../../src/http/deadline.js";
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
    await expect(reject()).rejects.toMatchObject({ code: "login_required", remedy });
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

  it("gets its first token where it has returned none", async ({ scene: { agent, mcp, login } }) => {
    const provider = agent().oauthClientProvider(mcp.url, { scope: "read" });
    await provider.prepareTokenRequest();
    expect(login.asked().get("scope")).toBe("read");
  });

  it("gives up a login that waits for the user when its signal fires", async ({ scene: { agent, mcp, login } }) => {
    const controller = new AbortController();
    login.before = () => controller.abort();
    const provider = agent().oauthClientProvider(mcp.url, { signal: controller.signal });
    await expect(provider.tokens()).rejects.toMatchObject({ code: "aborted" });
  });
});
