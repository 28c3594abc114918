import { describe, expect, it } from "vitest";
import { CONNECTION_STATES, type Connection, type ConnectionPage } from "../../src/oauth/model/connection.js";
import { pendingError } from "../helpers/captured.js";
import { madeClient, madeGrant, plainGrant } from "../helpers/grant.js";
import { fc } from "../helpers/properties.js";
import { stores } from "./stores.js";

const LOWER = new RangeError("a generation must be higher than the one it replaces");
const KEY = { profile: "default", server: "https://mcp.example/mcp" };
const FORM = "http://127.0.0.1/callback";

describe.each(stores)("%s", (name, open) => {
  const hasClockOfEngine = name.startsWith("grantStore");

  it("has nothing at first", async () => {
    const store = open();
    expect(await store.read(KEY)).toBeUndefined();
    expect(await store.list()).toEqual([]);
    expect(await store.readClient("https://as.example", FORM)).toBeUndefined();
    await store.remove(KEY);
  });

  it("says where it keeps things", () => {
    expect(open().location).not.toBe("");
  });

  it("gives back what was saved, whole", async () => {
    const text = fc.string({ unit: "grapheme" });
    const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
    await fc.assert(
      fc.asyncProperty(
        text,
        text,
        maybe(text),
        maybe(fc.integer()),
        maybe(text),
        async (profile, server, scope, expiresAt, reason) => {
          const store = open();
          const base = madeGrant();
          const grant = madeGrant({
            profile,
            server,
            requestedScope: scope,
            endpoints: { ...base.endpoints, revocation: scope },
            client: madeClient({ clientSecret: undefined, secretExpiresAt: expiresAt, redirectUri: undefined }),
            tokens: { ...base.tokens, refreshToken: undefined, idToken: undefined, expiresAt, scope },
            retired: reason === undefined ? undefined : { at: 1, reason },
          });
          expect(await store.save(grant, undefined)).toBe(true);
          const back = await store.read({ profile, server });
          expect(back && plainGrant(back)).toEqual(plainGrant(grant));
        },
      ),
      { numRuns: 25 },
    );
    const store = open();
    await store.save(madeGrant(), undefined);
    const back = await store.read(KEY);
    expect(back && plainGrant(back)).toEqual(plainGrant(madeGrant()));
  });

  it("saves no generation that is not higher than the one that it replaces", async () => {
    const store = open();
    await store.save(madeGrant({ generation: 2 }), undefined);
    for (const generation of [1, 2]) {
      await expect(store.save(madeGrant({ generation }), 2)).rejects.toThrow(LOWER);
    }
    expect((await store.read(KEY))?.generation).toBe(2);
  });

  it("saves over the expected generation, and over no other", async () => {
    const store = open();
    const [one, two, three] = [1, 2, 3].map((generation) =>
      madeGrant({ generation, requestedScope: `g${generation}` }),
    );
    if (!one || !two || !three) throw new Error("three grants");
    expect(await store.save(one, 1)).toBe(false);
    expect(await store.read(KEY)).toBeUndefined();
    expect(await store.save(one, undefined)).toBe(true);
    expect(await store.save(two, undefined)).toBe(false);
    expect(await store.save(three, 2)).toBe(false);
    expect((await store.read(KEY))?.requestedScope).toBe("g1");
    expect(await store.save(two, 1)).toBe(true);
    expect((await store.read(KEY))?.requestedScope).toBe("g2");
  });

  it("lets one of many savers of a generation win", async () => {
    const store = open();
    await store.save(madeGrant({ generation: 1 }), undefined);
    const rivals = Array.from({ length: 20 }, (_, nth) =>
      store.save(madeGrant({ generation: 2, requestedScope: `s${nth}` }), 1),
    );
    const won = (await Promise.all(rivals)).flatMap((saved, nth) => (saved ? [nth] : []));
    expect(won).toHaveLength(1);
    expect((await store.read(KEY))?.requestedScope).toBe(`s${won[0]}`);
  });

  it("keeps profiles and servers apart, also where their names run together", async () => {
    const store = open();
    const keys = [
      { profile: "a", server: "https://b.example/c" },
      { profile: "a", server: "https://b.example" },
      { profile: "b", server: "https://b.example/c" },
    ];
    for (const key of keys) await store.save(madeGrant({ ...key, requestedScope: JSON.stringify(key) }), undefined);
    for (const key of keys) expect((await store.read(key))?.requestedScope).toBe(JSON.stringify(key));
    expect(await store.list()).toHaveLength(3);
  });

  it("keeps the accounts of a login apart, and from the login that names none", async () => {
    const store = open();
    const keys = [undefined, "", "ann@example.com", "bob@example.com"].map((account) => ({ ...KEY, account }));
    for (const [nth, key] of keys.entries())
      await store.save(madeGrant({ ...key, requestedScope: `${nth}` }), undefined);
    for (const [nth, key] of keys.entries()) {
      expect(await store.read(key)).toMatchObject({ account: key.account, requestedScope: `${nth}` });
    }
    expect(await store.list()).toHaveLength(4);
    await store.remove({ ...KEY, account: "ann@example.com" });
    expect((await store.list()).map(({ requestedScope }) => requestedScope).sort()).toEqual(["0", "1", "3"]);
  });

  it("saves into room that was reserved, and gives it back", async () => {
    const store = open();
    const first = await store.reserve(KEY);
    expect(await store.read(KEY)).toBeUndefined();
    expect(await first.save(madeGrant(), undefined)).toBe(true);
    await first.release();
    const second = await store.reserve(KEY);
    await second.release();
    await second.release();
    expect((await store.read(KEY))?.generation).toBe(1);
    expect(await store.list()).toHaveLength(1);
  });

  it("saves into room as anywhere else: over the expected generation, and only if that is stored", async () => {
    const store = open();
    await store.save(madeGrant(), undefined);
    const room = await store.reserve(KEY);
    expect(await room.save(madeGrant({ generation: 2 }), undefined)).toBe(false);
    expect(await store.save(madeGrant({ generation: 2, requestedScope: "theirs" }), 1)).toBe(true);
    expect(await room.save(madeGrant({ generation: 2, requestedScope: "ours" }), 1)).toBe(false);
    await room.release();
    expect(await store.read(KEY)).toMatchObject({ generation: 2, requestedScope: "theirs" });
  });

  it("saves nothing into room that was reserved beside another login of the same generation", async () => {
    const store = open();
    await store.save(madeGrant(), undefined);
    const room = await store.reserve(KEY);
    await store.remove(KEY);
    await store.save(madeGrant({ signedInAt: 1_900_000_001_000 }), undefined);
    expect(await room.save(madeGrant({ generation: 2 }), 1)).toBe(false);
    await room.release();
    expect(await store.read(KEY)).toMatchObject({ generation: 1, signedInAt: 1_900_000_001_000 });
  });

  it("keeps room from bringing back what was removed", async () => {
    const store = open();
    await store.save(madeGrant(), undefined);
    const room = await store.reserve(KEY);
    await store.remove(KEY);
    expect(await room.save(madeGrant({ generation: 2 }), 1)).toBe(false);
    await room.release();
    expect(await store.list()).toEqual([]);
  });

  it("removes the one that is meant", async () => {
    const store = open();
    const other = { ...KEY, profile: "other" };
    await store.save(madeGrant(), undefined);
    await store.save(madeGrant(other), undefined);
    await store.remove(KEY);
    expect(await store.read(KEY)).toBeUndefined();
    expect((await store.list()).map(({ profile }) => profile)).toEqual(["other"]);
    // A store may return more than a filter names, but leaves nothing out.
    const filters = [{ profile: "other" }, { server: KEY.server }, { issuer: madeGrant().issuer }];
    for (const filter of [...filters, { profile: "other", server: KEY.server }])
      expect((await store.list(filter)).map(({ profile }) => profile)).toEqual(["other"]);
    expect(await store.save(madeGrant(), undefined)).toBe(true);
  });

  it("takes a short-lived record once, and only one of several processes gets it", async () => {
    const { shortLived } = open();
    const life = { now: Date.now(), expiresAt: Date.now() + 600_000 };
    expect(await shortLived?.take("one")).toBeUndefined();
    const puts = await Promise.all(["first", "second"].map((text) => shortLived?.put("one", text, life)));
    expect(puts.toSorted()).toEqual([false, true]);
    expect(await shortLived?.put("two", "other", life)).toBe(true);
    // A login is marked as finished by the same text each time.
    const marks = await Promise.all(["same", "same", "same"].map((text) => shortLived?.put("mark", text, life)));
    expect(marks.toSorted()).toEqual([false, false, true]);
    expect(await shortLived?.put("mark", "same", life)).toBe(false);
    const taken = await Promise.all(Array.from({ length: 5 }, () => shortLived?.take("one")));
    expect(taken.filter((text) => text !== undefined)).toHaveLength(1);
    expect(await shortLived?.take("one")).toBeUndefined();
    expect(await shortLived?.take("two")).toBe("other");
  });

  it("reads a short-lived record as often as it is asked for, until it is taken", async () => {
    const { shortLived } = open();
    const life = { now: Date.now(), expiresAt: Date.now() + 600_000 };
    expect(await shortLived?.read?.("one")).toBeUndefined();
    await shortLived?.put("one", "text", life);
    for (let times = 0; times < 2; times++) expect(await shortLived?.read?.("one")).toBe("text");
    await shortLived?.take("one");
    expect(await shortLived?.read?.("one")).toBeUndefined();
  });

  it.skipIf(hasClockOfEngine)("removes short-lived records that have expired when another one is stored", async () => {
    const { shortLived } = open();
    const now = Date.now();
    await shortLived?.put("old", "text", { now, expiresAt: now + 600_000 });
    await shortLived?.put("late", "text", { now, expiresAt: now + 800_000 });
    await shortLived?.put("new", "text", { now: now + 700_000, expiresAt: now + 1_300_000 });
    expect(await shortLived?.take("old")).toBeUndefined();
    expect(await shortLived?.take("late")).toBe("text");
    expect(await shortLived?.take("new")).toBe("text");
  });

  it("lists the logins to be revoked until they are removed", async () => {
    const { unrevoked } = open();
    const listed = async () => {
      const found = [];
      for await (const one of unrevoked?.list() ?? []) found.push(one);
      return found.sort((one, other) => String(one.grant.account).localeCompare(String(other.grant.account)));
    };
    const accounts = async () => (await listed()).map(({ grant }) => grant.account);
    const removeAnn = await unrevoked?.add(madeGrant({ account: "ann@example.com" }));
    await unrevoked?.add(madeGrant({ account: "bob@example.com" }));
    expect(await accounts()).toEqual(["ann@example.com", "bob@example.com"]);
    await removeAnn?.();
    expect(await accounts()).toEqual(["bob@example.com"]);
    for (const { remove } of await listed()) await remove();
    expect(await accounts()).toEqual([]);
  });

  it("keeps clients by issuer and redirect form", async () => {
    const store = open();
    const at = (issuer: string, clientId: string) => madeClient({ issuer, clientId });
    await store.saveClient(at("https://a.example", "one"), FORM);
    await store.saveClient(at("https://a.example", "two"), "http://localhost/callback");
    await store.saveClient(at("https://b.example", "three"), FORM);
    expect((await store.readClient("https://a.example", FORM))?.clientId).toBe("one");
    expect((await store.readClient("https://a.example", "http://localhost/callback"))?.clientId).toBe("two");
    expect((await store.readClient("https://b.example", FORM))?.clientSecret?.reveal()).toBe("client-secret-1");
    await store.saveClient(at("https://a.example", "new"), FORM);
    expect((await store.readClient("https://a.example", FORM))?.clientId).toBe("new");
    const refused = { ...at("https://a.example", "new"), registeredAt: [1, 2], isRefused: true };
    await store.saveClient(refused, FORM);
    expect(await store.readClient("https://a.example", FORM)).toMatchObject({ registeredAt: [1, 2], isRefused: true });
    expect((await store.readClient("https://b.example", FORM))?.clientId).toBe("three");
    expect(await store.list()).toEqual([]);
  });

  describe("connections", () => {
    const now = Date.now();
    const { tokens } = madeGrant();
    const living = { ...tokens, obtainedAt: now - 60_000, expiresAt: now + 3_600_000 };
    const expired = { ...tokens, obtainedAt: now - 7_200_000, expiresAt: now - 3_600_000 };
    const once = { refreshToken: undefined };
    const retired = { at: now, reason: "the issuer refused to refresh it: invalid_grant" };
    const lostRefresh = { at: now, code: "timeout", generation: 1 };
    const grants = [
      madeGrant({ profile: "valid", tokens: living }),
      madeGrant({ profile: "valid", account: "once@acme.example", tokens: { ...living, ...once } }),
      madeGrant({ profile: "expired", tokens: expired }),
      madeGrant({ profile: "expired", account: "grant:client_credentials:c", tokens: { ...expired, ...once } }),
      madeGrant({ profile: "needs_login", tokens: living, retired }),
      madeGrant({ profile: "needs_login", account: "once@acme.example", tokens: { ...expired, ...once } }),
      madeGrant({ profile: "lost_refresh", tokens: living, lostRefresh, generation: 2 }),
      madeGrant({ profile: "lost_refresh", server: "https://b.example/mcp", tokens: expired, lostRefresh }),
    ];
    const filled = async () => {
      const store = open();
      for (const grant of grants) expect(await store.save(grant, undefined)).toBe(true);
      return store;
    };
    const all = async (pages: AsyncIterable<ConnectionPage>) => {
      const found: Connection[] = [];
      for await (const page of pages) found.push(...page.items);
      return found;
    };

    it("say whether a login can be used, in each state that a query names, and nothing secret", async () => {
      const store = await filled();
      const found = await all(store.connections());
      expect(
        found.map(({ profile, state }) => [profile, state]).filter(([profile, state]) => profile !== state),
      ).toEqual([]);
      expect(found).toHaveLength(grants.length);
      for (const state of CONNECTION_STATES) {
        const those = await all(store.connections({ state }));
        expect(those.map(({ profile }) => profile)).toEqual([state, state]);
      }
      expect(JSON.stringify(found)).not.toMatch(/token-1|secret-1/);
    });

    it("have what a page shows of a login", async () => {
      const store = open();
      const usedAt = now - 86_400_000;
      await store.save(madeGrant({ account: "jo@acme.example", tokens: living, usedAt }), undefined);
      const [{ refreshable, ...connection } = {}] = await all(store.connections());
      expect(refreshable).toBe(true);
      expect(connection).toEqual({
        profile: "default",
        server: KEY.server,
        account: "jo@acme.example",
        issuer: "https://as.example/pool",
        state: "valid",
        scope: "tools",
        logged_in_at: new Date(1_700_000_000_000).toISOString(),
        issued_at: new Date(living.obtainedAt).toISOString(),
        expires_at: new Date(living.expiresAt).toISOString(),
        last_used_at: new Date(usedAt).toISOString(),
        reason: null,
      });
    });

    it.each([
      [{ profile: "valid" }, 2],
      [{ server: "https://b.example/mcp" }, 1],
      [{ server: KEY.server, profile: "lost_refresh" }, 1],
      [{ issuer: "https://as.example/pool", state: "expired" }, 2],
      [{ issuer: "https://other.example" }, 0],
    ] as const)("are those of a filter: %j", async (filter, count) => {
      expect(await all((await filled()).connections(filter))).toHaveLength(count);
    });

    it.each([1, 3, 100])("come in pages of %i, also from the cursor of one", async (limit) => {
      const store = await filled();
      const found: Connection[] = [];
      let cursor: string | undefined;
      do {
        const pages = store.connections({ limit, cursor })[Symbol.asyncIterator]();
        const { value } = (await pages.next()) as { value: ConnectionPage };
        expect(value.items.length).toBeLessThanOrEqual(limit);
        found.push(...value.items);
        ({ cursor } = value);
      } while (cursor !== undefined);
      expect(new Set(found.map(({ profile, server, account }) => `${profile} ${server} ${account}`)).size).toBe(
        grants.length,
      );
      expect(await all(store.connections({ limit }))).toEqual(found);
    });

    it("go on after one that is gone", async () => {
      const store = await filled();
      const seen: string[] = [];
      for await (const { items } of store.connections({ limit: 1 })) {
        for (const { profile, server, account } of items) {
          seen.push(`${profile} ${server} ${account}`);
          await store.remove({ profile, server, account: account ?? undefined });
        }
      }
      expect(new Set(seen).size).toBe(grants.length);
    });

    it.each([{ limit: 0 }, { limit: 1001 }, { limit: 1.5 }, { state: "gone" }])("refuse %j", async (query) => {
      expect(await pendingError(all(open().connections(query as never)))).toMatchObject({ code: "usage" });
    });
  });

  describe("bindings of clients", () => {
    const BINDING = {
      profile: "default",
      clientId: "prod",
      issuer: "https://as.example/pool",
      boundBy: "issuer",
      boundAt: 1,
    } as const;
    const other = { ...BINDING, issuer: "https://evil.example" };

    it("are stored by profile and client, apart from logins", async () => {
      const store = open();
      expect(await store.readBinding(BINDING)).toBeUndefined();
      expect(await store.saveBinding(BINDING, undefined)).toEqual(BINDING);
      await store.saveBinding({ ...other, profile: "work" }, undefined);
      expect(await store.readBinding(BINDING)).toEqual(BINDING);
      expect((await store.listBindings()).map(({ profile }) => profile).sort()).toEqual(["default", "work"]);
      await store.save(madeGrant(), undefined);
      await store.remove(KEY);
      expect(await store.readBinding(BINDING)).toEqual(BINDING);
    });

    it("are replaced only by a caller that knows them", async () => {
      const store = open();
      await store.saveBinding(BINDING, undefined);
      expect(await store.saveBinding(other, undefined)).toEqual(BINDING);
      expect(await store.saveBinding(other, { ...BINDING, boundAt: 2 })).toEqual(BINDING);
      expect(await store.saveBinding(other, BINDING)).toEqual(other);
      const racers = ["a", "b", "c", "d"].map((name) => ({ ...BINDING, clientId: "raced", issuer: `https://${name}` }));
      const won = await Promise.all(racers.map((racer) => store.saveBinding(racer, undefined)));
      expect(new Set(won.map(({ issuer }) => issuer)).size).toBe(1);
    });

    it("are removed alone, once", async () => {
      const store = open();
      await store.saveBinding(BINDING, undefined);
      expect(await store.removeBinding({ profile: "work", clientId: "prod" })).toBe(false);
      expect(await store.removeBinding(BINDING)).toBe(true);
      expect(await store.removeBinding(BINDING)).toBe(false);
      expect(await store.listBindings()).toEqual([]);
    });
  });
});
