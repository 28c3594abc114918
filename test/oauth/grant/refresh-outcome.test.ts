import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import {
  describeLoss,
  isLastToken,
  isLostResponse,
  markLost,
  mayHaveBeenUsed,
  unsavedFor,
} from "../../../src/oauth/grant/send-refresh.js";
import type { Progress } from "../../../src/oauth/http/http.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import type { PreviousAttempt } from "../../../src/oauth/model/lease.js";
import { fileStore } from "../../../src/store/file/file.js";
import { memoryStore } from "../../../src/store/memory.js";
import { pendingError } from "../../helpers/captured.js";
import { madeGrant, plainGrant } from "../../helpers/grant.js";
import { type Handler, type Reply, reset, startScene } from "../../helpers/issuer.js";
import { folder } from "../../store/stores.js";

const SIGNAL = new AbortController().signal;
const TOKEN = "/pool/token";
const HOUR = 3_600_000;
const refusal: Reply = { status: 400, json: { error: "invalid_grant" } };

/** A scene with a stored login whose access token has 30 s to live. */
async function loggedIn(store: GrantStore = memoryStore()) {
  const made = await startScene();
  const scene = { ...made, store, agent: (over = {}) => made.agent({ store, login: undefined, ...over }) };
  await made.agent({ store }).login(scene.mcp.url);
  await scene.clock.sleep(HOUR - 30_000, SIGNAL);
  const read = async () => {
    const grant = await store.read({ profile: "default", server: scene.mcp.url });
    if (grant === undefined) throw new Error("cannot be");
    return grant;
  };
  return {
    ...scene,
    read,
    stored: async () => plainGrant(await read()),
    token: async (over = {}) => (await scene.agent().token(scene.mcp.url, over)).value,
    expire: () => scene.clock.sleep(30_000, SIGNAL),
    refreshes: () => scene.issuer.to(TOKEN).length - 1,
    answers: (route: Reply | Handler) => {
      scene.issuer.routes[TOKEN] = route;
    },
    answersAgain: () => {
      scene.issuer.routes[TOKEN] = (_request, nth) => ({ json: scene.issuer.tokens(nth) });
    },
  };
}

/** A store in which an earlier attempt has left a trace in the lease. */
function traced(store: GrantStore, before: Partial<PreviousAttempt>): GrantStore {
  const attempt = { at: 1, endedAt: undefined, ended: "died", committed: true, failure: undefined, ...before } as const;
  return {
    ...store,
    lease: (name, work, options) => store.lease(name, (lease) => work({ ...lease, previous: attempt }), options),
  };
}

const stores = [
  ["memoryStore", memoryStore],
  ["fileStore", () => fileStore(folder())],
] as const;

describe.each(stores)("a refresh whose answer is lost while the access token lives, over one %s", (_name, open) => {
  it("is not sent a second time: the token is used until it expires, and the stored grant is marked", async () => {
    const scene = await loggedIn(open());
    const before = await scene.stored();
    scene.answers(reset);
    const said: Progress[] = [];
    const agent = scene.agent({ onProgress: (progress: Progress) => said.push(progress) });
    expect((await agent.token(scene.mcp.url)).value).toBe("access-as-1");
    expect(said.at(-1)?.text).toMatch(/was lost \(connection_reset\): the stored token is used until it expires/);
    await scene.clock.sleep(15_000, SIGNAL);
    expect(await scene.token()).toBe("access-as-1");
    expect(await scene.token({ minTtl: 600 })).toBe("access-as-1");
    expect(scene.refreshes()).toBe(1);
    expect(await scene.stored()).toEqual({
      ...before,
      generation: (before.generation ?? 0) + 1,
      lostRefresh: { at: scene.clock.epoch() - 15_000, code: "connection_reset", generation: before.generation },
    });
  });

  it("is tried again once the token has expired, and the answer removes the mark", async () => {
    const scene = await loggedIn(open());
    scene.answers(reset);
    await scene.token();
    await scene.expire();
    scene.answersAgain();
    expect(await scene.token()).toBe("access-as-3");
    expect(scene.issuer.form(TOKEN, 2).get("refresh_token")).toBe("refresh-as-1");
    expect((await scene.stored()).lostRefresh).toBeUndefined();
  });

  it("costs a session at a strict issuer only when the token has expired, and the reason names the loss", async () => {
    const scene = await loggedIn(open());
    scene.answers(reset);
    await scene.token();
    scene.answers(refusal);
    expect(await scene.token()).toBe("access-as-1");
    expect((await scene.stored()).retired).toBeUndefined();
    await scene.expire();
    expect(await pendingError(scene.token())).toMatchObject({
      code: "login_required",
      message: expect.stringContaining("got no response that could be stored"),
    });
    expect(scene.refreshes()).toBe(2);
    expect((await scene.stored()).lostRefresh).toBeUndefined();
  });
});

describe("a refresh whose answer is lost while the access token lives", () => {
  it("is what the refusal is explained by also after another failure", async () => {
    const scene = await loggedIn();
    scene.answers(reset);
    await scene.token();
    await scene.expire();
    scene.answers({ status: 503, text: "" });
    expect(await pendingError(scene.token())).toMatchObject({ class: "unavailable" });
    scene.answers(refusal);
    expect(await pendingError(scene.token())).toMatchObject({
      message: expect.stringMatching(
        /invalid_grant; the response to the refresh of \S+Z was lost \(connection_reset\)$/,
      ),
    });
  });

  it("is an error for a caller that forces a refresh, who may force another one", async () => {
    const scene = await loggedIn();
    scene.answers(reset);
    expect(await pendingError(scene.token({ forceRefresh: true }))).toMatchObject({ code: "connection_reset" });
    expect(scene.refreshes()).toBe(1);
    expect(await scene.token()).toBe("access-as-1");
    expect(scene.refreshes()).toBe(1);
    scene.answersAgain();
    expect(await scene.token({ forceRefresh: true })).toBe("access-as-3");
  });

  it("is sent once more at once where the server has refused the access token", async () => {
    const scene = await loggedIn();
    scene.answers(reset);
    await scene.token();
    scene.answers((_request, nth) => (nth === 3 ? reset : { json: scene.issuer.tokens(nth) }));
    scene.mcp.accepts = (token) => token !== "access-as-1";
    expect((await scene.agent().fetch(scene.mcp.url)).status).toBe(200);
    expect(scene.refreshes()).toBe(3);
    expect((await scene.stored()).lostRefresh).toBeUndefined();
  });

  it("does not stop the answer of another process from being stored", async () => {
    const scene = await loggedIn();
    scene.answers(async (_request, nth) => {
      // A process that cannot see whether this one lives takes the answer for lost.
      const grant = await scene.read();
      await scene.store.save(markLost(grant, "interrupted", scene.clock.epoch()), grant.generation);
      return { json: scene.issuer.tokens(nth) };
    });
    expect(await scene.token()).toBe("access-as-2");
    const stored = await scene.stored();
    expect(stored).toMatchObject({
      generation: 3,
      tokens: { accessToken: "access-as-2", refreshToken: "refresh-as-2" },
    });
    expect(stored.lostRefresh).toBeUndefined();
  });

  it("does not stop this process from storing the answer that it could not store before", async () => {
    const scene = await loggedIn();
    let isBroken = true;
    const store: GrantStore = {
      ...scene.store,
      reserve: async (key) => {
        const room = await scene.store.reserve(key);
        const diskFull = () => Promise.reject(new AgentAuthError("store_failed", "disk full", { class: "store" }));
        return { ...room, save: (...args) => (isBroken ? diskFull() : room.save(...args)) };
      },
    };
    const agent = scene.agent({ store });
    expect(await pendingError(agent.token(scene.mcp.url))).toMatchObject({ code: "grant_not_saved" });
    // The other process finds the trace of a refresh that was not stored.
    isBroken = false;
    expect(await scene.token()).toBe("access-as-1");
    expect((await scene.stored()).lostRefresh).toMatchObject({ code: "grant_not_saved" });
    expect((await agent.token(scene.mcp.url)).value).toBe("access-as-2");
    const stored = await scene.stored();
    expect(stored).toMatchObject({ tokens: { refreshToken: "refresh-as-2" } });
    expect(stored.lostRefresh).toBeUndefined();
    expect(scene.refreshes()).toBe(1);
  });

  it("leaves the token in use where the mark cannot be stored", async () => {
    const scene = await loggedIn();
    const store: GrantStore = {
      ...scene.store,
      reserve: async () => ({
        release: async () => {},
        save: () => Promise.reject(new AgentAuthError("store_failed", "disk full", { class: "store" })),
      }),
    };
    scene.answers(reset);
    expect((await scene.agent({ store }).token(scene.mcp.url)).value).toBe("access-as-1");
    expect(scene.refreshes()).toBe(1);
    expect((await scene.stored()).lostRefresh).toBeUndefined();
  });

  it("is shown by status", async () => {
    const scene = await loggedIn();
    expect(await scene.agent().status()).toMatchObject([{ refresh_lost_at: null }]);
    scene.answers(reset);
    await scene.token();
    const at = new Date(scene.clock.epoch()).toISOString();
    expect(await scene.agent().status()).toMatchObject([{ state: "valid", refresh_lost_at: at }]);
  });
});

describe("a refresh that another process did not finish while the access token lives", () => {
  it.each<[string, Partial<PreviousAttempt>]>([
    ["died", { ended: "died" }],
    ["ran out of time", { ended: "expired" }],
    [
      "could not mark it",
      { ended: "released", failure: new AgentAuthError("timeout", "t", { class: "unavailable" }).toJSON() },
    ],
  ])("is not sent a second time where its process %s: the grant is marked", async (_what, before) => {
    const scene = await loggedIn();
    const store = traced(scene.store, before);
    expect((await scene.agent({ store }).token(scene.mcp.url)).value).toBe("access-as-1");
    expect(scene.refreshes()).toBe(0);
    expect((await scene.stored()).lostRefresh).toMatchObject({ code: before.failure?.code ?? "interrupted" });
  });

  it.each<[string, Partial<PreviousAttempt>]>([
    ["had not sent it", { committed: false }],
    [
      "had an answer",
      { ended: "released", failure: new AgentAuthError("http_error", "503", { class: "unavailable" }).toJSON() },
    ],
  ])("is sent where its process %s", async (_what, before) => {
    const scene = await loggedIn();
    const store = traced(scene.store, before);
    expect((await scene.agent({ store }).token(scene.mcp.url)).value).toBe("access-as-2");
  });

  it("is sent for a caller that forces a refresh, and once the token has expired", async () => {
    const scene = await loggedIn();
    const agent = scene.agent({ store: traced(scene.store, {}) });
    expect((await agent.token(scene.mcp.url, { forceRefresh: true })).value).toBe("access-as-2");
    await scene.clock.sleep(HOUR, SIGNAL);
    expect((await agent.token(scene.mcp.url)).value).toBe("access-as-3");
  });
});

describe("a refresh token that was sent before", () => {
  const attempt = (over: Partial<PreviousAttempt>): PreviousAttempt => ({
    at: 0,
    endedAt: undefined,
    ended: "released",
    committed: true,
    failure: undefined,
    ...over,
  });
  const failure = (code: string) => new AgentAuthError(code, "m", { class: "unavailable" }).toJSON();
  const BEGAN = "; the refresh that began at 1970-01-01T00:00:00.000Z";
  const lostRefresh = { at: 0, code: "timeout", generation: 1 };

  it.each<[Partial<PreviousAttempt>, boolean, string]>([
    [{ ended: "died" }, true, `${BEGAN} was interrupted when its process ended`],
    [{ ended: "expired" }, true, `${BEGAN} did not finish in time`],
    [{ failure: failure("timeout") }, true, `${BEGAN} got no response that could be stored`],
    [{ failure: failure("connection_reset") }, true, `${BEGAN} got no response that could be stored`],
    [{ failure: failure("bad_json") }, true, `${BEGAN} got no response that could be stored`],
    [{ failure: failure("grant_not_saved") }, true, `${BEGAN} got no response that could be stored`],
    [{ failure: failure("server_error") }, false, ""],
    [{}, false, ""],
    [{ ended: "died", committed: false }, false, ""],
  ])("may be used up after %j: %s", (over, expected, text) => {
    expect(mayHaveBeenUsed(attempt(over))).toBe(expected);
    expect(describeLoss(false, attempt(over), madeGrant())).toBe(text);
  });

  it("may not be where there was no attempt, unless it was sent twice now, or the grant says so", () => {
    expect(mayHaveBeenUsed(undefined)).toBe(false);
    expect(describeLoss(false, undefined, madeGrant())).toBe("");
    expect(describeLoss(true, undefined, madeGrant())).toBe("; the response to the first attempt was lost");
    expect(describeLoss(false, undefined, madeGrant({ lostRefresh }))).toBe(
      "; the response to the refresh of 1970-01-01T00:00:00.000Z was lost (timeout)",
    );
  });

  it("is not sent again while the access token is valid", () => {
    const { expiresAt = 0 } = madeGrant().tokens;
    expect(isLastToken(madeGrant({ lostRefresh }), expiresAt - 1)).toBe(true);
    expect(isLastToken(madeGrant({ lostRefresh }), expiresAt)).toBe(false);
    expect(isLastToken(madeGrant(), expiresAt - 1)).toBe(false);
    expect(isLastToken(madeGrant({ lostRefresh, retired: { at: 1, reason: "x" } }), expiresAt - 1)).toBe(false);
  });

  it.each([
    ["timeout", "unavailable", true],
    ["connection_reset", "unavailable", true],
    ["bad_json", "unavailable", true],
    ["bad_json", "refused", false],
    ["server_error", "unavailable", false],
    ["grant_not_saved", "unavailable", false],
  ] as const)("may have had an answer that was lost: %s (%s): %s", (code, kind, expected) => {
    expect(isLostResponse(new AgentAuthError(code, "m", { class: kind }))).toBe(expected);
  });

  it("belongs to the tokens that this process could not save, of the same login alone", () => {
    const current = madeGrant({ generation: 4 });
    const name = JSON.stringify(["default", "https://mcp.example/mcp", undefined, "access-token-1"]);
    const unsaved = new Map([[name, madeGrant({ generation: 2 })]]);
    expect(unsavedFor({ unsaved }, current)?.generation).toBe(5);
    expect(unsavedFor({ unsaved }, madeGrant({ signedInAt: 1 }))).toBeUndefined();
    expect(unsavedFor({ unsaved: new Map() }, current)).toBeUndefined();
  });
});

it("refreshed tokens that an engine does not take for the moment can be saved by another call", async () => {
  const scene = await loggedIn();
  const down = new AgentAuthError("store_unavailable", "no answer", { class: "unavailable" });
  const { reserve } = scene.store;
  scene.store.reserve = async (key) => ({
    ...(await reserve(key)),
    save: async () => {
      throw down;
    },
  });
  await expect(scene.token()).rejects.toMatchObject({
    code: "grant_not_saved",
    class: "store",
    retryable: true,
    message: `the issuer refreshed the token for "${scene.mcp.url}", but the new one cannot be stored in "memory": no answer; the stored refresh token is used up`,
    hint: "call again from this process, which saves the token when the store answers",
    remedy: { action: "retry" },
  });
});
