import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import type { GrantStore } from "../../src/oauth/grant-store.js";
import { fileStore } from "../../src/store/file.js";
import { memoryStore } from "../../src/store/memory.js";
import { madeClient, madeGrant, plainGrant } from "../helpers/grant.js";
import { until } from "../helpers/server.js";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "agentauth-store-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const KEY = { profile: "default", server: "https://mcp.example/mcp" };
const FORM = "http://127.0.0.1/callback";

const stores: [string, () => GrantStore][] = [
  ["memoryStore", memoryStore],
  ["fileStore", () => fileStore(folder())],
  ["fileStore, opened anew each time", () => reopening(folder())],
];

/** A store that keeps nothing in memory: what it gives back came from its files. */
function reopening(path: string): GrantStore {
  const store = () => fileStore(path);
  const leases = store();
  return {
    location: path,
    read: (key) => store().read(key),
    save: (grant, expected) => store().save(grant, expected),
    remove: (key) => store().remove(key),
    list: () => store().list(),
    readClient: (issuer, form) => store().readClient(issuer, form),
    saveClient: (client, form) => store().saveClient(client, form),
    removeClient: (issuer, form) => store().removeClient(issuer, form),
    lease: (name, work, signal) => leases.lease(name, work, signal),
  };
}

describe.each(stores)("%s", (_name, open) => {
  it("has nothing at first", async () => {
    const store = open();
    expect(await store.read(KEY)).toBeUndefined();
    expect(await store.list()).toEqual([]);
    expect(await store.readClient("https://as.example", FORM)).toBeUndefined();
    await store.remove(KEY);
    await store.removeClient("https://as.example", FORM);
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

  it("saves over the generation it was told of, and over no other", async () => {
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

  it("removes the one that is meant", async () => {
    const store = open();
    const other = { ...KEY, profile: "other" };
    await store.save(madeGrant(), undefined);
    await store.save(madeGrant(other), undefined);
    await store.remove(KEY);
    expect(await store.read(KEY)).toBeUndefined();
    expect((await store.list()).map(({ profile }) => profile)).toEqual(["other"]);
    expect(await store.save(madeGrant(), undefined)).toBe(true);
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
    await store.removeClient("https://a.example", FORM);
    expect(await store.readClient("https://a.example", FORM)).toBeUndefined();
    expect((await store.readClient("https://b.example", FORM))?.clientId).toBe("three");
    expect(await store.list()).toEqual([]);
  });
});

describe.each(stores)("a lease of %s", (_name, open) => {
  it("lets one work at a time under a name, in the order they came", async () => {
    const store = open();
    const order: string[] = [];
    const work = (name: string) => async () => {
      order.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      order.push(`${name} ends`);
      return name;
    };
    expect(await Promise.all(["a", "b", "c"].map((name) => store.lease("x", work(name))))).toEqual(["a", "b", "c"]);
    expect(order).toEqual(["a", "b", "c"].flatMap((name) => [`${name} begins`, `${name} ends`]));
  });

  it("lets work under other names go on", async () => {
    const store = open();
    let end: () => void = () => undefined;
    const held = store.lease(
      "x",
      () =>
        new Promise<void>((resolve) => {
          end = resolve;
        }),
    );
    expect(await store.lease("y", async () => "done")).toBe("done");
    end();
    await held;
  });

  it("goes on after work that failed", async () => {
    const store = open();
    const failing = store.lease("x", async () => {
      throw new Error("no");
    });
    const next = store.lease("x", async () => "yes");
    await expect(failing).rejects.toThrow("no");
    expect(await next).toBe("yes");
  });

  it("lets a waiting caller leave at once, without its work being done or the others being held up", async () => {
    const store = open();
    let end: () => void = () => undefined;
    let begun = false;
    const held = store.lease("x", () => {
      begun = true;
      return new Promise<void>((resolve) => {
        end = resolve;
      });
    });
    await until(() => begun);
    const controller = new AbortController();
    let worked = false;
    const leaving = store.lease(
      "x",
      async () => {
        worked = true;
      },
      controller.signal,
    );
    const staying = store.lease("x", async () => "stayed");
    controller.abort();
    await expect(leaving).rejects.toMatchObject({ code: "aborted" });
    end();
    await held;
    expect(await staying).toBe("stayed");
    expect(worked).toBe(false);
  });

  it("does no work for a caller who has left already", async () => {
    const store = open();
    let worked = false;
    const leaving = store.lease(
      "x",
      async () => {
        worked = true;
      },
      AbortSignal.abort(),
    );
    await expect(leaving).rejects.toMatchObject({ code: "aborted" });
    expect(worked).toBe(false);
  });
});
