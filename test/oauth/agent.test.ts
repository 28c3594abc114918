import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import type { GrantStore } from "../../src/oauth/model/grant-store.js";
import { pendingError } from "../helpers/captured.js";
import { type Scene, startScene } from "../helpers/issuer.js";
import { asHint, loginAt } from "../helpers/remedy.js";

const SIGNAL = new AbortController().signal;

const toMcp = ({ log }: Scene) => log.filter((line) => line.startsWith("mcp "));

describe("a first token", () => {
  it("is a text that no header can carry, until it is read by its value", async () => {
    const { agent, mcp } = await startScene();
    const token = await agent().token(mcp.url);
    expect(() => new Headers({ authorization: `Bearer ${token}` })).toThrow(TypeError);
    expect(new Headers({ authorization: `Bearer ${token.value}` }).get("authorization")).toBe("Bearer access-as-1");
  });

  it("[1] is found by challenge, resource metadata and server metadata, and authorized by the user (2025-06-18)", async () => {
    const scene = await startScene();
    const { agent, mcp, issuer, log, login } = scene;
    const token = await agent().token(mcp.url);
    expect(token).toMatchObject({ value: "access-as-1", server: mcp.url, resource: mcp.url, issuer: issuer.issuer });
    expect(log).toEqual([
      "mcp POST /mcp",
      `mcp GET ${mcp.wellKnown}`,
      expect.stringMatching(/^as GET .*oauth-authorization-server/),
      expect.stringMatching(/^as GET .*oauth-authorization-server/),
      "person open",
      "as POST /pool/register",
      "person authorize",
      "as GET /pool/authorize",
      "as POST /pool/token",
      "person close ok",
    ]);
    expect(login.opened).toMatchObject([{ resource: mcp.url, issuer: issuer.issuer }]);
  });

  it("is kept, and given from the store until it ends", async () => {
    const { agent, mcp, log, clock } = await startScene();
    await agent().token(mcp.url);
    log.length = 0;
    await clock.sleep(3_000_000, SIGNAL);
    expect((await agent().token(mcp.url)).value).toBe("access-as-1");
    expect(log).toEqual([]);
  });

  it("leaves the MCP server in peace between its metadata and the finished login", async () => {
    const scene = await startScene();
    let during: string[] = [];
    scene.login.before = () => {
      during = toMcp(scene);
    };
    await scene.agent().fetch(scene.mcp.url);
    expect(during).toEqual(["mcp POST /mcp", `mcp GET ${scene.mcp.wellKnown}`]);
    expect(toMcp(scene)).toEqual([...during, "mcp GET /mcp"]);
    expect(scene.log.at(-1)).toBe("mcp GET /mcp");
    expect(scene.mcp.tokens()).toEqual(["Bearer access-as-1"]);
  });

  it("leaves it in peace also where many ask at once", async () => {
    const scene = await startScene();
    const agent = scene.agent();
    let during: string[] = [];
    scene.login.before = () => {
      during = toMcp(scene);
    };
    await Promise.all(Array.from({ length: 20 }, () => agent.fetch(scene.mcp.url)));
    expect(during).toEqual(["mcp POST /mcp", `mcp GET ${scene.mcp.wellKnown}`]);
    expect(scene.login.opened).toHaveLength(1);
    expect(toMcp(scene)).toHaveLength(22);
  });

  it("is requested once where many ask at once", async () => {
    const { agent, mcp, login } = await startScene();
    const one = agent();
    const tokens = await Promise.all(Array.from({ length: 50 }, () => one.token(mcp.url)));
    expect(new Set(tokens.map(({ value }) => value)).size).toBe(1);
    expect(login.opened).toHaveLength(1);
  });

  it("needs the user: without a way to ask, the error names the command to run", async () => {
    const { agent, mcp, log } = await startScene();
    for (const work of [
      () => agent({ login: undefined }).token(mcp.url),
      () => agent({ login: undefined }).fetch(mcp.url),
      () => agent().token(mcp.url, { login: false }),
    ]) {
      expect(await pendingError(work())).toMatchObject({
        code: "login_required",
        class: "auth",
        remedy: loginAt(mcp.url),
      });
    }
    expect(await pendingError(agent({ login: undefined }).login(mcp.url))).toMatchObject({ code: "usage" });
    // fetch finds out whether the server requires a login at all.
    expect(log).toEqual(["mcp POST /mcp"]);
  });

  it("names a command after which the token is what was requested: with its scopes, and with or without a key", async () => {
    const { agent, mcp } = await startScene();
    mcp.metadata["scopes_supported"] = ["a"];
    const hint = (flags: string) => ({ code: "login_required", remedy: asHint(`agentauth login ${mcp.url} ${flags}`) });
    const withoutLogin = (dpop?: "required" | "off") => agent({ login: undefined, dpop });
    expect(await pendingError(withoutLogin().token(mcp.url, { scope: "b c" }))).toMatchObject(hint("--scope 'b c'"));
    expect(await pendingError(withoutLogin("required").token(mcp.url))).toMatchObject(hint("--dpop required"));
    await agent().token(mcp.url);
    expect(await pendingError(withoutLogin().token(mcp.url, { scope: "b" }))).toMatchObject(hint("--scope 'a b'"));
    expect(await pendingError(withoutLogin("required").token(mcp.url))).toMatchObject(hint("--dpop required"));
    for (const scope of ["$(id)", "`id`", "a;id", "a'b", "--help"]) {
      const bare = { remedy: asHint(`agentauth login ${mcp.url}`) };
      expect(await pendingError(withoutLogin().token(mcp.url, { scope }))).toMatchObject(bare);
    }
  });

  it("asks for the scopes that are wanted and lacking, beside those of before", async () => {
    const { agent, mcp, login } = await startScene();
    mcp.metadata["scopes_supported"] = ["a"];
    await agent().token(mcp.url);
    await agent().token(mcp.url, { scope: "a" });
    expect(login.opened).toHaveLength(1);
    expect((await agent().token(mcp.url, { scope: "b c" })).scope).toBe("a b c");
    expect(login.requested(1).get("scope")).toBe("a b c");
    await agent().token(mcp.url, { scope: "c" });
    expect(login.opened).toHaveLength(2);
  });

  it("[23] asks for the scopes of the challenge, else for those of the metadata (2025-11-25)", async () => {
    const { agent, mcp, login } = await startScene();
    mcp.metadata["scopes_supported"] = ["a", "b"];
    await agent().login(mcp.url);
    mcp.challenge = `${mcp.challenge}, scope="c d"`;
    await agent().login(mcp.url);
    await agent().login(mcp.url, { scope: "mine" });
    expect(login.urls.map((url) => url.searchParams.get("scope"))).toEqual(["a b", "c d", "mine"]);
  });

  it("[35] is not expected to come with a refresh token: without one the user is asked again when it expires (2026-07-28)", async () => {
    const { agent, mcp, issuer, login, clock } = await startScene();
    issuer.tokenAnswer = { refresh_token: undefined };
    await agent().token(mcp.url);
    await clock.sleep(3_600_000, SIGNAL);
    expect(await pendingError(agent().token(mcp.url, { login: false }))).toMatchObject({
      code: "login_required",
      message: expect.stringContaining("there is no refresh token"),
    });
    expect((await agent().token(mcp.url)).value).toBe("access-as-2");
    expect(login.opened).toHaveLength(2);
  });

  it("says that there is no refresh token where a refresh is forced, and not that the token has expired", async () => {
    const { agent, mcp, issuer } = await startScene();
    issuer.tokenAnswer = { refresh_token: undefined };
    await agent().token(mcp.url);
    const work = agent().token(mcp.url, { forceRefresh: true, login: false });
    const error = (await pendingError(work)) as AgentAuthError;
    expect(error).toMatchObject({ code: "login_required", remedy: loginAt(mcp.url) });
    expect(error.message).toContain("cannot be refreshed, because the issuer returned no refresh token");
    expect(error.message).not.toContain("expired");
  });
});

describe("a login", () => {
  it("gets its outcome exactly once, after the grant was stored", async () => {
    const { agent, mcp, login, store } = await startScene();
    const order: string[] = [];
    const watched: GrantStore = {
      ...store,
      async reserve(key) {
        const room = await store.reserve(key);
        return {
          ...room,
          async save(grant, expected) {
            const done = await room.save(grant, expected);
            order.push("saved");
            return done;
          },
        };
      },
    };
    const open = login.open.bind(login);
    login.open = async (request) => {
      const session = await open(request);
      return { ...session, close: async (outcome) => void order.push(outcome.ok ? "ok" : "failed") };
    };
    await agent({ store: watched }).login(mcp.url);
    expect(order).toEqual(["saved", "ok"]);
  });

  it("gets a failure with its error", async () => {
    const { agent, mcp, issuer, login } = await startScene();
    issuer.routes["/pool/token"] = { status: 400, json: { error: "invalid_grant" } };
    const error = await agent()
      .login(mcp.url)
      .catch((thrown: unknown) => thrown);
    expect(login.outcomes).toEqual([{ ok: false, error }]);
  });

  it("that was not kept is none", async () => {
    const { agent, mcp, login, store } = await startScene();
    const forgetful: GrantStore = { ...store, read: async () => undefined, save: async () => true };
    expect(await pendingError(agent({ store: forgetful }).login(mcp.url))).toMatchObject({
      code: "store_failed",
      class: "store",
    });
    expect(login.outcomes).toMatchObject([{ ok: false }]);
  });

  it("does not ask the user where the store cannot be read", async () => {
    const { agent, mcp, log, store } = await startScene();
    const broken: GrantStore = {
      ...store,
      read: async () => {
        throw new AgentAuthError("store_failed", "broken", { class: "store" });
      },
    };
    expect(await pendingError(agent({ store: broken }).login(mcp.url))).toMatchObject({ class: "store" });
    expect(log).toEqual([]);
  });

  it("replaces a grant that is there, also one that is over, and counts on", async () => {
    const { agent, mcp, store } = await startScene();
    const key = { profile: "default", server: mcp.url };
    await agent().login(mcp.url);
    const first = await store.read(key);
    if (first) await store.save({ ...first, generation: 7, retired: { at: 1, reason: "x" } }, first.generation);
    await agent().login(mcp.url);
    expect(await store.read(key)).toMatchObject({ generation: 8, retired: undefined });
  });

  it("ends when the caller leaves, and closes what it opened", async () => {
    const { agent, mcp, login } = await startScene();
    const controller = new AbortController();
    login.before = () => controller.abort();
    expect(await pendingError(agent().login(mcp.url, { signal: controller.signal }))).toMatchObject({
      code: "aborted",
    });
    expect(login.outcomes).toMatchObject([{ ok: false }]);
  });

  it("works in two steps", async () => {
    const { agent, mcp, login, store } = await startScene();
    const prepared = await agent().beginLogin(mcp.url, login.redirectUri);
    expect(await store.list()).toEqual([]);
    const session = await login.open({ resource: mcp.url, issuer: prepared.issuer.issuer, signal: SIGNAL });
    expect((await agent().finishLogin(prepared, session)).value).toBe("access-as-1");
    expect(await store.list()).toHaveLength(1);
  });
});

describe("what belongs to whom", () => {
  it("[33] is a token for its own server alone (2025-06-18)", async () => {
    const scene = await startScene();
    const other = await startScene();
    const agent = scene.agent();
    await agent.fetch(scene.mcp.url);
    await agent.fetch(other.mcp.url);
    expect(scene.mcp.tokens()).toEqual(["Bearer access-as-1"]);
    expect(other.issuer.to("/pool/token")).toHaveLength(1);
    expect(other.issuer.form("/pool/token").get("resource")).toBe(other.mcp.url);
    const grants = await scene.store.list();
    expect(new Map(grants.map(({ server, issuer }) => [server, issuer]))).toEqual(
      new Map([
        [scene.mcp.url, scene.issuer.issuer],
        [other.mcp.url, other.issuer.issuer],
      ]),
    );
  });

  it("keeps profiles apart", async () => {
    const { agent, mcp, store } = await startScene();
    await agent({ profile: "a" }).login(mcp.url);
    expect(await pendingError(agent({ profile: "b", login: undefined }).token(mcp.url))).toMatchObject({
      code: "login_required",
    });
    await agent({ profile: "b" }).login(mcp.url);
    expect((await agent({ profile: "a" }).token(mcp.url)).value).toBe("access-as-1");
    expect((await agent({ profile: "b" }).token(mcp.url)).value).toBe("access-as-2");
    expect(await store.list()).toHaveLength(2);
  });

  it("[21] finds a grant by any spelling of its server's address (2025-06-18)", async () => {
    const { agent, mcp, login } = await startScene();
    await agent().token(mcp.url);
    await agent().token(mcp.url.replace("http://", "HTTP://"));
    await agent().token(`${mcp.url}#part`);
    expect(login.opened).toHaveLength(1);
  });

  it("refreshes at the issuer of the grant, wherever the server points by now", async () => {
    const scene = await startScene();
    const other = await scene.another("other");
    await scene.agent().token(scene.mcp.url);
    scene.mcp.metadata["authorization_servers"] = [other.issuer];
    await scene.clock.sleep(3_600_000, SIGNAL);
    expect((await scene.agent().token(scene.mcp.url)).value).toBe("access-as-2");
    expect(other.requests).toEqual([]);
  });
});

describe("status", () => {
  it("reports what is stored and its state", async () => {
    const { agent, mcp, issuer, clock, store } = await startScene();
    expect(await agent().status()).toEqual([]);
    expect(await agent().status(mcp.url)).toEqual([]);
    mcp.metadata["scopes_supported"] = ["a"];
    const { expiresAt } = await agent().login(mcp.url);
    const valid = {
      profile: "default",
      server: mcp.url,
      account: null,
      grant: "login",
      token_type: "Bearer",
      resource: mcp.url,
      issuer: issuer.issuer,
      client_id: "client-as-1",
      scope: "a",
      logged_in_at: expect.stringMatching(/Z$/),
      expires_at: expiresAt?.toISOString(),
      state: "valid",
      refreshable: true,
      refresh_lost_at: null,
      reason: null,
      exceptions: [],
      stored_in: "memory",
    };
    expect(await agent().status(mcp.url)).toEqual([valid]);
    await clock.sleep(3_600_000, SIGNAL);
    expect(await agent().status()).toEqual([{ ...valid, state: "expired" }]);
    issuer.routes["/pool/token"] = { status: 400, json: { error: "invalid_grant" } };
    await expect(agent({ login: undefined }).token(mcp.url)).rejects.toBeDefined();
    expect(await agent().status()).toMatchObject([
      { state: "expired", refreshable: false, reason: expect.stringContaining("invalid_grant") },
    ]);
    expect(await store.list()).toHaveLength(1);
  });

  it("reports its profile unless asked for all", async () => {
    const { agent, mcp } = await startScene();
    await agent({ profile: "a" }).login(mcp.url);
    expect(await agent().status()).toEqual([]);
    expect(await agent().status(undefined, { all: true })).toHaveLength(1);
  });
});

describe("discover", () => {
  it("neither logs in nor registers", async () => {
    const { agent, mcp, issuer, login, log } = await startScene();
    const { found, error } = await agent().discover(mcp.url);
    expect(found?.issuer.issuer).toBe(issuer.issuer);
    expect(error).toBeUndefined();
    expect(login.opened).toEqual([]);
    expect(log.filter((line) => line.includes("POST"))).toEqual(["mcp POST /mcp"]);
  });

  it("refuses an address that is none", async () => {
    const { agent } = await startScene();
    await expect(agent().discover("mcp.example")).rejects.toThrow(TypeError);
  });

  it("is heard of in a login too", async () => {
    const { agent, mcp } = await startScene();
    const steps: string[] = [];
    await agent({ onTrace: ({ step }) => steps.push(step) }).login(mcp.url);
    expect(new Set(steps)).toEqual(new Set(["challenge", "resource metadata", "server metadata", "registration"]));
  });
});
