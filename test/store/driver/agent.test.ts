import { describe, expect, it } from "vitest";
import type { AgentClient } from "../../../src/oauth/agent.js";
import type { Grant } from "../../../src/oauth/model/grant.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import { type GrantStoreOptions, openGrantStore } from "../../../src/store/driver/grant-store.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";
import { pendingError } from "../../helpers/captured.js";
import { startScene } from "../../helpers/issuer.js";
import { until } from "../../helpers/server.js";
import { HOUR, SIGNAL, TOKEN } from "../../oauth/grant/support.js";
import { testRing } from "../seal/support.js";
import { failover, faulty, lost, TestTime } from "./support.js";

/** Two machines with an agent each, over one engine, after a login whose token has ended. */
async function machines(options: Partial<GrantStoreOptions> = {}) {
  const scene = await startScene();
  const time = new TestTime();
  const driver = memoryDriver({ clock: time });
  const open = () => {
    const clock = time.process();
    const own = faulty(driver);
    const store = openGrantStore(own, { seal: testRing(), takeover: "fast", ...options }, { clock });
    return { clock, driver: own, store, agent: scene.agent({ store, login: undefined }) };
  };
  const [one, other] = [open(), open()];
  const another = open;
  await scene.agent({ store: one.store }).login(scene.mcp.url);
  await scene.clock.sleep(HOUR, SIGNAL);
  const key = { profile: "default", server: scene.mcp.url };
  const token = async (agent: AgentClient) => (await agent.token(scene.mcp.url)).value;
  const refreshes = () => scene.issuer.to(TOKEN).length - 1;
  /** Moves the time of the engine until the work is done: so slowly that what threads and sockets do takes a part of it. */
  const during = async <T>(work: Promise<T>): Promise<T> => {
    let isDone = false;
    const end = () => {
      isDone = true;
    };
    work.then(end, end);
    while (!isDone) {
      await time.advance(25);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return work;
  };
  return { ...scene, time, engine: driver, one, other, another, key, token, refreshes, during };
}

/** Lets the issuer answer when a test says so. */
function held(scene: Awaited<ReturnType<typeof machines>>): () => void {
  let answer: () => void = () => undefined;
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const { issuer } = scene;
  issuer.routes[TOKEN] = async (_request, nth) => {
    await answered;
    return { json: issuer.tokens(nth) };
  };
  return answer;
}

describe("agents on two machines that share an engine", () => {
  it("refresh a token once", async () => {
    const { one, other, token, refreshes, during } = await machines();
    const tokens = await during(Promise.all([one, other, one, other].map(({ agent }) => token(agent))));
    expect(new Set(tokens)).toEqual(new Set(["access-as-2"]));
    expect(refreshes()).toBe(1);
  });

  it("send nothing after one stood still, and the other takes over", async () => {
    const { one, other, time, token, refreshes, during } = await machines();
    // The machine stands still between its claim and its request.
    one.driver.after.extend = async () => {
      delete one.driver.after.extend;
      one.clock.isStalled = true;
      await time.advance(5000);
    };
    expect(await pendingError(token(one.agent))).toMatchObject({ code: "lease_lost" });
    expect(refreshes()).toBe(0);
    expect(await during(token(other.agent))).toBe("access-as-2");
  });

  it("ask again four seconds after one was killed in the middle of a refresh", async () => {
    const scene = await machines();
    const { one, other, time, token, refreshes } = scene;
    held(scene);
    void token(one.agent).catch(() => undefined);
    await until(() => refreshes() === 1);
    one.clock.isStalled = true;
    one.driver.before.release = lost;
    const { issuer } = scene;
    issuer.routes[TOKEN] = (_request, nth) => ({ json: issuer.tokens(nth) });
    const next = token(other.agent);
    next.catch(() => undefined);
    await until(() => other.driver.calls.claim > 0);
    await time.advance(3000);
    expect(refreshes()).toBe(1);
    expect(await scene.during(next)).toBe("access-as-3");
    expect(issuer.form(TOKEN, 2).get("refresh_token")).toBe("refresh-as-1");
  });

  it("send nothing where one that stood still saves right before the other sends", async () => {
    const scene = await machines();
    const { one, other, time, token, refreshes } = scene;
    const answer = held(scene);
    const late = token(one.agent);
    await until(() => refreshes() === 1);
    for (const { clock } of [one, other]) clock.isStalled = true;
    await time.advance(5000);
    let isExtending = false;
    other.driver.before.extend = async () => {
      isExtending = true;
      answer();
      await late;
    };
    const next = token(other.agent);
    while (!isExtending) {
      await time.advance(25);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(await scene.during(next)).toBe("access-as-2");
    expect(refreshes()).toBe(1);
  });

  it("use the token that was stored first, where both have refreshed", async () => {
    const scene = await machines();
    const { one, other, key, token, refreshes, engine } = scene;
    const answer = held(scene);
    const late = token(one.agent);
    await until(() => refreshes() === 1);
    const stored = (await other.store.read(key)) as Grant;
    const { tokens } = stored;
    const newer = { ...tokens, obtainedAt: scene.clock.epoch(), expiresAt: scene.clock.epoch() + HOUR };
    await other.store.save({ ...stored, tokens: newer, generation: stored.generation + 1 }, stored.generation);
    answer();
    expect(await late).toBe(tokens.accessToken.reveal());
    expect((await engine.scan({ kind: "grant" }, { limit: 5 })).items).toHaveLength(1);
  });

  it.each(["refreshed", "logged out"])(
    "send nothing of an older record that is put back after it was %s",
    async (how) => {
      const { one, other, another, engine, token, refreshes, during, clock, mcp } = await machines();
      const putBack = await failover(engine, "grant");
      await during<unknown>(how === "refreshed" ? token(one.agent) : one.agent.disconnect(mcp.url));
      const sent = refreshes();
      await putBack();
      await clock.sleep(HOUR, SIGNAL);
      for (const { agent } of [another(), other]) {
        const failed = expect(during(token(agent))).rejects;
        await failed.toMatchObject({ code: "record_rolled_back", class: "store", remedy: { action: "login" } });
      }
      expect(refreshes()).toBe(sent);
    },
  );

  it("revoke the tokens of a refresh that met a logout", async () => {
    const scene = await machines();
    const { one, other, key, token, refreshes, issuer } = scene;
    const answer = held(scene);
    const late = token(one.agent);
    const failed = expect(late).rejects.toMatchObject({ code: "login_required" });
    await until(() => refreshes() === 1);
    expect((await other.agent.disconnect(scene.mcp.url)).removed).toBe(true);
    answer();
    await failed;
    expect(await one.store.read(key)).toBeUndefined();
    const revoked = issuer.to("/pool/revoke").map((_, nth) => issuer.form("/pool/revoke", nth).get("token"));
    expect(revoked).toContain("refresh-as-2");
  });

  it("lose no session where a failover loses the refreshed token", async () => {
    const { one, other, engine, token, refreshes } = await machines();
    const fail = await failover(engine, "grant");
    expect(await token(one.agent)).toBe("access-as-2");
    await fail();
    expect(await token(one.agent)).toBe("access-as-2");
    expect(await token(other.agent)).toBe("access-as-2");
    expect(refreshes()).toBe(1);
  });

  it("never refresh without the lease", async () => {
    const { one, token, refreshes } = await machines();
    one.driver.before.claim = lost;
    expect(await pendingError(token(one.agent))).toMatchObject({ code: "store_unavailable", retryable: true });
    delete one.driver.before.claim;
    one.driver.before.extend = lost;
    expect(await pendingError(token(one.agent))).toMatchObject({ code: "store_unavailable", class: "unavailable" });
    expect(refreshes()).toBe(0);
  });

  it("save what was refreshed as soon as the engine is back", async () => {
    const { one, other, token, refreshes, during } = await machines();
    const down = () => {
      one.driver.before = { get: lost, put: lost, extend: lost, release: lost };
    };
    one.driver.after.extend = down;
    // The lease was committed; the engine dies before the answer of the issuer.
    expect(await pendingError(token(one.agent))).toMatchObject({ code: "grant_not_saved", class: "store" });
    one.driver.before = {};
    one.driver.after = {};
    expect(await during(token(one.agent))).toBe("access-as-2");
    expect(await token(other.agent)).toBe("access-as-2");
    expect(refreshes()).toBe(1);
  });

  it.each([
    ["asks before the other one", 0],
    ["asks while the other one has taken over and waits for it", 4500],
  ])("send nothing while one has what it could not save, and %s", async (_, after) => {
    const { one, other, time, token, refreshes, during } = await machines();
    one.driver.after.extend = () => {
      one.driver.before = { get: lost, put: lost, extend: lost };
    };
    expect(await pendingError(token(one.agent))).toMatchObject({ code: "grant_not_saved", retryable: true });
    await time.advance(after);
    const claims = other.driver.calls.claim;
    const theirs = token(other.agent);
    theirs.catch(() => undefined);
    await until(() => other.driver.calls.claim > claims);
    one.driver.before = {};
    one.driver.after = {};
    expect(await during(Promise.all([token(one.agent), theirs]))).toEqual(["access-as-2", "access-as-2"]);
    expect(refreshes()).toBe(1);
  });

  /** The engine of the first one dies after its refresh token was sent, and the first one does not call again. */
  async function notSaved() {
    const scene = await machines();
    const { one, token } = scene;
    one.driver.after.extend = () => {
      one.driver.before = { get: lost, put: lost, extend: lost, release: lost };
    };
    expect(await pendingError(token(one.agent))).toMatchObject({ code: "grant_not_saved", retryable: true });
    one.driver.after = {};
    one.driver.calls.release = 0;
    const back = () => {
      one.driver.before = {};
    };
    /** Lets time pass so slowly that heartbeats, which are sealed in threads, keep up. */
    const pass = async (ms: number) => {
      for (let passed = 0; passed < ms; passed += 250) {
        await scene.time.advance(250);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    };
    return { ...scene, back, pass };
  }

  it("lose no token that one saves without another call, when the engine is back", async () => {
    const { one, other, pass, token, refreshes, during, back } = await notSaved();
    await pass(3000);
    back();
    await pass(7000);
    expect(await during(token(other.agent))).toBe("access-as-2");
    expect(refreshes()).toBe(1);
    expect(one.driver.calls.release).toBe(1);
  });

  it("send nothing while one holds its lease, because only its saves fail", async () => {
    const { one, other, pass, token, refreshes, during, back } = await notSaved();
    one.driver.before = { put: lost };
    await pass(20_000);
    const theirs = token(other.agent);
    await pass(5000);
    expect(refreshes()).toBe(1);
    back();
    expect(await during(theirs)).toBe("access-as-2");
    expect(refreshes()).toBe(1);
  });

  it("save what one holds also if another one takes over at the moment at which the engine is back", async () => {
    const { other, time, token, refreshes, during, back } = await notSaved();
    await time.advance(30_000);
    const theirs = token(other.agent);
    await until(() => other.driver.calls.claim > 0);
    back();
    expect(await during(theirs)).toBe("access-as-2");
    expect(refreshes()).toBe(1);
  });

  it("revoke what one could not save before a logout, and try no longer", async () => {
    const { one, other, mcp, issuer, pass, back } = await notSaved();
    await other.agent.disconnect(mcp.url);
    back();
    await pass(1000);
    await until(() => one.driver.calls.release > 0);
    const revoked = issuer.to("/pool/revoke").map((_, nth) => issuer.form("/pool/revoke", nth).get("token"));
    expect(revoked).toContain("refresh-as-2");
    const { get } = one.driver.calls;
    await pass(5000);
    expect(one.driver.calls.get).toBe(get);
  });

  it("have one try and few heartbeats under way while the engine does not answer", async () => {
    const { one, pass } = await notSaved();
    const { get, extend } = one.driver.calls;
    let answer: (value: unknown) => void = () => undefined;
    const silent = () => new Promise((resolve) => (answer = resolve));
    one.driver.before = { get: () => new Promise(() => undefined), extend: silent };
    await pass(3500);
    expect(one.driver.calls.get - get).toBe(1);
    delete one.driver.before.extend;
    answer(undefined);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(one.driver.calls.extend - extend).toBe(2);
  });

  it("try to save for ten minutes", async () => {
    const { one, time } = await notSaved();
    await time.advance(599_000);
    expect(one.driver.calls.release).toBe(0);
    await time.advance(2000);
    await until(() => one.driver.calls.release === 1);
    const { get, extend } = one.driver.calls;
    await time.advance(60_000);
    expect(one.driver.calls).toMatchObject({ get, extend });
  });

  it("register a client once for all tenants", async () => {
    const scene = await startScene();
    const driver = memoryDriver();
    const stores = ["ann", "bob"].map((tenant) => openGrantStore(driver, { seal: testRing(), tenant }, {}));
    await Promise.all(stores.map((store) => scene.agent({ store }).login(scene.mcp.url)));
    expect(scene.issuer.to("/pool/register")).toHaveLength(1);
  });
});

describe("a store that loses the tokens of its grants", () => {
  const broken = (): GrantStore => {
    const grants = new Map<string, string>();
    const inner = openGrantStore(memoryDriver(), { seal: "none" }, {});
    const read = async ({ server }: { server: string }) => {
      const text = grants.get(server);
      return text === undefined ? undefined : (JSON.parse(text) as Grant);
    };
    const save = async (grant: Grant) => {
      grants.set(grant.server, JSON.stringify(grant));
      return true;
    };
    const reserve = async () => ({ save, release: async () => undefined });
    return { ...inner, read, save, reserve, list: async () => [] };
  };

  it("is reported at the first login, by what it has to use", async () => {
    const scene = await startScene();
    const failing = scene.agent({ store: broken() }).login(scene.mcp.url);
    expect(await pendingError(failing)).toMatchObject({ code: "store_failed", class: "store" });
  });

  it("is reported before a refresh token is sent", async () => {
    const scene = await startScene();
    const store = broken();
    const login = scene.agent({ store }).login(scene.mcp.url);
    expect(await pendingError(login)).toMatchObject({ code: "store_failed" });
    await scene.clock.sleep(HOUR, SIGNAL);
    expect(await pendingError(scene.agent({ store }).token(scene.mcp.url))).toMatchObject({ code: "store_failed" });
    expect(scene.issuer.to(TOKEN)).toHaveLength(1);
  });
});
