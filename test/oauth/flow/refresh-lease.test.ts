import { inspect } from "node:util";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import { systemClock } from "../../../src/http/deadline.js";
import { retire } from "../../../src/oauth/model/grant.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import { type Lease, leaseLost } from "../../../src/oauth/model/lease.js";
import { fileStore } from "../../../src/store/file/file.js";
import { pendingError } from "../../helpers/captured.js";
import { type Handler, type Reply, reset, type Scene, silence, startMcp } from "../../helpers/issuer.js";
import { folder } from "../../store/stores.js";
import { HOUR, type LoggedIn, loggedIn, refusal, SIGNAL, TOKEN } from "../grant/support.js";

/** A store whose leases behave as a test wants. */
function withLease(store: GrantStore, change: (lease: Lease) => Partial<Lease>): GrantStore {
  return {
    ...store,
    lease: (name, work, options) => store.lease(name, (lease) => work({ ...lease, ...change(lease) }), options),
  };
}

/** A store whose rooms save as a test wants. */
function withSave(store: GrantStore, before: () => void): GrantStore {
  return {
    ...store,
    async reserve(key) {
      const room = await store.reserve(key);
      return {
        ...room,
        save: (grant, expected) => {
          before();
          return room.save(grant, expected);
        },
      };
    },
  };
}

/** Answers of a route, one after the other. */
function inTurn(...replies: (Reply | Handler)[]): Handler {
  let nth = 0;
  return (request, count) => {
    const reply = replies[Math.min(nth++, replies.length - 1)] ?? silence;
    return typeof reply === "function" ? reply(request, count) : reply;
  };
}

describe("a refresh under its lease", () => {
  it("is said to have begun before it is sent, and not before there is room for its answer", async () => {
    const scene = await loggedIn();
    const { log } = scene;
    log.length = 0;
    const inner = withLease(scene.store, (lease) => ({
      commit: async () => {
        log.push("begun");
        await lease.commit();
      },
    }));
    const store: GrantStore = {
      ...inner,
      async reserve(key) {
        log.push("reserved");
        const room = await inner.reserve(key);
        return {
          save: async (...args) => {
            log.push("saved");
            return room.save(...args);
          },
          release: async () => void log.push("released"),
        };
      },
    };
    await scene.agent({ store }).token(scene.mcp.url);
    expect(log).toEqual(["reserved", "begun", "as POST /pool/token", "saved", "released"]);
  });

  it("is not sent where the lease was lost before it began", async () => {
    const scene = await loggedIn();
    const store = withLease(scene.store, () => ({ left: () => 0, commit: () => Promise.reject(leaseLost()) }));
    expect(await pendingError(scene.agent({ store }).token(scene.mcp.url))).toMatchObject({
      code: "lease_lost",
      class: "unavailable",
    });
    expect(scene.refreshes()).toBe(0);
  });

  it.each([0, 4999])("is not sent where the lease has %i ms left when it would leave", async (left) => {
    const scene = await loggedIn();
    let looks = 0;
    const store = withLease(scene.store, () => ({ left: () => (looks++ === 0 ? 60_000 : left) }));
    expect(await pendingError(scene.agent({ store }).token(scene.mcp.url))).toMatchObject({ code: "lease_lost" });
    expect(looks).toBeGreaterThan(1);
    expect(scene.refreshes()).toBe(0);
  });

  it("is sent after one more extension of a lease that is late", async () => {
    const scene = await loggedIn();
    let extensions = 0;
    const store = withLease(scene.store, (lease) => ({
      maySend: () => extensions > 1,
      commit: async () => {
        extensions++;
        await lease.commit();
      },
    }));
    await scene.agent({ store }).token(scene.mcp.url);
    expect(extensions).toBe(2);
    expect(scene.refreshes()).toBe(1);
  });

  it("leaves no trace where it was held back", async () => {
    const scene = await loggedIn();
    const store = withLease(scene.store, () => ({ maySend: () => false }));
    expect(await pendingError(scene.agent({ store }).token(scene.mcp.url))).toMatchObject({ code: "lease_lost" });
    expect(scene.refreshes()).toBe(0);
    let before: unknown = "not called";
    const next = withLease(scene.store, (lease) => {
      before = lease.previous;
      return {};
    });
    await scene.agent({ store: next }).token(scene.mcp.url);
    expect(before).toBeUndefined();
  });

  it("has an answer before the lease is over, or none", async () => {
    const scene = await loggedIn();
    scene.issuer.routes[TOKEN] = silence;
    const store = withLease(scene.store, () => ({ left: () => 5100 }));
    expect(await pendingError(scene.agent({ store, timeoutMs: 600_000 }).token(scene.mcp.url))).toMatchObject({
      code: "timeout",
      message: expect.stringContaining("0.1 s"),
    });
  });

  it("gives room back whatever comes of it", async () => {
    const scene = await loggedIn();
    let open = 0;
    const store: GrantStore = {
      ...scene.store,
      async reserve(key) {
        const room = await scene.store.reserve(key);
        open++;
        return { ...room, release: async () => void open-- };
      },
    };
    for (const reply of [{ status: 503, text: "" }, refusal]) {
      scene.issuer.routes[TOKEN] = reply;
      await expect(scene.agent({ store, login: undefined }).token(scene.mcp.url)).rejects.toBeDefined();
      expect(open).toBe(0);
    }
  });
});

describe("a refresh whose answer is lost", () => {
  const lost: [string, Reply][] = [
    ["a connection that breaks", reset],
    ["silence", silence],
    ["cut JSON", { headers: { "content-type": "application/json" }, text: '{"access_token":"a' }],
  ];

  it.each(lost)(
    "is sent once more with the same refresh token, and the second answer counts (%s)",
    async (what, reply) => {
      const scene = await loggedIn();
      const said: string[] = [];
      const onProgress = ({ subject, text }: { subject: string; text: string }) =>
        void said.push(`${subject}: ${text}`);
      scene.issuer.routes[TOKEN] = inTurn(reply, (_request, nth) => ({ json: scene.issuer.tokens(nth) }));
      const agent = scene.agent({ timeoutMs: what === "silence" ? 500 : 60_000, onProgress });
      expect((await agent.token(scene.mcp.url)).value).toBe("access-as-3");
      const sent = `refresh: refreshing the token for ${scene.mcp.url} at ${scene.issuer.origin}${TOKEN}`;
      const code = what === "silence" ? "timeout" : what === "cut JSON" ? "bad_json" : "connection_reset";
      expect(said).toEqual([sent, `refresh: the response to the refresh was lost (${code}); trying once more`, sent]);
      expect(scene.refreshes()).toBe(2);
      expect([1, 2].map((nth) => scene.issuer.form(TOKEN, nth).get("refresh_token"))).toEqual([
        "refresh-as-1",
        "refresh-as-1",
      ]);
      expect((await scene.stored())?.tokens.refreshToken).toBe("refresh-as-3");
    },
  );

  it("is not sent again where too little of the lease is left to save in", async () => {
    const scene = await loggedIn();
    scene.issuer.routes[TOKEN] = reset;
    let left = 60_000;
    const store = withLease(scene.store, () => ({ left: () => left }));
    scene.issuer.routes[TOKEN] = (_request, _nth) => {
      left = 5000;
      return reset;
    };
    expect(await pendingError(scene.agent({ store }).token(scene.mcp.url))).toMatchObject({ code: "connection_reset" });
    expect(scene.refreshes()).toBe(1);
  });

  it.each<[string, Reply]>([
    ["HTTP 400", { status: 400, json: { error: "invalid_scope" } }],
    ["HTTP 429", { status: 429, text: "" }],
    ["HTTP 503", { status: 503, text: "" }],
    ["invalid_grant", refusal],
  ])("is another thing than one that was answered: after %s nothing is repeated", async (_what, reply) => {
    const scene = await loggedIn();
    scene.issuer.routes[TOKEN] = reply;
    await expect(scene.agent({ login: undefined }).token(scene.mcp.url)).rejects.toBeDefined();
    expect(scene.refreshes()).toBe(1);
  });

  it("is no verdict where a server that is too busy says invalid_grant", async () => {
    const scene = await loggedIn();
    const before = await scene.stored();
    scene.issuer.routes[TOKEN] = { status: 429, json: { error: "invalid_grant" } };
    expect(await pendingError(scene.agent().token(scene.mcp.url))).toMatchObject({ class: "unavailable" });
    expect(await scene.stored()).toEqual(before);
  });

  it("is the reason that is reported to a later call too, with the time it began", async () => {
    const scene = await loggedIn();
    const agent = scene.agent({ login: undefined });
    scene.issuer.routes[TOKEN] = reset;
    expect(await pendingError(agent.token(scene.mcp.url))).toMatchObject({ class: "unavailable" });
    scene.issuer.routes[TOKEN] = refusal;
    expect(await pendingError(agent.token(scene.mcp.url))).toMatchObject({
      code: "login_required",
      message: expect.stringMatching(
        /invalid_grant; the refresh that began at \d{4}-\S+Z got no response that could be stored$/,
      ),
    });
  });

  it("is the reason that is reported to others that waited, too", async () => {
    const scene = await loggedIn();
    scene.issuer.routes[TOKEN] = reset;
    const agents = [0, 1, 2].map(() => scene.agent({ login: undefined }));
    for (const result of await Promise.allSettled(agents.map((agent) => agent.token(scene.mcp.url)))) {
      expect(result).toMatchObject({ status: "rejected", reason: { code: "connection_reset" } });
    }
    expect(scene.refreshes()).toBe(2);
    scene.issuer.routes[TOKEN] = refusal;
    expect(await pendingError(scene.agent({ login: undefined }).token(scene.mcp.url))).toMatchObject({
      message: expect.stringContaining("got no response that could be stored"),
    });
  });

  it("is not the reason where the one before had not begun", async () => {
    const scene = await loggedIn();
    scene.issuer.routes[TOKEN] = refusal;
    const before = { at: 1, endedAt: undefined, ended: "died", committed: false, failure: undefined } as const;
    const store = withLease(scene.store, () => ({ previous: before }));
    expect(await pendingError(scene.agent({ store, login: undefined }).token(scene.mcp.url))).toMatchObject({
      message: expect.stringMatching(/invalid_grant$/),
    });
  });

  it("is reported without a prompt for the user, too", async () => {
    const scene = await loggedIn();
    scene.issuer.routes[TOKEN] = inTurn(reset, refusal);
    expect(await pendingError(scene.agent().token(scene.mcp.url, { login: false }))).toMatchObject({
      code: "login_required",
      message: expect.stringContaining("invalid_grant; the response to the first attempt was lost"),
    });
  });

  it("is not the reason where the one before was answered", async () => {
    const scene = await loggedIn();
    const agent = scene.agent({ login: undefined });
    scene.issuer.routes[TOKEN] = { status: 503, text: "" };
    expect(await pendingError(agent.token(scene.mcp.url))).toMatchObject({ class: "unavailable" });
    scene.issuer.routes[TOKEN] = refusal;
    expect(await pendingError(agent.token(scene.mcp.url))).toMatchObject({
      message: expect.stringMatching(/invalid_grant$/),
    });
  });
});

describe("callers that wait for a refresh which fails", () => {
  it("report its failure, and the issuer gets one request for all of them", async () => {
    const scene = await loggedIn();
    scene.issuer.routes[TOKEN] = { status: 503, text: "" };
    const results = await Promise.allSettled(Array.from({ length: 10 }, () => scene.agent().token(scene.mcp.url)));
    for (const result of results)
      expect(result).toMatchObject({ status: "rejected", reason: { class: "unavailable" } });
    expect(scene.refreshes()).toBe(1);
    expect(await pendingError(scene.agent().token(scene.mcp.url))).toMatchObject({ class: "unavailable" });
    expect(scene.refreshes()).toBe(2);
  });

  it.each(["memory", "files"])(
    "share its failure for a second, then for twice the time: a store in %s",
    async (kind) => {
      const scene = await loggedIn(kind === "files" ? fileStore(folder()) : undefined);
      scene.issuer.routes[TOKEN] = { status: 503, text: "" };
      vi.useFakeTimers({ toFake: ["Date"], now: scene.clock.epoch() + HOUR });
      onTestFinished(() => void vi.useRealTimers());
      for (let ms = 0; ms < 6000; ms += 50, vi.setSystemTime(Date.now() + 50)) {
        const tokens = Array.from({ length: 5 }, () => scene.agent({ clock: systemClock }).token(scene.mcp.url));
        for (const { status } of await Promise.allSettled(tokens)) expect(status).toBe("rejected");
      }
      expect(scene.refreshes()).toBe(3);
      await pendingError(scene.agent({ clock: systemClock }).token(scene.mcp.url, { forceRefresh: true }));
      expect(scene.refreshes()).toBe(4);
    },
  );

  it("ask themselves where it failed by being too slow, not by the issuer", async () => {
    const scene = await loggedIn();
    let first = true;
    let requested = 0;
    let onSecond: () => void = () => undefined;
    const second = new Promise<void>((resolve) => {
      onSecond = resolve;
    });
    const inner = withLease(scene.store, (lease) => ({
      commit: async () => {
        await second;
        if (first) {
          first = false;
          throw leaseLost();
        }
        await lease.commit();
      },
    }));
    const store: GrantStore = {
      ...inner,
      lease(...request) {
        const result = inner.lease(...request);
        if (++requested === 2) onSecond();
        return result;
      },
    };
    const [slow, next] = await Promise.allSettled([0, 1].map(() => scene.agent({ store }).token(scene.mcp.url)));
    expect(slow).toMatchObject({ status: "rejected", reason: { code: "lease_lost" } });
    expect(next).toMatchObject({ status: "fulfilled", value: { value: "access-as-2" } });
  });
});

describe("a refresh that comes late to its lease", () => {
  /** A store in which something happens right before the lease is had. */
  const overtaken = (scene: LoggedIn, work: () => unknown): GrantStore => ({
    ...scene.store,
    lease: (name, inner, options) =>
      scene.store.lease(
        name,
        async (lease) => {
          await work();
          return inner(lease);
        },
        options,
      ),
  });

  it("sends nothing for a grant that was logged out since", async () => {
    const scene = await loggedIn();
    const store = overtaken(scene, () => scene.store.remove(scene.key));
    expect(await pendingError(scene.agent({ store, login: undefined }).token(scene.mcp.url))).toMatchObject({
      code: "login_required",
      message: expect.stringContaining("another process logged out"),
    });
    expect(scene.refreshes()).toBe(0);
  });

  it("sends nothing for a grant that was restored, whose refresh token is used up", async () => {
    const scene = await loggedIn();
    const store = withLease(scene.store, () => ({ rotatedGeneration: 1 }));
    expect(await pendingError(scene.agent({ store }).token(scene.mcp.url))).toMatchObject({
      code: "record_rolled_back",
      class: "store",
      hint: expect.stringMatching(/^put the newest record back, or log in again: /),
    });
    expect(scene.refreshes()).toBe(0);
  });

  it("sends nothing for a grant that was refused already, and gives that reason", async () => {
    const scene = await loggedIn();
    const store = overtaken(scene, async () => {
      const grant = await scene.store.read(scene.key);
      if (grant) await scene.store.save(retire(grant, "the user refused", 1), grant.generation);
    });
    expect(await pendingError(scene.agent({ store, login: undefined }).token(scene.mcp.url))).toMatchObject({
      code: "login_required",
      message: expect.stringContaining("the user refused"),
    });
    expect(scene.refreshes()).toBe(0);
  });
});

describe("a refresh that meets other work", () => {
  it("revives a grant that another process took for over while the answer was on its way", async () => {
    const scene = await loggedIn();
    const { store, key, issuer, clock } = scene;
    issuer.routes[TOKEN] = async (_request, nth) => {
      const grant = await store.read(key);
      if (grant) await store.save(retire(grant, "the user refused", clock.epoch()), grant.generation);
      return { json: issuer.tokens(nth) };
    };
    expect((await scene.agent().token(scene.mcp.url)).value).toBe("access-as-2");
    expect(await scene.stored()).toMatchObject({
      generation: 3,
      retired: undefined,
      tokens: { accessToken: "access-as-2", refreshToken: "refresh-as-2" },
    });
  });

  it("does not revive a later login that is over", async () => {
    const scene = await loggedIn();
    const { store, key, issuer, clock } = scene;
    issuer.routes[TOKEN] = async (_request, nth) => {
      const grant = await store.read(key);
      const later = grant && { ...retire(grant, "the user refused", clock.epoch()), signedInAt: clock.epoch() + 1 };
      if (later && grant) await store.save(later, grant.generation);
      return { json: issuer.tokens(nth) };
    };
    expect(await pendingError(scene.agent({ login: undefined }).token(scene.mcp.url))).toMatchObject({
      code: "login_required",
      message: expect.stringContaining("the user refused"),
    });
    expect((await scene.stored())?.tokens.accessToken).toBe("access-as-1");
  });

  it.each<[string, (scene: LoggedIn, nth: number) => Reply]>([
    ["new tokens", (scene, nth) => ({ json: scene.issuer.tokens(nth) })],
    ["a refusal", () => refusal],
  ])(
    "lets %s do nothing to a login that has taken the place of its own, also one of the same number",
    async (_what, reply) => {
      for (const store of [undefined, fileStore(folder())]) {
        const scene = await loggedIn(store);
        const { key, issuer } = scene;
        const before = await scene.stored();
        const login = scene.agent();
        issuer.routes[TOKEN] = async (request, nth) => {
          if (!request.body.includes("refresh_token=refresh-as-1")) return { json: issuer.tokens(nth) };
          await scene.store.remove(key);
          await scene.clock.sleep(1000, SIGNAL);
          await login.login(scene.mcp.url);
          return reply(scene, nth);
        };
        const { value } = await scene.agent({ login: undefined }).token(scene.mcp.url);
        expect(value).toBe("access-as-3");
        const after = await scene.stored();
        expect(after).toMatchObject({ retired: undefined, tokens: { accessToken: "access-as-3" } });
        expect(after?.generation).toBe(before?.generation);
      }
    },
  );
});

describe("a store that fails to save", () => {
  const diskFull = () => new AgentAuthError("store_failed", "the disk is full", { class: "store", hint: "make room" });

  it("is tried again for two seconds", async () => {
    const scene = await loggedIn();
    let failures = 3;
    const store = withSave(scene.store, () => {
      if (failures-- > 0) throw diskFull();
    });
    const since = scene.clock.waits.length;
    expect((await scene.agent({ store }).token(scene.mcp.url)).value).toBe("access-as-2");
    expect(scene.clock.waits.slice(since)).toEqual([100, 400, 1500]);
    expect(scene.refreshes()).toBe(1);
  });

  it("keeps a token that still lives from being returned, since the one after it is already used", async () => {
    const scene = await loggedIn();
    await scene.agent().token(scene.mcp.url);
    await scene.clock.sleep(HOUR - 30_000, SIGNAL);
    const store = withSave(scene.store, () => {
      throw diskFull();
    });
    expect(await pendingError(scene.agent({ store }).token(scene.mcp.url))).toMatchObject({ code: "grant_not_saved" });
  });

  it("is the reason that is reported by another process that finds the refresh token used up", async () => {
    const scene = await loggedIn();
    const store = withSave(scene.store, () => {
      throw diskFull();
    });
    expect(await pendingError(scene.agent({ store }).token(scene.mcp.url))).toMatchObject({ code: "grant_not_saved" });
    scene.issuer.routes[TOKEN] = refusal;
    expect(await pendingError(scene.agent({ login: undefined }).token(scene.mcp.url))).toMatchObject({
      code: "login_required",
      message: expect.stringContaining("got no response that could be stored"),
    });
  });

  it("ends in an error that says what is lost, how to mend it, and no token", async () => {
    const scene = await loggedIn();
    const store = withSave(scene.store, () => {
      throw diskFull();
    });
    const agent = scene.agent({ store });
    const error = await agent.token(scene.mcp.url).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "grant_not_saved",
      class: "store",
      hint: "make room",
      message: expect.stringMatching(/the disk is full.*used up/),
    });
    expect(inspect(error, { depth: 9 })).not.toMatch(/access-as|refresh-as/);
    expect(inspect(agent, { depth: 9 })).not.toMatch(/access-as|refresh-as/);
  });

  it("gets no second request after an error of another kind, and the tokens are not lost by it", async () => {
    const scene = await loggedIn();
    let broken = true;
    const store = withSave(scene.store, () => {
      if (broken) throw new RangeError("a bug");
    });
    const agent = scene.agent({ store });
    const since = scene.clock.waits.length;
    await expect(agent.token(scene.mcp.url)).rejects.toThrow(RangeError);
    expect(scene.clock.waits).toHaveLength(since);
    broken = false;
    expect((await agent.token(scene.mcp.url)).value).toBe("access-as-2");
    expect(scene.refreshes()).toBe(1);
  });
});

describe("a server that refuses every token", () => {
  const ask = (scene: Scene, over = {}) => scene.agent({ login: undefined, ...over }).fetch(scene.mcp.url);

  async function refusing(): Promise<LoggedIn> {
    const scene = await loggedIn();
    await scene.agent().token(scene.mcp.url);
    scene.mcp.accepts = () => false;
    return scene;
  }

  it("holds the brake for one login: for no other server, profile or account", async () => {
    const scene = await refusing();
    const second = await startMcp("mcp2", scene.log, scene.issuer);
    second.accepts = () => false;
    const others = [{ profile: "work" }, { loginHint: "ann@example.com" }];
    await scene.agent().login(second.url);
    for (const other of others) await scene.agent(other).login(scene.mcp.url);
    for (let nth = 0; nth < 3; nth++) await ask(scene);
    expect(await pendingError(ask(scene))).toMatchObject({ code: "renewal_storm" });
    const before = scene.refreshes();
    expect((await scene.agent({ login: undefined }).fetch(second.url)).status).toBe(401);
    for (const other of others) expect((await ask(scene, other)).status).toBe(401);
    expect(scene.refreshes()).toBe(before + 3);
  });

  it("holds the brake for no other issuer", async () => {
    const scene = await refusing();
    const issuer = await scene.another("as2");
    const second = await startMcp("mcp2", scene.log, issuer);
    second.accepts = () => false;
    await scene.agent().login(second.url);
    for (let nth = 0; nth < 3; nth++) await ask(scene);
    expect(await pendingError(ask(scene))).toMatchObject({ code: "renewal_storm" });
    expect((await scene.agent({ login: undefined }).fetch(second.url)).status).toBe(401);
    expect(issuer.to(TOKEN)).toHaveLength(2);
  });

  it("is not braked by refreshes that were due or requested", async () => {
    const scene = await loggedIn();
    scene.issuer.tokenAnswer = { expires_in: 2 };
    const agent = scene.agent({ login: undefined });
    for (let nth = 0; nth < 4; nth++) {
      await agent.token(scene.mcp.url);
      await scene.clock.sleep(2000, SIGNAL);
    }
    for (let nth = 0; nth < 4; nth++) await agent.token(scene.mcp.url, { forceRefresh: true });
    expect(scene.refreshes()).toBe(8);
    scene.mcp.accepts = () => false;
    expect((await ask(scene)).status).toBe(401);
    expect(scene.refreshes()).toBe(9);
  });
});
