import { describe, expect, it, vi } from "vitest";
import { MovableClock } from "../../../src/sandbox/http/clock.js";
import { OAuthStore } from "../../../src/sandbox/oauth/oauth-store.js";

const START = 1_790_000_000_000;

function make(reuseGrace = 0) {
  const clock = new MovableClock(() => START);
  const store = new OAuthStore({ clock, reuseGrace, reused: () => new Error("reused") });
  return { clock, store };
}

describe("the store of an authorization server", () => {
  it("decides which of two requests uses a thing up, and revokes the grant at the second", async () => {
    const { store } = make();
    const [codes, tokens, grants] = ["AuthorizationCode", "RefreshToken", "Grant"].map((kind) => store.adapter(kind));
    await grants?.upsert("g", {});
    await tokens?.upsert("t", { grantId: "g" });
    await tokens?.upsert("other", { grantId: "g2" });
    await codes?.upsert("c", { grantId: "g" });
    const both = await Promise.allSettled([codes?.consume("c"), codes?.consume("c")]);
    expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(store.hasGrant("g")).toBe(false);
    expect(await tokens?.find("t")).toBeUndefined();
    expect(await tokens?.find("other")).toEqual({ grantId: "g2" });
    await expect(codes?.consume("never there")).rejects.toThrow("reused");
  });

  it("lets only refresh tokens come again while the grace lasts, counted from the first use", async () => {
    const { clock, store } = make(30);
    const [codes, tokens] = [store.adapter("AuthorizationCode"), store.adapter("RefreshToken")];
    for (const adapter of [codes, tokens]) {
      await adapter.upsert("x", {});
      await adapter.consume("x");
    }
    expect(await codes.find("x")).toEqual({ consumed: true });
    clock.advance(20_000);
    await tokens.consume("x");
    expect(await tokens.find("x")).toEqual({});
    clock.advance(10_000);
    expect(await tokens.find("x")).toEqual({ consumed: true });
  });

  it("makes things older by as much as the clock was put forward, also when they are stored again", async () => {
    const { clock, store } = make();
    const sessions = store.adapter("Session");
    await sessions.upsert("s", { uid: "u", exp: 5000, loginTs: 1000, accountId: "alice" });
    clock.advance(60_000);
    const once = { uid: "u", exp: 4940, loginTs: 940, accountId: "alice" };
    expect(await sessions.findByUid("u")).toEqual(once);
    await sessions.upsert("s", once);
    clock.advance(60_000);
    expect(await sessions.find("s")).toEqual({ ...once, exp: 4880, loginTs: 880 });
  });

  it("keeps them as they are where the clock stands still, whatever the machine's does", () => {
    vi.useFakeTimers({ now: 1_000_700 });
    try {
      const clock = new MovableClock(() => 5_000_400);
      const seconds = () => Math.floor(Date.now() / 1000) + clock.skew;
      for (const ms of [0, 299, 1, 499, 1, 60_000]) {
        vi.advanceTimersByTime(ms);
        expect(seconds()).toBe(5000);
      }
      expect(new MovableClock(Date.now).skew).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it("forgets the oldest when it is full, and what it gave cannot be changed", async () => {
    const { store } = make();
    const clients = store.adapter("Client");
    for (let i = 0; i <= 10_000; i++) await clients.upsert(String(i), { name: "x" });
    expect([await clients.find("0"), await clients.find("1")]).toEqual([undefined, { name: "x" }]);
    const found = await clients.find("5");
    Object.assign(found ?? {}, { name: "y" });
    expect(await clients.find("5")).toEqual({ name: "x" });
  });
});
