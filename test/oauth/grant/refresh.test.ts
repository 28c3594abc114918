import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import { markLost } from "../../../src/oauth/grant/send-refresh.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import { Secret } from "../../../src/redact.js";
import { fileStore } from "../../../src/store/file/file.js";
import { memoryStore } from "../../../src/store/memory.js";
import { pendingError } from "../../helpers/captured.js";
import { FakeClock } from "../../helpers/clock.js";
import { plainGrant } from "../../helpers/grant.js";
import { type Reply, reset, type Scene, silence, startScene } from "../../helpers/issuer.js";
import { loginAt } from "../../helpers/remedy.js";
import { folder } from "../../store/stores.js";

const SIGNAL = new AbortController().signal;

const stores = [
  ["memoryStore", memoryStore],
  ["fileStore", () => fileStore(folder())],
] as const;

const TOKEN = "/pool/token";

/** A scene with a login whose token has expired or, with `left`, has that many ms left. */
async function loggedIn(left = 0): Promise<Scene & { key: { profile: string; server: string } }> {
  const scene = await startScene();
  await scene.agent().login(scene.mcp.url);
  await scene.clock.sleep(3_600_000 - left, SIGNAL);
  return { ...scene, key: { profile: "default", server: scene.mcp.url } };
}

/** What is stored, as plain data. */
async function stored({ store, mcp }: Scene) {
  const grant = await store.read({ profile: "default", server: mcp.url });
  return grant && plainGrant(grant);
}

/** Beside the rows F7 of the hostile table. */
const failures: [string, Reply, string][] = [
  ["HTTP 500 that says invalid_grant", { status: 500, json: { error: "invalid_grant" } }, "unavailable"],
  ["a connection that breaks", reset, "unavailable"],
  ["silence", silence, "unavailable"],
  ["cut JSON", { headers: { "content-type": "application/json" }, text: '{"access_token":"a' }, "unavailable"],
  ["temporarily_unavailable", { status: 400, json: { error: "temporarily_unavailable" } }, "unavailable"],
  // What a proxy or a broken server says: no word on the grant either.
  ["HTTP 404", { status: 404, text: "" }, "remote"],
  ["invalid_request", { status: 400, json: { error: "invalid_request" } }, "remote"],
];

// The issuer may have answered with new tokens that did not arrive: the stored grant is marked.
const lost = new Set(["a connection that breaks", "silence", "cut JSON"]);

/** Only silence takes until the limit; another answer may be late on a busy machine. */
const limitFor = (what: string) => (what === "silence" ? 500 : 60_000);

describe("a refresh that succeeds", () => {
  it("takes the new tokens, keeps what the answer leaves out, and counts the generation", async () => {
    const scene = await loggedIn();
    const before = await stored(scene);
    scene.issuer.tokenAnswer = { refresh_token: undefined };
    expect((await scene.agent().token(scene.mcp.url)).value).toBe("access-as-2");
    expect(scene.issuer.form(TOKEN, 1).get("refresh_token")).toBe("refresh-as-1");
    const after = await stored(scene);
    expect(after).toMatchObject({
      generation: (before?.generation ?? 0) + 1,
      issuer: before?.issuer,
      client: before?.client,
    });
    expect(after?.tokens).toMatchObject({ accessToken: "access-as-2", refreshToken: "refresh-as-1" });
    await scene.clock.sleep(3_600_000, SIGNAL);
    await scene.agent().token(scene.mcp.url);
    expect(scene.issuer.form(TOKEN, 2).get("refresh_token")).toBe("refresh-as-1");
  });

  it("uses the refresh token that came last", async () => {
    const scene = await loggedIn();
    for (const nth of [1, 2, 3]) {
      await scene.agent().token(scene.mcp.url);
      expect(scene.issuer.form(TOKEN, nth).get("refresh_token")).toBe(`refresh-as-${nth}`);
      await scene.clock.sleep(3_600_000, SIGNAL);
    }
  });

  it("refreshes what another process stored, if that has expired too", async () => {
    const scene = await loggedIn();
    const { store, mcp, clock } = scene;
    const seen = await store.read({ profile: "default", server: mcp.url });
    await scene.agent().token(mcp.url);
    await clock.sleep(3_600_000, SIGNAL);
    let reads = 0;
    // The first read is one of a replica that had lost the last refresh.
    const lagging: GrantStore = { ...store, read: (key) => (reads++ === 0 ? Promise.resolve(seen) : store.read(key)) };
    expect((await scene.agent({ store: lagging }).token(mcp.url)).value).toBe("access-as-3");
    expect(scene.issuer.form(TOKEN, 2).get("refresh_token")).toBe("refresh-as-2");
  });

  it("asks once for 20 agents that share a store", async () => {
    const scene = await loggedIn();
    const tokens = await Promise.all(Array.from({ length: 20 }, () => scene.agent().token(scene.mcp.url)));
    expect(new Set(tokens.map(({ value }) => value))).toEqual(new Set(["access-as-2"]));
    expect(scene.issuer.to(TOKEN)).toHaveLength(2);
  });

  it("asks once where several callers force a refresh", async () => {
    const scene = await loggedIn(3_000_000);
    const agent = scene.agent();
    await Promise.all(Array.from({ length: 10 }, () => agent.token(scene.mcp.url, { forceRefresh: true })));
    expect(scene.issuer.to(TOKEN)).toHaveLength(2);
  });

  it("is stored before a caller gets the token", async () => {
    const scene = await loggedIn();
    const order: string[] = [];
    const store: GrantStore = {
      ...scene.store,
      reserve: async () => ({
        release: async () => {},
        save: async (grant, expected) => {
          const done = await scene.store.save(grant, expected);
          order.push("saved");
          return done;
        },
      }),
    };
    await scene.agent({ store }).token(scene.mcp.url);
    order.push("given");
    expect(order).toEqual(["saved", "given"]);
  });

  it("asks the user where the new token lacks scopes that are required", async () => {
    const scene = await loggedIn();
    scene.mcp.metadata["scopes_supported"] = ["a", "b"];
    await scene.agent().login(scene.mcp.url);
    await scene.clock.sleep(3_600_000, SIGNAL);
    scene.issuer.tokenAnswer = { scope: "a" };
    expect(await pendingError(scene.agent({ login: undefined }).token(scene.mcp.url, { scope: "b" }))).toMatchObject({
      code: "login_required",
    });
  });

  it("refreshes before the end, at most half a life before it", async () => {
    const scene = await loggedIn(61_000);
    const agent = scene.agent();
    expect((await agent.token(scene.mcp.url)).value).toBe("access-as-1");
    expect((await agent.token(scene.mcp.url, { minTtl: 61 })).value).toBe("access-as-2");
    expect((await agent.token(scene.mcp.url, { minTtl: 999_999 })).value).toBe("access-as-2");
  });
});

describe("a refresh whose answer is faulty beside the access token", () => {
  const jwt = (header: object, claims: object) =>
    [header, claims, {}].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".");

  it.each<[string, Record<string, unknown>]>([
    ["an id token of another issuer", { id_token: jwt({ alg: "RS256" }, { iss: "https://evil.example" }) }],
    ["an unsigned id token", { id_token: jwt({ alg: "none" }, {}) }],
    ["an id token that is none", { id_token: "a b" }],
    ["an id token that is a number", { id_token: 7 }],
    ["expires_in -1", { expires_in: -1 }],
    ["expires_in true", { expires_in: true }],
    ["expires_in in words", { expires_in: "soon" }],
    ["a list of numbers as scopes", { scope: [7] }],
  ])("is taken without %s: the issuer has rotated already", async (_what, answer) => {
    const scene = await loggedIn();
    const before = await stored(scene);
    scene.issuer.tokenAnswer = answer;
    expect((await scene.agent().token(scene.mcp.url)).value).toBe("access-as-2");
    const after = await stored(scene);
    expect(after).toMatchObject({ retired: undefined, tokens: { refreshToken: "refresh-as-2" } });
    expect(after?.tokens.scope).toBe(before?.tokens.scope);
    if ("expires_in" in answer) expect(after?.tokens.expiresAt).toBeUndefined();
    scene.issuer.tokenAnswer = {};
    expect((await scene.agent().token(scene.mcp.url, { forceRefresh: true })).value).toBe("access-as-3");
    expect(scene.issuer.form(TOKEN, 2).get("refresh_token")).toBe("refresh-as-2");
  });

  it.each([7, "", "a\nb", "x".repeat(70_000)])("keeps the refresh token that it has in place of %j", async (token) => {
    const scene = await loggedIn();
    scene.issuer.tokenAnswer = { refresh_token: token };
    expect((await scene.agent().token(scene.mcp.url)).value).toBe("access-as-2");
    expect((await stored(scene))?.tokens.refreshToken).toBe("refresh-as-1");
  });

  it("reads seconds that were written as a decimal", async () => {
    const scene = await loggedIn();
    scene.issuer.tokenAnswer = { expires_in: "60.0" };
    const { expiresAt } = await scene.agent().token(scene.mcp.url);
    expect(expiresAt).toEqual(new Date(scene.clock.epoch() + 60_000));
  });

  it("stores the newest id token of the issuer, also one that has expired", async () => {
    const scene = await loggedIn();
    const idToken = jwt({ alg: "ES256" }, { iss: scene.issuer.issuer, aud: "client-as-1", exp: 1 });
    scene.issuer.tokenAnswer = { id_token: idToken };
    await scene.agent().token(scene.mcp.url);
    expect((await stored(scene))?.tokens.idToken).toBe(idToken);
  });
});

describe.each(stores)("a refresh that has just failed, over one %s", (_name, open) => {
  const LIFE = 3_600_000;

  /** Two agents that share a token which lives for so long, on a clock that agrees with the one that dates attempts. */
  async function failing(reply: Reply, left = 50_000) {
    const scene = await startScene();
    const clock = new FakeClock(Date.now() + 2000 - (LIFE - left));
    const store = open();
    await scene.agent({ clock, store }).login(scene.mcp.url);
    await clock.sleep(LIFE - left, SIGNAL);
    const answer = scene.issuer.routes[TOKEN];
    scene.issuer.routes[TOKEN] = reply;
    const [one, other] = [0, 1].map(() => scene.agent({ clock, store, login: undefined }));
    if (!one || !other || !answer) throw new Error("cannot be");
    const recover = () => {
      scene.issuer.routes[TOKEN] = answer;
    };
    return { ...scene, clock, recover, agents: [one, other], refreshes: () => scene.issuer.to(TOKEN).length - 1 };
  }

  it("is left alone for ten seconds while the token lives", async () => {
    const { agents, mcp, clock, recover, refreshes } = await failing({ status: 503, text: "" });
    for (const agent of [...agents, ...agents]) expect((await agent.token(mcp.url)).value).toBe("access-as-1");
    expect(refreshes()).toBe(1);
    recover();
    await clock.sleep(10_000, SIGNAL);
    for (const agent of agents) expect((await agent.token(mcp.url)).value).toBe("access-as-3");
    expect(refreshes()).toBe(2);
  });

  it("is called again at once with forceRefresh, and once the token has expired", async () => {
    const { agents, mcp, clock, refreshes } = await failing({ status: 503, text: "" });
    for (const agent of agents) await agent.token(mcp.url);
    for (const agent of agents) {
      expect(await pendingError(agent.token(mcp.url, { forceRefresh: true }))).toMatchObject({ class: "unavailable" });
    }
    expect(refreshes()).toBe(3);
    await clock.sleep(50_000, SIGNAL);
    for (const agent of agents)
      expect(await pendingError(agent.token(mcp.url))).toMatchObject({ class: "unavailable" });
    expect(refreshes()).toBe(5);
  });

  it("is called again at once where the token expires soon after", async () => {
    const { agents, mcp, clock, recover, refreshes } = await failing({ status: 503, text: "" }, 3000);
    for (const agent of agents) expect((await agent.token(mcp.url)).value).toBe("access-as-1");
    expect(refreshes()).toBe(1);
    recover();
    await clock.sleep(3000, SIGNAL);
    expect((await agents[0]?.token(mcp.url))?.value).toBe("access-as-3");
  });

  it.each<[string, Reply]>([
    ["429 that says so", { status: 429, headers: { "retry-after": "90" }, json: { error: "slow_down" } }],
    ["503 with a page", { status: 503, headers: { "retry-after": "90", "content-type": "text/html" }, text: "<p>" }],
    ["401 of a busy gateway", { status: 503, headers: { "retry-after": "90", "www-authenticate": "Basic" }, text: "" }],
  ])("is not called sooner than the issuer said, in any case: %s", async (_what, reply) => {
    const { agents, mcp, clock, recover, refreshes } = await failing(reply);
    for (const agent of agents) await agent.token(mcp.url);
    recover();
    await clock.sleep(60_000, SIGNAL);
    for (const agent of agents) {
      expect(await pendingError(agent.token(mcp.url))).toMatchObject({ class: "unavailable", retryAfter: 90 });
      expect(await pendingError(agent.token(mcp.url, { forceRefresh: true }))).toMatchObject({ retryAfter: 90 });
    }
    expect(refreshes()).toBe(1);
    await clock.sleep(30_000, SIGNAL);
    for (const agent of agents) expect((await agent.token(mcp.url)).value).toBe("access-as-3");
    expect(refreshes()).toBe(2);
  });

  it("waits for no more than five minutes, whatever the issuer said", async () => {
    const { agents, mcp, clock, recover } = await failing({
      status: 503,
      headers: { "retry-after": "99999" },
      text: "",
    });
    for (const agent of agents) await agent.token(mcp.url);
    recover();
    await clock.sleep(300_000, SIGNAL);
    for (const agent of agents) expect((await agent.token(mcp.url)).value).toBe("access-as-3");
  });
});

describe("a refresh that fails", () => {
  it.each<[number, string, string | undefined]>([
    [200, "bad_refresh_token", "The refresh token passed is incorrect or expired."],
    [200, "invalid_refresh_token", undefined],
    [403, "unauthorized_client", "refresh_token is invalid"],
    [400, "invalid_request", 'Invalid "refresh_token" in request.'],
    [400, "invalid_request", "The Refresh-Token is revoked"],
  ])("requires a login after HTTP %i with %s: %s", async (status, error, description) => {
    const scene = await loggedIn();
    scene.issuer.routes[TOKEN] = { status, json: { error, error_description: description } };
    const agent = scene.agent({ login: undefined });
    expect(await pendingError(agent.token(scene.mcp.url))).toMatchObject({ code: "login_required", class: "auth" });
    expect((await stored(scene))?.retired?.reason).toBe(`the issuer refused to refresh it: ${error}`);
    // The login, and the refresh: a rejected request is sent once more with the other authentication of the client.
    expect(scene.issuer.to(TOKEN)).toHaveLength(error === "invalid_request" ? 3 : 2);
  });

  it.each<[number, string, string]>([
    [500, "bad_refresh_token", "The refresh token passed is incorrect or expired."],
    [400, "invalid_request", "the parameter audience is missing"],
    [400, "invalid_scope", "the refresh token is invalid for these scopes"],
    [403, "unauthorized_client", "Grant type 'refresh_token' not allowed for the client."],
    [400, "invalid_request", "Invalid grant type: refresh_token"],
    [400, "invalid_request", "the session is expired"],
  ])("keeps everything after HTTP %i with %s: %s", async (status, error, error_description) => {
    const scene = await loggedIn();
    const before = await stored(scene);
    scene.issuer.routes[TOKEN] = { status, json: { error, error_description } };
    const failure = await pendingError(scene.agent({ login: undefined }).token(scene.mcp.url));
    expect(failure).toMatchObject({ code: status === 500 ? "server_error" : error });
    // A login may help where the issuer means the token, and a service that is down needs none.
    expect((failure as AgentAuthError).remedy?.action).toBe(status === 500 ? undefined : "login");
    expect(await stored(scene)).toEqual(before);
  });

  it.each<[string, Reply, string | undefined]>([
    ["an answer with a remedy of its own", { status: 400, json: { error: "invalid_target" } }, "configure"],
    ["a proof of a key that is refused", { status: 400, json: { error: "invalid_dpop_proof" } }, "inspect"],
    ["a nonce that is wanted", { status: 400, json: { error: "use_dpop_nonce" } }, undefined],
    ["a token of another type", { json: { access_token: "a", token_type: "mac" } }, "allow"],
    ["a redirect", { status: 307, headers: { location: "https://evil.example/" }, text: "" }, undefined],
  ])("has no advice to log in after %s", async (_what, reply, action) => {
    const scene = await loggedIn();
    scene.issuer.routes[TOKEN] = reply;
    const failure = await scene
      .agent({ login: undefined })
      .token(scene.mcp.url)
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(AgentAuthError);
    expect((failure as AgentAuthError).remedy?.action).toBe(action);
    expect((failure as AgentAuthError).hint ?? "").not.toContain("log in");
  });

  it.each(failures)("keeps everything after %s, and does not ask the user to log in", async (what, reply, kind) => {
    const scene = await loggedIn();
    const before = await stored(scene);
    scene.issuer.routes[TOKEN] = reply;
    expect(await pendingError(scene.agent({ timeoutMs: limitFor(what) }).token(scene.mcp.url))).toMatchObject({
      class: kind,
    });
    expect(await stored(scene)).toEqual(before);
    expect(scene.login.opened).toHaveLength(1);
  });

  it.each(failures)("returns the stored token after %s until it expires", async (what, reply) => {
    const scene = await loggedIn(30_000);
    scene.issuer.routes[TOKEN] = reply;
    expect((await scene.agent({ timeoutMs: limitFor(what) }).token(scene.mcp.url)).value).toBe("access-as-1");
    // A rejected request is sent once more with the other authentication of the client.
    expect(scene.issuer.to(TOKEN)).toHaveLength(what === "invalid_request" ? 3 : 2);
    expect((await stored(scene))?.lostRefresh !== undefined).toBe(lost.has(what));
    expect(scene.login.opened).toHaveLength(1);
  });
});

describe("a refresh that the issuer refuses", () => {
  const refusal: Reply = { status: 400, json: { error: "invalid_grant" } };

  it("marks the grant as over and deletes nothing", async () => {
    const scene = await loggedIn();
    const before = await stored(scene);
    scene.issuer.routes[TOKEN] = refusal;
    const error = await scene
      .agent({ login: undefined })
      .token(scene.mcp.url)
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "login_required", class: "auth", remedy: loginAt(scene.mcp.url) });
    expect(await stored(scene)).toEqual({
      ...before,
      generation: (before?.generation ?? 0) + 1,
      retired: { at: scene.clock.epoch(), reason: "the issuer refused to refresh it: invalid_grant" },
    });
  });

  it("is not requested again once the grant is over", async () => {
    const scene = await loggedIn();
    scene.issuer.routes[TOKEN] = refusal;
    const agent = scene.agent({ login: undefined });
    for (let nth = 0; nth < 3; nth++) {
      expect(await pendingError(agent.token(scene.mcp.url))).toMatchObject({ code: "login_required" });
    }
    expect(scene.issuer.to(TOKEN)).toHaveLength(2);
  });

  it("leads to a login for what was requested once the grant is over", async () => {
    const scene = await startScene();
    await scene.agent().login(scene.mcp.url, { scope: "a" });
    await scene.clock.sleep(3_600_000, SIGNAL);
    scene.issuer.routes[TOKEN] = refusal;
    const agent = scene.agent({ login: undefined });
    expect(await pendingError(agent.token(scene.mcp.url))).toMatchObject({ code: "login_required" });
    expect(await pendingError(agent.token(scene.mcp.url, { scope: "a" }))).toMatchObject({
      code: "login_required",
      remedy: loginAt(scene.mcp.url, { scope: "a" }),
    });
  });

  it("prompts for a login where that is possible, and replaces the grant", async () => {
    const scene = await loggedIn();
    scene.issuer.routes[TOKEN] = (request, nth) =>
      request.body.includes("grant_type=refresh_token") ? refusal : { json: scene.issuer.tokens(nth) };
    expect((await scene.agent().token(scene.mcp.url)).value).toBe("access-as-3");
    expect(await stored(scene)).toMatchObject({ retired: undefined, tokens: { refreshToken: "refresh-as-3" } });
    expect(scene.login.opened).toHaveLength(2);
  });

  it("does not ask the user where the caller forbids it", async () => {
    const scene = await loggedIn();
    scene.issuer.routes[TOKEN] = refusal;
    expect(await pendingError(scene.agent().token(scene.mcp.url, { login: false }))).toMatchObject({
      code: "login_required",
    });
    expect(scene.login.opened).toHaveLength(1);
  });

  it("marks the grant as over also where another process has changed what is beside the tokens", async () => {
    const scene = await loggedIn();
    const { store, key, issuer, clock } = scene;
    issuer.routes[TOKEN] = async () => {
      const grant = await store.read(key);
      if (grant) await store.save(markLost(grant, "network", clock.epoch()), grant.generation);
      return refusal;
    };
    const agent = scene.agent({ login: undefined });
    expect(await pendingError(agent.token(scene.mcp.url))).toMatchObject({
      code: "login_required",
      message: expect.stringContaining("invalid_grant"),
    });
    expect(await stored(scene)).toMatchObject({ retired: { reason: expect.stringContaining("invalid_grant") } });
  });

  it("names the profile in what it says to do", async () => {
    const scene = await startScene();
    expect(await pendingError(scene.agent({ login: undefined, profile: "work" }).token(scene.mcp.url))).toMatchObject({
      code: "login_required",
      message: expect.stringContaining("(profile work)"),
      remedy: loginAt(scene.mcp.url, { profile: "work" }),
    });
  });
});

describe("a refresh that meets other work", () => {
  it("takes a login that came after a logout for another one, though both are counted from 1", async () => {
    const scene = await loggedIn();
    const { agent, mcp, issuer, store, key, clock } = scene;
    const asking = agent();
    let isAnswered = false;
    mcp.accepts = (token) => token === "access-as-2";
    const inner = mcp.routes[mcp.path];
    const old = await store.read(key);
    if (!old || typeof inner !== "function") throw new Error("cannot be");
    await store.remove(key);
    await store.save({ ...old, tokens: { ...old.tokens, expiresAt: clock.epoch() + 3_600_000 } }, undefined);
    mcp.routes[mcp.path] = async (request, nth) => {
      const reply = await inner(request, nth);
      if (!isAnswered) {
        isAnswered = true;
        // The user logs out and in again while the old token is on its way.
        await store.remove(key);
        await clock.sleep(1000, SIGNAL);
        await agent().login(mcp.url);
      }
      return reply;
    };
    expect((await asking.fetch(mcp.url)).status).toBe(200);
    expect(mcp.tokens()).toEqual(["Bearer access-as-1", "Bearer access-as-2"]);
    expect(issuer.to(TOKEN)).toHaveLength(2);
    expect((await store.read(key))?.generation).toBe(1);
  });

  // An engine that failed over: the process that stored it last puts back what the replica had lost.
  it.each([
    ["is answered", (nth: number, issuer: Scene["issuer"]): Reply => ({ json: issuer.tokens(nth) })],
    ["is refused", (): Reply => ({ status: 400, json: { error: "invalid_grant" } })],
  ])("refreshes again where its request %s, and what is stored by then has expired too", async (_what, replyTo) => {
    const scene = await loggedIn();
    const { store, key, issuer, mcp } = scene;
    const before = await store.read(key);
    issuer.routes[TOKEN] = async ({ body }, nth) => {
      if (new URLSearchParams(body).get("refresh_token") === "refresh-theirs") return { json: issuer.tokens(nth) };
      if (before) {
        const [accessToken, refreshToken] = [new Secret("access-theirs"), new Secret("refresh-theirs")];
        const theirs = {
          ...before,
          generation: before.generation + 1,
          tokens: { ...before.tokens, accessToken, refreshToken },
        };
        await store.save(theirs, before.generation);
      }
      return replyTo(nth, issuer);
    };
    const { value } = await scene.agent().token(mcp.url);
    expect(issuer.form(TOKEN, 2).get("refresh_token")).toBe("refresh-theirs");
    expect(value).toBe((await store.read(key))?.tokens.accessToken.reveal());
  });

  it("returns the newer grant where a login finished during the request", async () => {
    const scene = await loggedIn();
    const { store, key, issuer, clock } = scene;
    const before = await store.read(key);
    issuer.routes[TOKEN] = async (_request, nth) => {
      const [obtainedAt, accessToken] = [clock.epoch(), new Secret("access-theirs")];
      if (before) {
        const tokens = { ...before.tokens, accessToken, obtainedAt, expiresAt: obtainedAt + 3_600_000 };
        const theirs = { ...before, generation: before.generation + 7, requestedScope: "theirs", tokens };
        await store.save(theirs, before.generation);
      }
      return { json: issuer.tokens(nth) };
    };
    expect((await scene.agent().token(scene.mcp.url)).value).toBe("access-theirs");
    expect(await stored(scene)).toMatchObject({ requestedScope: "theirs" });
  });

  it("restores no grant that was logged out since, and has its new tokens revoked", async () => {
    const scene = await loggedIn();
    const { store, key, issuer } = scene;
    issuer.routes[TOKEN] = async (_request, nth) => {
      await store.remove(key);
      return { json: issuer.tokens(nth) };
    };
    expect(await pendingError(scene.agent({ login: undefined }).token(scene.mcp.url))).toMatchObject({
      code: "login_required",
    });
    expect(await store.list()).toEqual([]);
    const revoked = issuer.to("/pool/revoke").map(({ body }) => new URLSearchParams(body).get("token"));
    expect(revoked).toEqual(["refresh-as-2", "access-as-2"]);
  });

  it("continues when a caller leaves, since the issuer may have rotated already", async () => {
    const scene = await loggedIn();
    const controller = new AbortController();
    scene.issuer.routes[TOKEN] = (_request, nth) => {
      controller.abort();
      return { json: scene.issuer.tokens(nth) };
    };
    expect(await pendingError(scene.agent().token(scene.mcp.url, { signal: controller.signal }))).toMatchObject({
      code: "aborted",
    });
    expect((await stored(scene))?.tokens).toMatchObject({ accessToken: "access-as-2", refreshToken: "refresh-as-2" });
  });

  it("continues for the others when one caller leaves", async () => {
    const scene = await loggedIn();
    const controller = new AbortController();
    const answer = scene.issuer.routes[TOKEN];
    scene.issuer.routes[TOKEN] = async (request, nth) => {
      controller.abort();
      return typeof answer === "function" ? answer(request, nth) : {};
    };
    const agent = scene.agent();
    const [left, stayed] = await Promise.allSettled([
      agent.token(scene.mcp.url, { signal: controller.signal }),
      agent.token(scene.mcp.url),
    ]);
    expect(left).toMatchObject({ status: "rejected", reason: { code: "aborted" } });
    expect(stayed).toMatchObject({ status: "fulfilled", value: { value: "access-as-2" } });
  });
});

describe("a store that cannot save", () => {
  it("gives no token, and loses none: the next call saves what the issuer gave", async () => {
    const scene = await loggedIn();
    let broken = true;
    const inner = scene.store;
    const store: GrantStore = {
      ...inner,
      reserve: async () => ({
        release: async () => {},
        save: async (grant, expected) => {
          if (broken) throw new AgentAuthError("store_failed", "disk full", { class: "store" });
          return inner.save(grant, expected);
        },
      }),
    };
    const agent = scene.agent({ store });
    const before = await stored(scene);
    expect(await pendingError(agent.token(scene.mcp.url))).toMatchObject({
      code: "grant_not_saved",
      message: expect.stringContaining("disk full"),
    });
    expect(await pendingError(agent.token(scene.mcp.url))).toMatchObject({
      code: "grant_not_saved",
      message: expect.stringContaining("disk full"),
    });
    expect(await stored(scene)).toEqual(before);
    broken = false;
    expect((await agent.token(scene.mcp.url)).value).toBe("access-as-2");
    expect((await stored(scene))?.tokens).toMatchObject({ refreshToken: "refresh-as-2" });
    expect(scene.issuer.to(TOKEN)).toHaveLength(2);
  });

  it("saves what the issuer gave over the mark of another process, which had the used-up token refused", async () => {
    const scene = await loggedIn();
    let broken = true;
    const inner = scene.store;
    const store: GrantStore = {
      ...inner,
      reserve: async (key) => {
        const room = await inner.reserve(key);
        return {
          release: room.release,
          save: async (grant, expected) => {
            if (broken) throw new AgentAuthError("store_failed", "disk full", { class: "store" });
            return room.save(grant, expected);
          },
        };
      },
    };
    const agent = scene.agent({ store, login: undefined });
    expect(await pendingError(agent.token(scene.mcp.url))).toMatchObject({ code: "grant_not_saved" });
    const answer = scene.issuer.routes[TOKEN];
    scene.issuer.routes[TOKEN] = { status: 400, json: { error: "invalid_grant" } };
    const other = scene.agent({ login: undefined });
    expect(await pendingError(other.token(scene.mcp.url))).toMatchObject({ code: "login_required" });
    expect(await pendingError(agent.token(scene.mcp.url))).toMatchObject({ code: "grant_not_saved" });
    broken = false;
    if (answer) scene.issuer.routes[TOKEN] = answer;
    expect((await agent.token(scene.mcp.url)).value).toBe("access-as-2");
    expect((await other.token(scene.mcp.url)).value).toBe("access-as-2");
    expect(await stored(scene)).toMatchObject({ retired: undefined, tokens: { refreshToken: "refresh-as-2" } });
    expect((await stored(scene))?.generation).toBe(3);
    expect(scene.issuer.to(TOKEN)).toHaveLength(3);
  });

  it.each([
    ["", {}],
    [", also one that got the same access token", { access_token: "access-as-1" }],
  ])("does not bring the held tokens into a login that came after%s", async (_what, answer) => {
    const scene = await loggedIn();
    let broken = true;
    const inner = scene.store;
    const store: GrantStore = {
      ...inner,
      reserve: async () => ({
        release: async () => {},
        save: async (grant, expected) => {
          if (broken) throw new AgentAuthError("store_failed", "disk full", { class: "store" });
          return inner.save(grant, expected);
        },
      }),
    };
    const agent = scene.agent({ store });
    expect(await pendingError(agent.token(scene.mcp.url))).toMatchObject({
      code: "grant_not_saved",
      message: expect.stringContaining("disk full"),
    });
    broken = false;
    await inner.remove(scene.key);
    await scene.clock.sleep(1000, SIGNAL);
    scene.issuer.tokenAnswer = answer;
    await scene.agent().login(scene.mcp.url);
    scene.issuer.tokenAnswer = {};
    await scene.clock.sleep(3_600_000, SIGNAL);
    expect((await agent.token(scene.mcp.url)).value).toBe("access-as-4");
    expect(scene.issuer.form(TOKEN, 3).get("refresh_token")).toBe("refresh-as-3");
  });
});
