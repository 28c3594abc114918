import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import type { GrantStore } from "../../src/oauth/grant-store.js";
import { plainGrant } from "../helpers/grant.js";
import { type Reply, reset, type Scene, silence, startScene } from "../helpers/issuer.js";

const SIGNAL = new AbortController().signal;
const TOKEN = "/pool/token";

/** A scene in which a person has signed in, and the token has ended or, with `left`, has that many ms to live. */
async function signedIn(left = 0): Promise<Scene & { key: { profile: string; server: string } }> {
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

const failures: [string, Reply][] = [
  ["HTTP 429", { status: 429, text: "" }],
  ["HTTP 500", { status: 500, text: "" }],
  ["HTTP 500 that says invalid_grant", { status: 500, json: { error: "invalid_grant" } }],
  ["HTTP 503 with a page", { status: 503, headers: { "content-type": "text/html" }, text: "<h1>down</h1>" }],
  ["HTTP 530", { status: 530, text: "" }],
  ["a connection that breaks", reset],
  ["silence", silence],
  ["a page", { headers: { "content-type": "text/html" }, text: "<h1>sign in to the hotel</h1>" }],
  ["cut JSON", { headers: { "content-type": "application/json" }, text: '{"access_token":"a' }],
  ["an empty answer", { headers: { "content-type": "application/json" }, text: "" }],
  ["temporarily_unavailable", { status: 400, json: { error: "temporarily_unavailable" } }],
];

// The issuer may have answered with new tokens that did not arrive: these are asked for once more.
const lost = new Set(["a connection that breaks", "silence", "cut JSON", "an empty answer"]);

// What a proxy, a firewall or a broken server says: no word on the grant either.
const strangers: [string, Reply][] = [
  [
    "HTTP 401 with a proxy's challenge",
    { status: 401, headers: { "www-authenticate": 'Basic realm="proxy"' }, text: "" },
  ],
  ["HTTP 403 with a page", { status: 403, headers: { "content-type": "text/html" }, text: "<h1>blocked</h1>" }],
  ["HTTP 404", { status: 404, text: "" }],
  ["invalid_request", { status: 400, json: { error: "invalid_request" } }],
  ["a token of another type", { json: { access_token: "a", token_type: "mac" } }],
  ["a redirect", { status: 307, headers: { location: "https://evil.example/" }, text: "" }],
];

describe("a refresh that succeeds", () => {
  it("takes the new tokens, keeps what the answer leaves out, and counts the generation", async () => {
    const scene = await signedIn();
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
    const scene = await signedIn();
    for (const nth of [1, 2, 3]) {
      await scene.agent().token(scene.mcp.url);
      expect(scene.issuer.form(TOKEN, nth).get("refresh_token")).toBe(`refresh-as-${nth}`);
      await scene.clock.sleep(3_600_000, SIGNAL);
    }
  });

  it("asks once for 100 callers of one agent", async () => {
    const scene = await signedIn();
    const agent = scene.agent();
    const tokens = await Promise.all(Array.from({ length: 100 }, () => agent.token(scene.mcp.url)));
    expect(new Set(tokens.map(({ value }) => value))).toEqual(new Set(["access-as-2"]));
    expect(scene.issuer.to(TOKEN)).toHaveLength(2);
  });

  it("asks once for 20 agents that share a store", async () => {
    const scene = await signedIn();
    const tokens = await Promise.all(Array.from({ length: 20 }, () => scene.agent().token(scene.mcp.url)));
    expect(new Set(tokens.map(({ value }) => value))).toEqual(new Set(["access-as-2"]));
    expect(scene.issuer.to(TOKEN)).toHaveLength(2);
  });

  it("asks once where several are told to get a new token by force", async () => {
    const scene = await signedIn(3_000_000);
    const agent = scene.agent();
    await Promise.all(Array.from({ length: 10 }, () => agent.token(scene.mcp.url, { forceRefresh: true })));
    expect(scene.issuer.to(TOKEN)).toHaveLength(2);
  });

  it("is kept before anybody gets the token", async () => {
    const scene = await signedIn();
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

  it("asks a person where the new token lacks scopes that are wanted", async () => {
    const scene = await signedIn();
    scene.mcp.metadata["scopes_supported"] = ["a", "b"];
    await scene.agent().login(scene.mcp.url);
    await scene.clock.sleep(3_600_000, SIGNAL);
    scene.issuer.tokenAnswer = { scope: "a" };
    await expect(scene.agent({ login: undefined }).token(scene.mcp.url, { scope: "b" })).rejects.toMatchObject({
      code: "login_required",
    });
  });

  it("refreshes before the end, at most half a life before it", async () => {
    const scene = await signedIn(61_000);
    const agent = scene.agent();
    expect((await agent.token(scene.mcp.url)).value).toBe("access-as-1");
    expect((await agent.token(scene.mcp.url, { minTtl: 61 })).value).toBe("access-as-2");
    expect((await agent.token(scene.mcp.url, { minTtl: 999_999 })).value).toBe("access-as-2");
  });
});

describe("a refresh that fails", () => {
  it.each(failures)("keeps everything after %s, and asks nobody to sign in", async (_what, reply) => {
    const scene = await signedIn();
    const before = await stored(scene);
    scene.issuer.routes[TOKEN] = reply;
    await expect(scene.agent({ timeout: 100 }).token(scene.mcp.url)).rejects.toMatchObject({ class: "unavailable" });
    expect(await stored(scene)).toEqual(before);
    expect(scene.login.opened).toHaveLength(1);
  });

  it.each(failures)("gives the token at hand after %s while it lives", async (what, reply) => {
    const scene = await signedIn(30_000);
    scene.issuer.routes[TOKEN] = reply;
    expect((await scene.agent({ timeout: 100 }).token(scene.mcp.url)).value).toBe("access-as-1");
    expect(scene.issuer.to(TOKEN)).toHaveLength(lost.has(what) ? 3 : 2);
    expect(scene.login.opened).toHaveLength(1);
  });

  it.each(strangers)("keeps everything after %s as well", async (_what, reply) => {
    const scene = await signedIn();
    const before = await stored(scene);
    scene.issuer.routes[TOKEN] = reply;
    await expect(scene.agent().token(scene.mcp.url)).rejects.not.toMatchObject({ code: "login_required" });
    expect(await stored(scene)).toEqual(before);
    expect(scene.login.opened).toHaveLength(1);
  });

  it.each(strangers)("gives the token at hand after %s while it lives", async (_what, reply) => {
    const scene = await signedIn(30_000);
    scene.issuer.routes[TOKEN] = reply;
    expect((await scene.agent().token(scene.mcp.url)).value).toBe("access-as-1");
  });

  it("is told where a new token was asked for by force", async () => {
    const scene = await signedIn(30_000);
    scene.issuer.routes[TOKEN] = { status: 503, text: "" };
    await expect(scene.agent().token(scene.mcp.url, { forceRefresh: true })).rejects.toMatchObject({
      class: "unavailable",
    });
  });

  it("works again when the issuer does", async () => {
    const scene = await signedIn();
    const answer = scene.issuer.routes[TOKEN];
    scene.issuer.routes[TOKEN] = { status: 503, text: "" };
    const agent = scene.agent();
    await expect(agent.token(scene.mcp.url)).rejects.toMatchObject({ class: "unavailable" });
    if (answer) scene.issuer.routes[TOKEN] = answer;
    expect((await agent.token(scene.mcp.url)).value).toBe("access-as-3");
    expect(scene.issuer.form(TOKEN, 2).get("refresh_token")).toBe("refresh-as-1");
  });
});

describe("a refresh that the issuer refuses", () => {
  const refusal: Reply = { status: 400, json: { error: "invalid_grant" } };

  it("marks the grant as over and deletes nothing", async () => {
    const scene = await signedIn();
    const before = await stored(scene);
    scene.issuer.routes[TOKEN] = refusal;
    const error = await scene
      .agent({ login: undefined })
      .token(scene.mcp.url)
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "login_required", class: "auth", hint: `agentauth login ${scene.mcp.url}` });
    expect(await stored(scene)).toEqual({
      ...before,
      generation: (before?.generation ?? 0) + 1,
      retired: { at: scene.clock.epoch(), reason: "the issuer refused to renew it: invalid_grant" },
    });
  });

  it("is not asked for again once the grant is over", async () => {
    const scene = await signedIn();
    scene.issuer.routes[TOKEN] = refusal;
    const agent = scene.agent({ login: undefined });
    for (let nth = 0; nth < 3; nth++) {
      await expect(agent.token(scene.mcp.url)).rejects.toMatchObject({ code: "login_required" });
    }
    expect(scene.issuer.to(TOKEN)).toHaveLength(2);
  });

  it("leads to a sign-in for what was asked once the grant is over", async () => {
    const scene = await startScene();
    await scene.agent().login(scene.mcp.url, { scope: "a" });
    await scene.clock.sleep(3_600_000, SIGNAL);
    scene.issuer.routes[TOKEN] = refusal;
    const agent = scene.agent({ login: undefined });
    await expect(agent.token(scene.mcp.url)).rejects.toMatchObject({ code: "login_required" });
    await expect(agent.token(scene.mcp.url, { scope: "a" })).rejects.toMatchObject({
      code: "login_required",
      hint: `agentauth login ${scene.mcp.url} --scope "a"`,
    });
  });

  it("asks a person to sign in where there is one, and replaces the grant", async () => {
    const scene = await signedIn();
    scene.issuer.routes[TOKEN] = (request, nth) =>
      request.body.includes("grant_type=refresh_token") ? refusal : { json: scene.issuer.tokens(nth) };
    expect((await scene.agent().token(scene.mcp.url)).value).toBe("access-as-3");
    expect(await stored(scene)).toMatchObject({ retired: undefined, tokens: { refreshToken: "refresh-as-3" } });
    expect(scene.login.opened).toHaveLength(2);
  });

  it("does not ask a person where the caller forbids it", async () => {
    const scene = await signedIn();
    scene.issuer.routes[TOKEN] = refusal;
    await expect(scene.agent().token(scene.mcp.url, { login: false })).rejects.toMatchObject({
      code: "login_required",
    });
    expect(scene.login.opened).toHaveLength(1);
  });

  it("is overruled by what the store holds meanwhile", async () => {
    const scene = await signedIn();
    const { store, key, issuer } = scene;
    issuer.routes[TOKEN] = async () => {
      // Another process has been quicker.
      const grant = await store.read(key);
      if (grant)
        await store.save({ ...grant, generation: grant.generation + 1, requestedScope: "theirs" }, grant.generation);
      return refusal;
    };
    expect(await scene.agent({ login: undefined }).token(scene.mcp.url)).toMatchObject({ value: "access-as-1" });
    expect(await stored(scene)).toMatchObject({ requestedScope: "theirs", retired: undefined });
  });

  it("names the profile in what it says to do", async () => {
    const scene = await startScene();
    await expect(scene.agent({ login: undefined, profile: "work" }).token(scene.mcp.url)).rejects.toMatchObject({
      code: "login_required",
      message: expect.stringContaining("(profile work)"),
      hint: `agentauth login ${scene.mcp.url} --profile work`,
    });
  });
});

describe("a refresh that meets other work", () => {
  it("gives the newer grant where somebody signed in while it asked", async () => {
    const scene = await signedIn();
    const { store, key, issuer } = scene;
    const theirs = await store.read(key);
    issuer.routes[TOKEN] = async (_request, nth) => {
      if (theirs)
        await store.save({ ...theirs, generation: theirs.generation + 7, requestedScope: "theirs" }, theirs.generation);
      return { json: issuer.tokens(nth) };
    };
    expect((await scene.agent().token(scene.mcp.url)).value).toBe("access-as-1");
    expect(await stored(scene)).toMatchObject({ requestedScope: "theirs" });
  });

  it("brings no grant back that was signed out meanwhile", async () => {
    const scene = await signedIn();
    const { store, key, issuer } = scene;
    issuer.routes[TOKEN] = async (_request, nth) => {
      await store.remove(key);
      return { json: issuer.tokens(nth) };
    };
    await expect(scene.agent({ login: undefined }).token(scene.mcp.url)).rejects.toMatchObject({
      code: "login_required",
    });
    expect(await store.list()).toEqual([]);
  });

  it("goes on to its end when a caller leaves, since the issuer may have obeyed already", async () => {
    const scene = await signedIn();
    const controller = new AbortController();
    scene.issuer.routes[TOKEN] = (_request, nth) => {
      controller.abort();
      return { json: scene.issuer.tokens(nth) };
    };
    await expect(scene.agent().token(scene.mcp.url, { signal: controller.signal })).rejects.toMatchObject({
      code: "aborted",
    });
    expect((await stored(scene))?.tokens).toMatchObject({ accessToken: "access-as-2", refreshToken: "refresh-as-2" });
  });

  it("goes on for the others when one caller leaves", async () => {
    const scene = await signedIn();
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
    const scene = await signedIn();
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
    await expect(agent.token(scene.mcp.url)).rejects.toMatchObject({
      code: "grant_not_saved",
      message: expect.stringContaining("disk full"),
    });
    await expect(agent.token(scene.mcp.url)).rejects.toMatchObject({
      code: "grant_not_saved",
      message: expect.stringContaining("disk full"),
    });
    expect(await stored(scene)).toEqual(before);
    broken = false;
    expect((await agent.token(scene.mcp.url)).value).toBe("access-as-2");
    expect((await stored(scene))?.tokens).toMatchObject({ refreshToken: "refresh-as-2" });
    expect(scene.issuer.to(TOKEN)).toHaveLength(2);
  });

  it("does not bring the held tokens into a login that came after", async () => {
    const scene = await signedIn();
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
    await expect(agent.token(scene.mcp.url)).rejects.toMatchObject({
      code: "grant_not_saved",
      message: expect.stringContaining("disk full"),
    });
    broken = false;
    await inner.remove(scene.key);
    await scene.agent().login(scene.mcp.url);
    await scene.clock.sleep(3_600_000, SIGNAL);
    expect((await agent.token(scene.mcp.url)).value).toBe("access-as-4");
    expect(scene.issuer.form(TOKEN, 3).get("refresh_token")).toBe("refresh-as-3");
  });
});
