import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import { systemClock } from "../../src/http/deadline.js";
import { describeLogin, listExceptions } from "../../src/oauth/agent.js";
import type { GrantStore } from "../../src/oauth/model/grant-store.js";
import { Secret } from "../../src/redact.js";
import { grantStore } from "../../src/store/driver/grant-store.js";
import { memoryDriver } from "../../src/store/driver/memory-driver.js";
import { memoryStore } from "../../src/store/memory.js";
import { pendingError } from "../helpers/captured.js";
import { madeGrant } from "../helpers/grant.js";
import { type Scene, startScene } from "../helpers/issuer.js";
import { asHint, loginAt } from "../helpers/remedy.js";
import { until } from "../helpers/server.js";
import { HOUR, holdTokens, TOKEN } from "./grant/support.js";

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

  it("[35] is not expected to come with a refresh token: without one a login is required when it expires (2026-07-28)", async () => {
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

  it("reports its profile unless all are requested", async () => {
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

it("the client of a user holds a method once it was read, so that many users fit into memory", async () => {
  const { agent } = await startScene();
  const ann = agent({ store: grantStore(memoryDriver(), { seal: "none" }) }).for({ tenant: "acme", user: "ann" });
  expect(Object.getOwnPropertyNames(ann)).toEqual([]);
  const { token } = ann;
  expect([Object.getOwnPropertyNames(ann), ann.token]).toEqual([["token"], token]);
});

it("close lets refreshes in flight end, begins no other one, and returns tokens that are valid", async () => {
  const { mcp, issuer, agent, clock } = await startScene();
  const store = grantStore(memoryDriver(), { seal: "none" });
  const { sleep } = systemClock;
  const agents = agent({ store, clock: { now: () => clock.now(), epoch: () => clock.epoch(), sleep } });
  const [ann, bob, cid] = ["ann", "bob", "cid"].map((user) => agents.for({ tenant: "acme", user }));
  for (const one of [ann, bob]) await one?.login(mcp.url);
  await clock.sleep(HOUR, SIGNAL);
  await cid?.login(mcp.url);
  const answer = holdTokens(issuer);
  const before = issuer.to(TOKEN).length;
  const refreshed = ann?.token(mcp.url);
  await until(() => issuer.to(TOKEN).length > before);
  const closed = agents.close({ graceMs: 5000 });
  expect(await pendingError(bob?.token(mcp.url, { login: false }))).toMatchObject({ code: "aborted" });
  expect((await cid?.token(mcp.url))?.value).toMatch(/^access-as-/);
  expect(await agents.health()).toMatchObject({ ready: false, errors: ["the client is closed"] });
  answer();
  expect((await refreshed)?.value).toBe(`access-as-${before + 1}`);
  expect(await closed).toBe(true);
  expect(issuer.to(TOKEN)).toHaveLength(before + 1);
});

it("close ends after its grace where an issuer does not answer", async () => {
  const { mcp, issuer, agent, clock } = await startScene();
  const one = agent();
  await one.login(mcp.url);
  await clock.sleep(HOUR, SIGNAL);
  const answer = holdTokens(issuer);
  const before = issuer.to(TOKEN).length;
  const refreshed = one.token(mcp.url);
  await until(() => issuer.to(TOKEN).length > before);
  expect(await one.close({ graceMs: 10 })).toBe(false);
  answer();
  await refreshed;
  await expect(one.for({ user: "ann" }).close()).rejects.toThrow(
    new TypeError("a client of one user is not closed: close the one that it comes from"),
  );
});

it("health says whether the store can be used", async () => {
  const { agent } = await startScene();
  const well = { ready: true, errors: [], risks: [] };
  expect(await agent().health()).toEqual({ ...well, storedIn: "memory" });
  const driver = memoryDriver();
  const health = { clockAheadMs: 0, facts: {}, risks: ["it has no replica"], errors: ["it evicts logins"] };
  const unsafe = grantStore({ ...driver, health: async () => health }, { seal: "none" });
  const reported = { ready: false, errors: ["it evicts logins"], risks: ["it has no replica"] };
  expect(await agent({ store: unsafe }).health()).toMatchObject(reported);
  expect(await agent({ store: unsafe }).for({ tenant: "acme", user: "ann" }).health()).toMatchObject(reported);
  const down = memoryStore();
  down.read = async () => {
    throw new AgentAuthError("store_unavailable", "no answer", { class: "unavailable" });
  };
  expect(await agent({ store: down }).health()).toMatchObject({ ready: false, errors: ["no answer"] });
});

it("lists what a login was made with, with values", () => {
  expect(listExceptions(madeGrant())).toEqual([]);
  const overrides = ["legacyDiscovery", "allowPrivateNetwork", "resource"];
  expect(listExceptions(madeGrant({ overrides, resource: "none", acceptedTokenType: "user" }))).toEqual([
    { option: "legacyDiscovery" },
    { option: "allowPrivateNetwork" },
    { option: "resource", value: "none" },
    { option: "acceptTokenType", value: "user" },
  ]);
  const grant = madeGrant();
  expect(listExceptions({ ...grant, namedIssuer: "https://named.example" })).toEqual([
    { option: "issuer", value: grant.issuer },
  ]);
});

it("lists the parameters of a login, each as it is sent", () => {
  const authorizationParams = { access_type: "offline", prompt: "" };
  expect(listExceptions(madeGrant({ authorizationParams }))).toEqual([
    { option: "authorizationParams", value: "access_type=offline" },
    { option: "authorizationParams", value: "prompt=" },
  ]);
});

const NOW = 1_800_000_000_000;

const { tokens } = madeGrant();

it("describes a login without its secrets", () => {
  expect(describeLogin(madeGrant({ account: "ann", proofKey: new Secret("key") }), NOW, "memory")).toEqual({
    profile: "default",
    server: "https://mcp.example/mcp",
    account: "ann",
    grant: "login",
    token_type: "DPoP",
    resource: "https://mcp.example/mcp",
    issuer: "https://as.example/pool",
    exceptions: [],
    client_id: "client-1",
    scope: "tools",
    expires_at: "2033-05-18T03:33:20.000Z",
    logged_in_at: "2023-11-14T22:13:20.000Z",
    state: "valid",
    refreshable: true,
    refresh_lost_at: null,
    reason: null,
    stored_in: "memory",
  });
});

it.each([
  [{}, { grant: "login", token_type: "Bearer", account: null, refreshable: true }],
  [{ account: "grant:idp" }, { grant: "idp" }],
  [{ account: "grant:client_credentials:c" }, { grant: "client-credentials" }],
  [{ account: "grant:id_jag:c" }, { grant: "id-jag" }],
  [{ tokens: { ...tokens, refreshToken: undefined } }, { refreshable: false }],
  [
    { account: "grant:jwt_bearer:w", tokens: { ...tokens, refreshToken: undefined } },
    { grant: "jwt-bearer", refreshable: true },
  ],
  [{ tokens: { ...tokens, expiresAt: NOW } }, { state: "expired", refreshable: true }],
  [
    { tokens: { ...tokens, expiresAt: undefined, scope: undefined } },
    { state: "valid", expires_at: null, scope: null },
  ],
  [{ retired: { at: 1, reason: "gone" } }, { state: "expired", refreshable: false, reason: "gone" }],
  [
    { lostRefresh: { at: 0, code: "timeout", generation: 1 } },
    { state: "valid", refresh_lost_at: "1970-01-01T00:00:00.000Z" },
  ],
])("describes %j", (over, expected) => {
  expect(describeLogin(madeGrant(over), NOW, "memory")).toMatchObject(expected);
});

it("asks a store that does not say how it is for a login that no server has", async () => {
  const { agent } = await startScene();
  const store = memoryStore();
  const reads: unknown[] = [];
  store.read = async (key) => void reads.push(key);
  delete (store as { health?: unknown }).health;
  expect(await agent({ store }).health()).toMatchObject({ ready: true });
  expect(reads).toEqual([{ profile: "health", server: "https://health.invalid/" }]);
  for (const error of [new Error("a bug"), new AgentAuthError("aborted", "m", { class: "aborted" })]) {
    store.read = () => Promise.reject(error);
    await expect(agent({ store }).health()).rejects.toBe(error);
  }
});

it("lists the logins of one account where the client is for one, and says what it cannot read", async () => {
  const { agent, mcp } = await startScene();
  for (const loginHint of ["ann", "bob"]) await agent({ loginHint }).login(mcp.url);
  const accountsOf = async (loginHint?: string, url?: string) =>
    (await agent({ loginHint }).status(url)).map(({ account }) => account);
  expect(await accountsOf()).toEqual(["ann", "bob"]);
  expect(await accountsOf("ann")).toEqual(["ann", "bob"]);
  expect(await accountsOf("ann", mcp.url)).toEqual(["ann"]);
  expect(await accountsOf(undefined, mcp.url)).toEqual(["ann", "bob"]);
  await expect(agent().for({ user: "ann" }).status(undefined, { all: true })).rejects.toThrow(
    new TypeError("a client of one user lists no others: leave out all"),
  );
});
