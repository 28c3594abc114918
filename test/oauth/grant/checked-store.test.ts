import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import { checkedStore } from "../../../src/oauth/grant/checked-store.js";
import type { Grant } from "../../../src/oauth/model/grant.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import type { Lease } from "../../../src/oauth/model/lease.js";
import { SECRET_MASK, Secret } from "../../../src/redact.js";
import { memoryStore } from "../../../src/store/memory.js";
import { createEvents } from "../../../src/telemetry/emit.js";
import { pendingError } from "../../helpers/captured.js";
import { madeClient, madeGrant } from "../../helpers/grant.js";

const KEY = { profile: "default", server: "https://mcp.example/mcp" };
const FAILED = new AgentAuthError("store_failed", "disk full", { class: "store" });

/** A store that is watched, and what was seen of it. */
function watched(over: Partial<GrantStore> = {}) {
  const seen: object[] = [];
  const inner = { ...memoryStore(), ...over };
  const onEvent = ({ durationMs, ...event }: { durationMs: number }) => {
    expect(durationMs).toBeGreaterThanOrEqual(0);
    seen.push(event);
  };
  return { inner, seen, store: checkedStore(inner, createEvents(onEvent as never)) };
}

describe("the events of a store", () => {
  it("say what was done, and that another process had changed the login", async () => {
    const { store, seen } = watched();
    const grant = madeGrant();
    expect(await store.save(grant, undefined)).toBe(true);
    expect(await store.save(grant, undefined)).toBe(false);
    const room = await store.reserve(grant);
    expect(await room.save({ ...grant, generation: grant.generation + 1 }, grant.generation)).toBe(true);
    await room.release();
    expect((await store.read(grant))?.generation).toBe(grant.generation + 1);
    expect(await store.list()).toHaveLength(1);
    await store.remove(grant);
    expect(await store.read(grant)).toBeUndefined();
    const done = (operation: string, outcome = "ok") => ({ type: "store", operation, outcome });
    expect(seen).toEqual([
      done("save"),
      done("save", "conflict"),
      done("reserve"),
      done("save"),
      done("list"),
      done("remove"),
    ]);
  });

  it("say that the store failed", async () => {
    const fails = () => Promise.reject(FAILED);
    const { store, seen } = watched({ read: fails, save: fails, reserve: fails, remove: fails, list: fails });
    const grant = madeGrant();
    for (const work of [
      () => store.read(KEY),
      () => store.save(grant, undefined),
      () => store.reserve(KEY),
      () => store.remove(KEY),
      () => store.list(),
    ])
      await expect(work()).rejects.toBe(FAILED);
    expect(seen).toEqual(
      ["read", "save", "reserve", "remove", "list"].map((operation) => {
        return { type: "store", operation, outcome: "failed", code: "store_failed" };
      }),
    );
  });

  it.each<[string, string]>([
    ["refresh a b", "refresh"],
    ["login a", "login"],
    ["grant a", "request"],
    ["client a", "other"],
    ["refreshing", "other"],
  ])("say what the lease %j is for", async (name, operation) => {
    const { store, seen } = watched();
    expect(await store.lease(name, async () => 7, { durationMs: 1000 })).toBe(7);
    expect(seen).toEqual([{ type: "lease", operation, wait: "none", takeover: "none" }]);
  });

  it.each<[Partial<Lease>, string, string]>([
    [{ waited: true }, "held", "none"],
    [{ waited: false, previous: { ended: "released" } as never }, "none", "none"],
    [{ waited: false, previous: { ended: "died" } as never }, "none", "died"],
    [{ waited: true, previous: { ended: "expired" } as never }, "held", "expired"],
  ])("say how a lease was had: %j", async (lease, wait, takeover) => {
    const over = { lease: ((_name: string, work: (got: unknown) => unknown) => work(lease)) as never };
    const { store, seen } = watched(over);
    const failing = store.lease("login a", () => Promise.reject(FAILED), { durationMs: 1000 });
    await expect(failing).rejects.toBe(FAILED);
    expect(seen).toEqual([{ type: "lease", operation: "login", wait, takeover }]);
  });

  it("say that another process had the result, or that there was no lease", async () => {
    const results = [Promise.resolve(7), Promise.reject(FAILED)];
    for (const one of results) one.catch(() => undefined);
    const { store, seen } = watched({ lease: (() => results.shift()) as never });
    const lease = () => store.lease("login a", async () => 0, { durationMs: 1000 });
    expect(await lease()).toBe(7);
    await expect(lease()).rejects.toBe(FAILED);
    const details = { type: "lease", operation: "login", takeover: "none" };
    expect(seen).toEqual([
      { ...details, wait: "result" },
      { ...details, wait: "failed" },
    ]);
  });

  it("are not made without an observer", async () => {
    const inner = memoryStore();
    const store = checkedStore(inner, createEvents());
    expect(await store.save(madeGrant(), undefined)).toBe(true);
    expect(await store.list()).toHaveLength(1);
    expect(await store.read(madeGrant())).toBeDefined();
    expect(await store.lease("login a", async () => 7, { durationMs: 1000 })).toBe(7);
  });
});

describe("a store that is checked", () => {
  it("passes on everything else, and has no more than the store", async () => {
    const { store, inner } = watched();
    const client = madeClient();
    await store.saveClient(client, "form");
    expect(await store.readClient(client.issuer, "form")).toEqual(client);
    const binding = { profile: "default", clientId: "a", issuer: client.issuer, boundBy: "user", boundAt: 1 } as const;
    await store.saveBinding(binding as never, undefined);
    expect(await store.readBinding(binding)).toEqual(await inner.readBinding(binding));
    expect(await store.listBindings()).toHaveLength(1);
    await store.removeBinding(binding);
    expect(await store.listBindings()).toEqual([]);
    for await (const { items } of store.connections()) expect(items).toEqual([]);
    expect(store.location).toBe(inner.location);
    expect([store.shortLived, store.unrevoked]).toEqual([inner.shortLived, inner.unrevoked]);
    const without = { shortLived: undefined, unrevoked: undefined, health: undefined, for: undefined };
    const less = Object.keys(watched(without as never).store);
    for (const name of Object.keys(without)) expect(less).not.toContain(name);
  });

  it("watches the store of a tenant, and asks the store how it is", async () => {
    const tenants: unknown[] = [];
    const { store, seen } = watched({
      for(this: GrantStore, partition) {
        tenants.push(partition, this.location);
        return memoryStore();
      },
      async health(this: GrantStore) {
        return { errors: [this.location], risks: [] };
      },
    });
    await store.for?.({ tenant: "one" }).remove(KEY);
    expect(tenants).toEqual([{ tenant: "one" }, store.location]);
    expect(seen).toEqual([{ type: "store", operation: "remove", outcome: "ok" }]);
    expect(await store.health?.({ signal: undefined })).toEqual({ errors: [store.location], risks: [] });
  });

  const good = madeGrant({ client: madeClient(), proofKey: new Secret("proof-key") });
  const withTokens = (tokens: object) => ({ ...good, tokens: { ...good.tokens, ...tokens } });

  it.each<[string, unknown]>([
    ["no secret as its access token", withTokens({ accessToken: "a" })],
    ["no access token", withTokens({ accessToken: undefined })],
    ["a masked access token", withTokens({ accessToken: new Secret(SECRET_MASK) })],
    ["no secret as its refresh token", withTokens({ refreshToken: "r" })],
    ["no secret as its id token", withTokens({ idToken: "i" })],
    ["no secret as its key", { ...good, proofKey: "k" }],
    ["no secret as that of its client", { ...good, client: { ...good.client, clientSecret: "c" } }],
    ["no tokens", { ...good, tokens: undefined }],
  ])("returns no grant with %s", async (_what, grant) => {
    const { store } = watched({ read: async () => grant as Grant, list: async () => [good, grant as Grant] });
    const lost = { code: "store_failed", class: "store", message: expect.stringContaining("so they are lost") };
    expect(await pendingError(store.read(KEY))).toMatchObject(lost);
    expect(await pendingError(store.list())).toMatchObject(lost);
  });

  it.each<[string, unknown]>([
    ["all of its secrets", good],
    ["null for those that it has not", { ...withTokens({ refreshToken: null, idToken: null }), proofKey: null }],
    ["no client", { ...good, client: undefined }],
  ])("returns a grant with %s", async (_what, grant) => {
    const { store } = watched({ read: async () => grant as Grant });
    expect(await store.read(KEY)).toBe(grant);
  });
});
