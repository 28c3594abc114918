import { describe, expect, it } from "vitest";
import type { AgentAuthError } from "../../../src/errors.js";
import type { ConnectionPage } from "../../../src/oauth/model/connection.js";
import type { Grant } from "../../../src/oauth/model/grant.js";
import { UNREVOKED_MS } from "../../../src/oauth/model/grant-store.js";
import { Secret } from "../../../src/redact.js";
import type { DriverHealth, RecordKey, RecordKind, StoreDriver } from "../../../src/store/driver/driver.js";
import { type GrantStoreOptions, grantStore, openGrantStore } from "../../../src/store/driver/grant-store.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";
import { NearGrants, type NearOptions, NewestGrants } from "../../../src/store/driver/remembered-grants.js";
import { keysInUse, reseal, splitSummary } from "../../../src/store/driver/tenant-records.js";
import { CipherError, type RecordCipher, type Sealing } from "../../../src/store/seal/sealing.js";
import { pendingError } from "../../helpers/captured.js";
import { madeClient, madeGrant, plainGrant } from "../../helpers/grant.js";
import { key, testEnvelope, testRing } from "../seal/support.js";
import { failover, faulty, lost, TestTime } from "./support.js";

const KEY = { profile: "default", server: "https://mcp.example/mcp" };
const next = (grant: Grant, generation: number, over: Partial<Grant> = {}) =>
  madeGrant({
    ...grant,
    generation,
    tokens: { ...grant.tokens, accessToken: new Secret(`access-token-${generation}`) },
    ...over,
  });
const BINDING = {
  profile: "default",
  clientId: "client",
  issuer: "https://as.example",
  boundBy: "use",
  boundAt: 0,
} as const;
const tokenOf = (grant: Grant | undefined) => grant?.tokens.accessToken.reveal();

async function recordsOf(driver: StoreDriver) {
  const kinds: RecordKind[] = ["grant", "client", "binding", "login", "key"];
  const pages = await Promise.all(kinds.map((kind) => driver.scan({ kind }, { limit: 100 })));
  return pages.flatMap(({ items }) => items);
}

async function onlyGrant(driver: StoreDriver) {
  const [record] = (await driver.scan({ kind: "grant" }, { limit: 2 })).items;
  if (record === undefined) throw new Error("a grant is stored");
  return record;
}

function sealedStore<T extends StoreDriver = ReturnType<typeof memoryDriver>>(driver = memoryDriver() as unknown as T) {
  return { driver, store: grantStore(driver, { seal: testRing() }) };
}

describe("the options of grantStore", () => {
  it.each([
    [{}, "the option seal is missing"],
    [{ seal: "None" }, 'the option seal is "None"'],
    [{ seal: null }, 'the option seal is "null"'],
    [{ seal: { nameOf: () => "name" } }, "the option seal is "],
    [{ seal: "none", takeover: "slow" }, "the option takeover"],
    [{ seal: "none", tenant: "" }, "the option tenant"],
    [{ seal: "none", near: { ttlMs: -1 } }, "the option near.ttlMs"],
  ])("%o are refused", (options, message) => {
    const make = () => grantStore(memoryDriver(), options as GrantStoreOptions);
    expect(make).toThrow(expect.objectContaining({ code: "usage", class: "usage" }));
    expect(make).toThrow(message);
  });

  it("name both ways where none was chosen", () => {
    const make = () => grantStore(memoryDriver(), {} as GrantStoreOptions);
    expect(make).toThrow(expect.objectContaining({ hint: expect.stringMatching(/keyRing.*seal: "none"/) }));
  });
});

it("what an engine gets to see holds no secret, address, account or profile", async () => {
  const driver = memoryDriver();
  const store = grantStore(driver, { seal: testRing(), tenant: "tenant-one" });
  const grant = madeGrant({ profile: "profile-one", account: "ann@example.com" });
  await store.save(grant, undefined);
  await store.saveClient(madeClient(), "http://127.0.0.1/callback");
  const binding = { profile: "profile-one", clientId: "prod-client", issuer: "https://as.example/pool" };
  await store.saveBinding({ ...binding, boundBy: "issuer", boundAt: 1 }, undefined);
  await store.shortLived?.put("login-one", "verifier-one", { now: 0, expiresAt: 1000 });
  const dump = JSON.stringify(await recordsOf(driver));
  expect((await recordsOf(driver)).map(({ key }) => key.kind)).toEqual(["grant", "client", "binding", "login"]);
  const hidden = "example token-1 secret-1 profile-one tenant-one prod-client login-one verifier".split(" ");
  for (const text of hidden) expect(dump).not.toContain(text);
  expect((await store.list({ profile: "profile-one" })).map(plainGrant)).toEqual([plainGrant(grant)]);
});

it("what an engine gets to see without a seal is named by what it is, where an engine takes such a long name", async () => {
  const driver = memoryDriver();
  const store = grantStore(driver, { seal: "none" });
  for (const profile of ["short", "l".repeat(400)]) await store.save(madeGrant({ profile }), undefined);
  const ids = (await recordsOf(driver)).map(({ key }) => key.id);
  expect(ids).toEqual([expect.stringContaining("short"), expect.stringMatching(/^[\w-]{43}$/)]);
});

describe("tenants of one engine", () => {
  it("have a store each, which any of them opens", async () => {
    const ann = grantStore(memoryDriver(), { seal: testRing(), tenant: "ann" });
    const bob = ann.for?.({ tenant: "bob" });
    await bob?.save(madeGrant(), undefined);
    expect(await ann.read(KEY)).toBeUndefined();
    expect(await bob?.for?.({ tenant: "ann" }).read(KEY)).toBeUndefined();
    expect(tokenOf(await ann.for?.({ tenant: "bob" }).read(KEY))).toBe("access-token-1");
    // One store has what it remembers of the newest grants.
    expect(ann.for?.({ tenant: "bob" })).toBe(bob);
    expect(() => ann.for?.({ tenant: "" })).toThrow(expect.objectContaining({ code: "usage" }));
    expect(() => ann.connections({ tenant: "" })).toThrow(expect.objectContaining({ code: "usage" }));
  });

  it("share registered clients, and nothing else", async () => {
    const driver = memoryDriver();
    const open = (tenant: string) => grantStore(driver, { seal: testRing(), tenant });
    const [ann, bob] = [open("ann"), open("bob")];
    await ann.save(madeGrant(), undefined);
    await ann.shortLived?.put("one", "text", { now: 0, expiresAt: 60_000 });
    await ann.saveClient(madeClient({ clientId: "shared" }), "form");
    expect(await bob.read(KEY)).toBeUndefined();
    expect(await bob.list()).toEqual([]);
    expect(await bob.shortLived?.take("one")).toBeUndefined();
    expect((await bob.readClient("https://as.example/pool", "form"))?.clientId).toBe("shared");
    await bob.remove(KEY);
    expect(tokenOf(await ann.read(KEY))).toBe("access-token-1");
  });

  it("do not show that they have the same user of the same server", async () => {
    const driver = memoryDriver();
    for (const tenant of ["ann", "bob"]) {
      const store = grantStore(driver, { seal: testRing(), tenant });
      await store.save(madeGrant(), undefined);
      await store.saveBinding(BINDING, undefined);
    }
    const ids = (await recordsOf(driver)).map(({ key }) => key.id);
    expect(ids).toHaveLength(4);
    expect(new Set(ids).size).toBe(4);
  });
});

it("a list with a filter finds the grants that have every value, whatever else is stored", async () => {
  const store = grantStore(memoryDriver(), { seal: testRing() });
  const servers = ["https://a.example/mcp", "https://b.example/mcp"];
  for (const profile of ["one", "two"])
    for (const server of servers)
      await store.save(madeGrant({ profile, server, issuer: `https://as.${profile}.example` }), undefined);
  const found = async (filter: Parameters<typeof store.list>[0]) =>
    (await store.list(filter)).map(({ profile, server }) => `${profile} ${server[8]}`).sort();
  expect(await found({})).toHaveLength(4);
  expect(await found({ profile: "one" })).toEqual(["one a", "one b"]);
  expect(await found({ server: servers[0] })).toEqual(["one a", "two a"]);
  expect(await found({ profile: "two", server: servers[1] })).toEqual(["two b"]);
  expect(await found({ profile: "two", issuer: "https://as.two.example" })).toEqual(["two a", "two b"]);
  expect(await found({ profile: "two", issuer: "https://as.one.example" })).toEqual([]);
});

describe("connections", () => {
  const profiles = async (pages: AsyncIterable<ConnectionPage>) => {
    const found: string[] = [];
    for await (const { items } of pages) found.push(...items.map(({ profile }) => profile));
    return found.sort();
  };

  const allOf = async (store: ReturnType<typeof grantStore>) => {
    const errors: AgentAuthError[] = [];
    return { profiles: await profiles(store.connections({ onUnusable: (error) => errors.push(error) })), errors };
  };

  it.each(["ring", "envelope"])("open no token (%s)", async (how) => {
    const sealing = how === "ring" ? testRing() : testEnvelope().sealing;
    const opened: string[] = [];
    const cipherFor: Sealing["cipherFor"] = (place) => {
      const cipher = sealing.cipherFor(place);
      const open: RecordCipher["open"] = async (sealed, name) => {
        const text = await cipher.open(sealed, name);
        opened.push(text);
        return text;
      };
      return { seal: (text, name) => cipher.seal(text, name), open };
    };
    const driver = memoryDriver();
    await grantStore(driver, { seal: sealing }).save(madeGrant(), undefined);
    const store = grantStore(driver, { seal: { nameOf: sealing.nameOf, cipherFor } });
    expect(await profiles(store.connections())).toEqual(["default"]);
    expect(opened).toHaveLength(1);
    expect(opened[0]).not.toMatch(/token-1|secret-1/);
    const { value } = await onlyGrant(driver);
    expect(value).not.toMatch(/mcp\.example|as\.example/);
  });

  it("are those of a tenant, and of no other", async () => {
    const driver = memoryDriver();
    const of = (tenant: string) => grantStore(driver, { seal: testRing(), tenant });
    await of("one").save(madeGrant({ profile: "of one" }), undefined);
    await of("two").save(madeGrant({ profile: "of two" }), undefined);
    expect(await profiles(of("one").connections())).toEqual(["of one"]);
    expect(await profiles(of("one").connections({ tenant: "one" }))).toEqual(["of one"]);
    expect(await profiles(of("one").connections({ tenant: "two" }))).toEqual(["of two"]);
    expect(await profiles(of("one").connections({ tenant: "three" }))).toEqual([]);
  });

  it("have no summary of another record", async () => {
    const { driver, store } = sealedStore();
    await store.save(madeGrant({ profile: "theirs" }), undefined);
    const theirs = await onlyGrant(driver);
    await store.save(madeGrant(), undefined);
    const mine = (await driver.scan({ kind: "grant" }, { limit: 2 })).items[1];
    if (!mine) throw new Error("two grants");
    const { summary = "" } = splitSummary(theirs.value);
    const swapped = `${summary.length}:${summary}${splitSummary(mine.value).value}`;
    await driver.put(mine.key, swapped, mine.version);
    expect(await allOf(store)).toMatchObject({ profiles: ["theirs"], errors: [{ code: "store_failed" }] });
  });

  it.each(["sealed", "unsealed"])("name a record without a summary (%s)", async (how) => {
    const driver = memoryDriver();
    const store = grantStore(driver, { seal: how === "sealed" ? testRing() : "none" });
    await store.save(madeGrant(), undefined);
    const { key, value, version } = await onlyGrant(driver);
    await driver.put(key, splitSummary(value).value, version);
    expect(await allOf(store)).toMatchObject({
      profiles: [],
      errors: [{ class: "store", message: expect.stringContaining("it has no summary") }],
    });
  });

  it("ask the engine for those that need a login, and read no others", async () => {
    const { driver, store } = sealedStore();
    const of = (profile: string, over: Partial<Grant> = {}) => store.save(madeGrant({ profile, ...over }), undefined);
    for (let nth = 0; nth < 20; nth++) await of(`valid ${nth}`);
    await of("refused", { retired: { at: 1, reason: "invalid_grant" } });
    await of("lost", { lostRefresh: { at: 1, code: "timeout", generation: 1 } });
    let read = 0;
    const { scan } = driver;
    driver.scan = async (...args) => {
      const page = await scan.apply(driver, args);
      read += page.items.length;
      return page;
    };
    expect(await profiles(store.connections({ state: "needs_login" }))).toEqual(["refused"]);
    expect(await profiles(store.connections({ state: "lost_refresh" }))).toEqual(["lost"]);
    expect(read).toBe(2);
    await store.save(madeGrant({ profile: "refused", generation: 2 }), 1);
    expect(await profiles(store.connections({ state: "needs_login" }))).toEqual([]);
  });

  it("have the times of this machine", async () => {
    const now = Date.now();
    const clockAheadMs = 3_600_000;
    const driver: StoreDriver = Object.assign(memoryDriver(), {
      health: async () => ({ clockAheadMs, risks: [], errors: [], facts: {} }),
    });
    const store = grantStore(driver, { seal: testRing() });
    const { tokens } = madeGrant();
    await store.save(madeGrant({ tokens: { ...tokens, obtainedAt: now, expiresAt: now + 60_000 } }), undefined);
    for await (const { items } of store.connections()) {
      const time = new Date(now).toISOString();
      expect(items).toMatchObject([{ state: "valid", issued_at: time, last_used_at: time }]);
    }
  });
});

describe("a store that many processes change", () => {
  it("lists more grants than the engine returns at once", async () => {
    const store = grantStore(memoryDriver(), { seal: testRing() });
    const profiles = Array.from({ length: 201 }, (_, nth) => `p${nth}`);
    await Promise.all(profiles.map((profile) => store.save(madeGrant({ profile }), undefined)));
    expect(await store.list()).toHaveLength(201);
  });

  it("stores over what another process has changed in between, and gives up where that happens each time", async () => {
    const driver = faulty();
    const { put } = driver;
    let changes = 1;
    driver.put = async (key, value, expected, options) => {
      if (changes-- > 0) await put(key, `${value} `, expected, options);
      return put(key, value, expected, options);
    };
    const store = grantStore(driver, { seal: "none" });
    await store.saveClient(madeClient({ clientId: "one" }), "form");
    expect((await store.readClient("https://as.example/pool", "form"))?.clientId).toBe("one");
    changes = Number.POSITIVE_INFINITY;
    expect(await pendingError(store.saveClient(madeClient({ clientId: "two" }), "form"))).toMatchObject({
      class: "unavailable",
    });
  });
});

describe("a record that cannot be used", () => {
  it("is reported by a list, hides no other, and is not replaced", async () => {
    const { driver, store } = sealedStore();
    await store.save(madeGrant(), undefined);
    const record = await onlyGrant(driver);
    await store.save(madeGrant({ profile: "other" }), undefined);
    const broken = record.value.replaceAll(/"data":"..../g, '"data":"AAAA');
    await driver.put(record.key, broken, record.version);
    const errors: AgentAuthError[] = [];
    const grants = await store.list({}, (error) => errors.push(error));
    expect(grants.map(({ profile }) => profile)).toEqual(["other"]);
    expect(errors).toMatchObject([
      { code: "store_failed", class: "store", message: expect.stringContaining("changed") },
    ]);
    expect(await pendingError(store.read(KEY))).toMatchObject({ code: "store_failed", class: "store" });
    expect(await pendingError(store.save(madeGrant({ generation: 2 }), 1))).toMatchObject({ code: "store_failed" });
    expect((await driver.get(record.key))?.value).toBe(broken);
    await store.remove(KEY);
    expect(await store.save(madeGrant(), undefined)).toBe(true);
  });

  it.each(["sealed", "unsealed"])("is one that was put in the place of another (%s)", async (how) => {
    const driver = memoryDriver();
    const store = grantStore(driver, { seal: how === "sealed" ? testRing() : "none" });
    await store.save(madeGrant({ profile: "theirs" }), undefined);
    const theirs = await onlyGrant(driver);
    await store.save(madeGrant(), undefined);
    const mine = (await driver.scan({ kind: "grant" }, { limit: 2 })).items[1];
    if (mine === undefined) throw new Error("two grants");
    await driver.put(mine.key, theirs.value, mine.version);
    expect(await pendingError(store.read(KEY))).toMatchObject({ code: "store_failed" });
  });

  it.each(["sealed", "unsealed"])("is a client of another issuer, which would be sent there (%s)", async (how) => {
    const driver = memoryDriver();
    const store = grantStore(driver, { seal: how === "sealed" ? testRing() : "none" });
    const [own, evil] = ["https://as.example/pool", "https://evil.example"] as const;
    for (const issuer of [own, evil]) await store.saveClient(madeClient({ issuer }), "form");
    const [first, second] = (await driver.scan({ kind: "client" }, { limit: 2 })).items;
    if (first === undefined || second === undefined) throw new Error("two clients");
    await driver.put(second.key, first.value, second.version);
    expect(await pendingError(store.readClient(evil, "form"))).toMatchObject({ code: "store_failed" });
    expect(await store.readClient(own, "form")).toMatchObject({ issuer: own });
  });

  it("is a login that waits in the place of another", async () => {
    const { driver, store } = sealedStore();
    for (const id of ["mine", "theirs"]) await store.shortLived?.put(id, id, { now: 0, expiresAt: 60_000 });
    const [mine, theirs] = (await driver.scan({ kind: "login" }, { limit: 2 })).items;
    if (mine === undefined || theirs === undefined) throw new Error("two logins");
    await driver.put(mine.key, theirs.value, mine.version);
    expect(await pendingError(store.shortLived?.take("mine"))).toMatchObject({ code: "store_failed" });
    expect(await store.shortLived?.take("theirs")).toBe("theirs");
  });

  it("names the key that the ring lacks", async () => {
    const driver = memoryDriver();
    await grantStore(driver, { seal: testRing() }).save(madeGrant(), undefined);
    const other = grantStore(driver, { seal: testRing({ current: "b", keys: { b: new Uint8Array(32) } }) });
    expect(await pendingError(other.read(KEY))).toMatchObject({ message: expect.stringMatching(/"a".*key ring.*"b"/) });
  });
});

describe("a save whose answer is lost", () => {
  it("is a save if the record is stored", async () => {
    const { driver, store } = sealedStore(faulty());
    driver.after.put = lost;
    expect(await store.save(madeGrant(), undefined)).toBe(true);
    expect(tokenOf(await store.read(KEY))).toBe("access-token-1");
  });

  it("is a save if the driver repeated it", async () => {
    const driver = faulty();
    const inner = driver.put;
    driver.put = async (...args) => {
      await inner(...args);
      return inner(...args);
    };
    const store = grantStore(driver, { seal: testRing() });
    expect(await store.save(madeGrant(), undefined)).toBe(true);
  });

  it("fails if nothing was stored, and may be repeated", async () => {
    const { driver, store } = sealedStore(faulty());
    await store.save(madeGrant(), undefined);
    const reservation = await store.reserve(KEY);
    driver.before.put = lost;
    expect(await pendingError(reservation.save(next(madeGrant(), 2), 1))).toMatchObject({ code: "store_unavailable" });
    delete driver.before.put;
    expect(await reservation.save(next(madeGrant(), 2), 1)).toBe(true);
  });

  it("is a save if it arrives before the next try", async () => {
    const { driver, store } = sealedStore(faulty());
    await store.save(madeGrant(), undefined);
    const reservation = await store.reserve(KEY);
    let late: () => Promise<unknown> = async () => undefined;
    const { put } = driver;
    driver.put = async (...args) => {
      late = () => put(...args);
      return lost();
    };
    expect(await pendingError(reservation.save(next(madeGrant(), 2), 1))).toMatchObject({ code: "store_unavailable" });
    driver.put = put;
    await late();
    expect(await reservation.save(next(madeGrant(), 2), 1)).toBe(true);
    expect((await store.read(KEY))?.generation).toBe(2);
  });
});

describe("a failover that lost the last save", () => {
  const setUp = async () => {
    const time = new TestTime();
    const driver = memoryDriver({ clock: time });
    const [store, other] = [0, 1].map(() => openGrantStore(driver, { seal: testRing() }, { clock: time.process() }));
    if (!store || !other) throw new Error("two stores");
    await store.save(madeGrant(), undefined);
    const fail = await failover(driver, "grant");
    await store.save(next(madeGrant(), 2), 1);
    return { time, driver, store, other, fail };
  };

  it("is repaired by the process that saved", async () => {
    const { store, other, fail } = await setUp();
    await fail();
    expect(tokenOf(await other.read(KEY))).toBe("access-token-1");
    expect(tokenOf(await store.read(KEY))).toBe("access-token-2");
    expect(tokenOf(await other.read(KEY))).toBe("access-token-2");
    expect(await store.list({ profile: "default" })).toHaveLength(1);
  });

  it("is repaired for ten minutes", async () => {
    const { time, store, fail } = await setUp();
    await time.advance(10 * 60_000 + 1);
    await fail();
    expect(tokenOf(await store.read(KEY))).toBe("access-token-1");
  });

  it("returns the newest grant also while the engine takes no write", async () => {
    const { driver, store, fail } = await setUp();
    await fail();
    driver.put = async () => lost();
    expect(tokenOf(await store.read(KEY))).toBe("access-token-2");
  });

  it("brings nothing back after a logout", async () => {
    const { store, other } = await setUp();
    await other.remove(KEY);
    expect(await store.read(KEY)).toBeUndefined();
    await other.save(madeGrant(), undefined);
    expect(tokenOf(await store.read(KEY))).toBe("access-token-1");
  });

  it("replaces neither another login nor what another process refreshed later", async () => {
    const { driver, store, other } = await setUp();
    const replace = async (over: Partial<Grant>) => {
      const record = await onlyGrant(driver);
      await driver.delete(record.key);
      await other.save(madeGrant({ requestedScope: "theirs", ...over }), undefined);
    };
    await replace({ signedInAt: 1_700_000_000_001 });
    expect((await store.read(KEY))?.requestedScope).toBe("theirs");
    const { tokens } = madeGrant();
    await replace({ tokens: { ...tokens, obtainedAt: tokens.obtainedAt + 60_000 } });
    expect((await store.read(KEY))?.requestedScope).toBe("theirs");
  });
});

describe("reads", () => {
  it("ask the engine each time, and decode a record once", async () => {
    const { driver, store } = sealedStore(faulty());
    await store.save(madeGrant(), undefined);
    const calls = driver.calls.get;
    const grants = [await store.read(KEY), await store.read(KEY)];
    expect(driver.calls.get).toBe(calls + 2);
    expect(grants[1]).toBe(grants[0]);
    expect((await store.list())[0]).toBe(grants[0]);
    await store.save(next(madeGrant(), 2), 1);
    expect(tokenOf(await store.read(KEY))).toBe("access-token-2");
  });

  it("see another record also where an engine that lost writes uses its version again", async () => {
    const driver = memoryDriver();
    const { get } = driver;
    driver.get = async (...args) => {
      const record = await get.apply(driver, args);
      return record && { ...record, version: "7" as typeof record.version };
    };
    const store = grantStore(driver, { seal: testRing() });
    await store.save(madeGrant(), undefined);
    await store.read(KEY);
    await grantStore(driver, { seal: testRing() }).remove(KEY);
    await grantStore(driver, { seal: testRing() }).save(madeGrant({ requestedScope: "theirs" }), undefined);
    expect((await store.read(KEY))?.requestedScope).toBe("theirs");
  });

  it("keep members that a newer version stored", async () => {
    const driver = memoryDriver();
    const store = grantStore(driver, { seal: "none" });
    await store.save(madeGrant(), undefined);
    const record = await onlyGrant(driver);
    await driver.put(record.key, record.value.replace('"kind": "grant",', '$& "newer": 1,'), record.version);
    await store.save(next(madeGrant(), 2), 1);
    expect(JSON.parse(splitSummary((await onlyGrant(driver)).value).value)).toMatchObject({ newer: 1, generation: 2 });
  });
});

it("a room that was reserved for a login is not that of the same login after it was removed", async () => {
  const store = grantStore(memoryDriver(), { seal: "none" });
  await store.save(madeGrant(), undefined);
  const room = await store.reserve(KEY);
  await store.remove(KEY);
  await store.save(madeGrant(), undefined);
  expect(await room.save(next(madeGrant(), 2), 1)).toBe(false);
  expect(tokenOf(await store.read(KEY))).toBe("access-token-1");
});

describe("a near cache", () => {
  const living = () => madeGrant({ tokens: { ...madeGrant().tokens, obtainedAt: 0, expiresAt: 3_000_000_000_000 } });
  const setUp = async (inner?: StoreDriver) => {
    const time = new TestTime();
    const driver = faulty(inner ?? memoryDriver({ clock: time }));
    const open = (options = {}) => openGrantStore(driver, { seal: testRing(), ...options }, { clock: time.process() });
    const store = open({ near: { ttlMs: 5000 } });
    await open().save(living(), undefined);
    await store.read(KEY);
    return { time, driver, store, other: open() };
  };

  it("returns a living token without asking the engine, for its time", async () => {
    const { time, driver, store } = await setUp();
    driver.before.get = lost;
    expect(tokenOf(await store.read(KEY))).toBe("access-token-1");
    await time.advance(5000);
    expect(await pendingError(store.read(KEY))).toMatchObject({ code: "store_unavailable" });
  });

  it("returns no token that has expired", async () => {
    const { time, driver, store, other } = await setUp();
    const expiresAt = time.epoch() + 100_000;
    await time.advance(1);
    await other.save(next(living(), 2, { tokens: { ...living().tokens, expiresAt } }), 1);
    await time.advance(99_000);
    expect((await store.read(KEY))?.generation).toBe(2);
    await time.advance(1000);
    driver.before.get = lost;
    expect(await pendingError(store.read(KEY))).toMatchObject({ code: "store_unavailable" });
  });

  it.each(["ends", "fails"])("returns nothing of before a watch that %s, and watches again", async (how) => {
    const inner = memoryDriver();
    const { watch } = inner;
    const cuts: (() => void)[] = [];
    inner.watch = async (onChange, onGap, signal) => {
      const cut = new AbortController();
      cuts.push(() => cut.abort());
      await watch?.call(inner, onChange, onGap, AbortSignal.any([signal, cut.signal]));
      if (how === "fails") throw new Error("the connection is gone");
    };
    const { time, store, other } = await setUp(inner);
    cuts[0]?.();
    await time.advance(1);
    await other.save(next(living(), 2), 1);
    expect(tokenOf(await store.read(KEY))).toBe("access-token-2");
    expect(cuts).toHaveLength(2);
    await time.advance(1);
    await other.save(next(living(), 3), 2);
    expect(tokenOf(await store.read(KEY))).toBe("access-token-3");
  });

  it("follows the hints of the engine", async () => {
    const { store, other } = await setUp();
    await other.remove(KEY);
    expect(await store.read(KEY)).toBeUndefined();
  });

  it("follows its own process where the engine gives no hints", async () => {
    const inner: StoreDriver = memoryDriver();
    Object.defineProperty(inner, "watch", { value: undefined });
    const { time, store, other } = await setUp(inner);
    await time.advance(1);
    await store.save(next(living(), 2), 1);
    await time.advance(1);
    expect(tokenOf(await store.read(KEY))).toBe("access-token-2");
    await store.remove(KEY);
    expect(await store.read(KEY)).toBeUndefined();
    await other.save(living(), undefined);
  });

  it.each([
    ["of the grant", { grant: KEY }],
    ["of its refresh", { refreshes: living() }],
  ])("is not asked under a lease %s, nor by those who wait for it", async (_of, named) => {
    const inner: StoreDriver = memoryDriver();
    Object.defineProperty(inner, "watch", { value: undefined });
    const { store, other } = await setUp(inner);
    const options = { durationMs: 25_000, ...named };
    const seen = await store.lease(
      "refresh",
      async () => {
        await other.save(next(living(), 2), 1);
        const first = tokenOf(await store.read(KEY));
        await other.save(next(living(), 3), 2);
        return [first, tokenOf(await store.read(KEY))];
      },
      options,
    );
    expect(seen).toEqual(["access-token-2", "access-token-3"]);
  });

  it("is asked under the lease of another grant", async () => {
    const { driver, store } = await setUp();
    const options = { durationMs: 25_000, grant: { ...KEY, profile: "other" } };
    const work = () => {
      driver.before.get = lost;
      return store.read(KEY);
    };
    expect(tokenOf(await store.lease("refresh", work, options))).toBe("access-token-1");
  });

  it("is not asked until the last of two leases of the grant has ended", async () => {
    const inner: StoreDriver = memoryDriver();
    Object.defineProperty(inner, "watch", { value: undefined });
    const { time, driver, store, other } = await setUp(inner);
    const options = { durationMs: 25_000, grant: KEY };
    const inTheFirst = async () => {
      await store.lease("logout", async () => undefined, options);
      await store.read(KEY);
      await other.save(next(living(), 2), 1);
      return tokenOf(await store.read(KEY));
    };
    await time.advance(1);
    expect(await store.lease("refresh", inTheFirst, options)).toBe("access-token-2");
    await time.advance(1);
    await store.read(KEY);
    driver.before.get = lost;
    expect(tokenOf(await store.read(KEY))).toBe("access-token-2");
  });
});

it("short-lived records expire by the clock of the engine", async () => {
  const time = new TestTime();
  const store = openGrantStore(memoryDriver({ clock: time }), { seal: testRing() }, { clock: time.process() });
  const life = { now: 5, expiresAt: 600_005 };
  await store.shortLived?.put("old", "text", life);
  await time.advance(1000);
  await store.shortLived?.put("new", "text", life);
  await time.advance(599_000);
  expect(await store.shortLived?.take("old")).toBeUndefined();
  expect(await store.shortLived?.take("new")).toBe("text");
});

it("a tenant whose key was deleted is logged out, and may log in again", async () => {
  const driver = memoryDriver();
  const store = () => grantStore(driver, { seal: testEnvelope().sealing });
  await store().save(madeGrant(), undefined);
  await store().saveBinding(BINDING, undefined);
  expect(tokenOf(await store().read(KEY))).toBe("access-token-1");
  const [key] = (await driver.scan({ kind: "key" }, { limit: 2 })).items;
  if (key) await driver.delete(key.key);
  const reader = store();
  expect(await reader.read(KEY)).toBeUndefined();
  expect(await store().list()).toEqual([]);
  expect(await store().listBindings()).toEqual([]);
  const again = store();
  expect(await again.save(madeGrant({ requestedScope: "again" }), undefined)).toBe(true);
  for (const one of [again, reader]) expect((await one.read(KEY))?.requestedScope).toBe("again");
});

const HEALTHY: DriverHealth = { clockAheadMs: 0, risks: [], errors: [], facts: {} };

function storeWith(health: () => Promise<DriverHealth>) {
  return grantStore(Object.assign(memoryDriver(), { location: "redis at host:1", health }), { seal: "none" });
}

describe("the check of the engine before a save", () => {
  it("refuses to save in an engine that evicts records, and reads what is there", async () => {
    const store = storeWith(async () => ({ ...HEALTHY, errors: ["maxmemory_policy is allkeys-lru"] }));
    const grant = madeGrant();
    const error = {
      code: "store_unsafe",
      class: "store",
      message: "the engine redis at host:1 must not hold logins: maxmemory_policy is allkeys-lru",
    };
    expect(await pendingError(store.save(grant, undefined))).toMatchObject(error);
    expect(await pendingError(store.reserve(grant))).toMatchObject(error);
    expect(await store.read(grant)).toBeUndefined();
  });

  it("can be asked for", async () => {
    const driver = Object.assign(memoryDriver(), { health: async () => HEALTHY });
    expect(await grantStore(driver, { seal: "none" }).health?.()).toBe(HEALTHY);
    expect(grantStore(faulty(), { seal: "none" })).not.toHaveProperty("health");
  });

  it("asks a safe engine once, beside its clock, and uses one that does not report its health", async () => {
    let checks = 0;
    const safe = storeWith(async () => {
      checks++;
      return HEALTHY;
    });
    const grant = madeGrant();
    expect(await safe.save(grant, undefined)).toBe(true);
    await (await safe.reserve(grant)).release();
    expect(checks).toBe(2);
    const silent = storeWith(() => Promise.reject(new Error("INFO is forbidden")));
    expect(await silent.save(grant, undefined)).toBe(true);
  });
});

describe("the logins by the times when they are due", () => {
  const NOW = Date.UTC(2030, 0, 1);
  const refreshToken = new Secret("refresh");
  const login = (profile: string, obtainedAt: number, over: Partial<Grant> = {}) => {
    const grant = madeGrant({ profile, ...over });
    return { ...grant, tokens: { ...grant.tokens, refreshToken, obtainedAt, ...over.tokens } };
  };
  const dueOf = async ({ due }: ReturnType<typeof grantStore>, until = NOW, limit = 10) => {
    const { items, total } = (await due?.next(until, limit)) ?? { items: [], total: -1 };
    return { total, logins: items.map(({ profile, dueAt, failures }) => [profile, dueAt, failures]) };
  };

  it("are those with a refresh token, from the oldest one on", async () => {
    const store = grantStore(memoryDriver(), { seal: testRing() });
    const { tokens } = madeGrant();
    await store.save(login("new", NOW - 1), undefined);
    await store.save(login("old", NOW - 2), undefined);
    await store.save(login("later", NOW + 1), undefined);
    await store.save(login("none", NOW, { tokens: { ...tokens, refreshToken: undefined } }), undefined);
    await store.save(login("refused", NOW, { retired: { at: NOW, reason: "refused" } }), undefined);
    await store.save(login("machine", NOW, { account: "grant:client_credentials:id" }), undefined);
    const [old, other] = [
      ["old", NOW - 2, 0],
      ["new", NOW - 1, 0],
    ];
    expect(await dueOf(store)).toEqual({ total: 2, logins: [old, other] });
    expect(await dueOf(store, NOW, 1)).toEqual({ total: 2, logins: [old] });
  });

  it("are due when they were planned, whatever uses them, until they end", async () => {
    const store = grantStore(memoryDriver(), { seal: testRing() });
    const grant = login("ann", NOW - 9);
    await store.save(grant, undefined);
    const [first] = (await store.due?.next(NOW, 1))?.items ?? [];
    if (first === undefined) throw new TypeError("it is due");
    expect(await store.due?.plan(first, NOW - 5, 0)).toBe(true);
    expect(await dueOf(store)).toEqual({ total: 1, logins: [["ann", NOW - 5, 0]] });
    await store.save(login("ann", NOW - 4, { generation: 2 }), 1);
    expect(await dueOf(store)).toEqual({ total: 1, logins: [["ann", NOW - 5, 0]] });
    // It has been refreshed since.
    expect(await store.due?.plan(first, NOW - 3, 0)).toBe(false);
    const reservation = await store.reserve(grant, NOW + 7);
    await reservation.save(login("ann", NOW - 2, { generation: 3 }), 2);
    expect(await dueOf(store, NOW + 6)).toEqual({ total: 0, logins: [] });
    expect(await dueOf(store, NOW + 7)).toEqual({ total: 1, logins: [["ann", NOW + 7, 0]] });
    const retired = { at: NOW, reason: "refused" };
    await store.save(login("ann", NOW - 2, { generation: 4, retired }), 3);
    expect(await dueOf(store, NOW + 9)).toEqual({ total: 0, logins: [] });
    await store.save(login("ann", NOW - 1, { generation: 5 }), 4);
    expect(await dueOf(store)).toEqual({ total: 1, logins: [["ann", NOW - 1, 0]] });
  });

  it("count their failures until they are refreshed, and one of several workers counts each", async () => {
    const { store } = sealedStore();
    await store.save(login("ann", NOW - 9), undefined);
    await store.save(login("bob", NOW - 8), undefined);
    const failing = async () => {
      const found: unknown[] = [];
      for await (const part of store.due?.failing() ?? [])
        found.push(...part.map((one) => [one.profile, one.failures]));
      return found;
    };
    const [ann] = (await store.due?.next(NOW, 1))?.items ?? [];
    if (ann === undefined) throw new TypeError("it is due");
    expect(await failing()).toEqual([]);
    expect(await store.due?.plan(ann, NOW - 7, 1)).toBe(true);
    expect(await store.due?.plan(ann, NOW - 7, 1)).toBe(false);
    expect(await failing()).toEqual([["ann", 1]]);
    expect(await store.read({ ...KEY, profile: "ann" })).toMatchObject({ generation: 1 });
    await store.save(login("ann", NOW - 1, { generation: 2 }), 1);
    expect(await failing()).toEqual([]);
  });

  it("are not hidden by records that cannot be read", async () => {
    const driver = memoryDriver();
    const [own, other] = [testRing(), testRing({ current: "b", keys: { b: key(2) } })].map((seal) =>
      grantStore(driver, { seal }),
    );
    if (!own || !other) throw new TypeError("two are needed");
    for (const profile of ["a", "b", "c"]) await other.save(login(profile, NOW - 9), undefined);
    await own.save(login("own", NOW - 1), undefined);
    expect(await dueOf(own, NOW, 1)).toEqual({ total: 4, logins: [["own", NOW - 1, 0]] });
  });
});

const ID = "an id";
const MINUTE = 60_000;
const { tokens } = madeGrant();
const GRANT = madeGrant({ generation: 5, tokens: { ...tokens, obtainedAt: 1000, expiresAt: undefined } });

describe("the newest generation that this process knows", () => {
  async function newest(ageMs = 0) {
    const time = new TestTime();
    const grants = new NewestGrants(time.process());
    grants.remember(ID, GRANT);
    await time.advance(ageMs);
    return grants;
  }

  it.each<[string, Partial<typeof GRANT>, boolean]>([
    ["an older one", { generation: 4 }, true],
    ["the same", {}, false],
    ["a newer one", { generation: 6 }, false],
    ["one of another login", { generation: 4, signedInAt: 7 }, false],
    ["one of another issuer", { generation: 4, issuer: "https://other.example" }, false],
    ["one that was received later", { generation: 4, tokens: { ...GRANT.tokens, obtainedAt: 1001 } }, false],
    ["one that was received earlier", { generation: 4, tokens: { ...GRANT.tokens, obtainedAt: 999 } }, true],
  ])("is put back over %s: %#", async (_what, over, isNewer) => {
    const stored = { ...GRANT, ...over };
    expect((await newest()).newerThan(ID, stored)).toBe(isNewer ? GRANT : undefined);
    expect((await newest()).newerThan("another id", stored)).toBeUndefined();
  });

  it("is put back for ten minutes, and not once it is forgotten", async () => {
    const older = { ...GRANT, generation: 4 };
    expect((await newest(10 * MINUTE)).newerThan(ID, older)).toBe(GRANT);
    expect((await newest(10 * MINUTE + 1)).newerThan(ID, older)).toBeUndefined();
    const grants = await newest();
    grants.forget(ID);
    expect(grants.newerThan(ID, older)).toBeUndefined();
  });

  it("is not replaced by an older one, and is by the first of another login", async () => {
    const grants = await newest();
    grants.remember(ID, { ...GRANT, generation: 4 });
    expect(grants.newerThan(ID, { ...GRANT, generation: 3 })).toBe(GRANT);
    const other = { ...GRANT, generation: 2, signedInAt: 7 };
    grants.remember(ID, other);
    expect(grants.newerThan(ID, { ...other, generation: 1 })).toBe(other);
  });

  const rotated = { ...GRANT, tokens: { ...GRANT.tokens, refreshToken: new Secret("another") } };

  it.each<[string, typeof GRANT, number | undefined]>([
    ["the same refresh token", GRANT, undefined],
    ["another refresh token", rotated, 4],
    ["no refresh token", { ...GRANT, tokens: { ...GRANT.tokens, refreshToken: undefined } }, 4],
    ["another login", { ...rotated, signedInAt: 7 }, undefined],
  ])("says what is used up, beside %s", async (_what, grant, spent) => {
    expect((await newest()).rotatedGeneration(ID, grant)).toBe(spent);
    expect((await newest()).rotatedGeneration("another id", grant)).toBeUndefined();
  });
});

describe("a near grant", () => {
  function near(options: Partial<NearOptions> = {}) {
    const time = new TestTime();
    const watches: Parameters<NonNullable<StoreDriver["watch"]>>[] = [];
    const driver: StoreDriver = memoryDriver();
    driver.watch = (...watch) => {
      watches.push(watch);
      return new Promise(() => undefined);
    };
    const grants = new NearGrants(driver, { ttlMs: 5000, ...options }, time.process());
    const change = (key: Partial<RecordKey>) => watches[0]?.[0]({ kind: "grant", partition: "p", id: ID, ...key });
    return {
      time,
      grants,
      watches,
      change,
      gap: () => watches[0]?.[1](),
      set: () => grants.set(ID, GRANT, time.epoch()),
    };
  }

  it("is one for its time, counted from before the engine was asked", async () => {
    const { time, grants } = near();
    grants.set(ID, GRANT, time.epoch() - 2000);
    await time.advance(2999);
    expect([grants.get(ID), grants.get("another id")]).toEqual([GRANT, undefined]);
    await time.advance(1);
    expect(grants.get(ID)).toBeUndefined();
  });

  it("is none where it was read before, or when, it was dropped", async () => {
    const { time, grants, set } = near();
    const before = time.epoch();
    await time.advance(1);
    grants.drop(ID);
    grants.set(ID, GRANT, before);
    set();
    expect(grants.get(ID)).toBeUndefined();
    await time.advance(1);
    set();
    expect(grants.get(ID)).toBe(GRANT);
    grants.drop("another id");
    expect(grants.get(ID)).toBe(GRANT);
  });

  it("is dropped by a report about it, and by a gap, and by no other report; one watch is enough", async () => {
    const { time, grants, watches, change, gap, set } = near();
    expect(watches).toHaveLength(0);
    for (const end of [() => change({}), gap]) {
      await time.advance(1);
      set();
      change({ id: "another id" });
      change({ kind: "client" });
      expect(grants.get(ID)).toBe(GRANT);
      end();
      expect(grants.get(ID)).toBeUndefined();
      // It was read before that.
      grants.set(ID, GRANT, time.epoch());
      expect(grants.get(ID)).toBeUndefined();
    }
    expect(watches).toHaveLength(1);
  });

  it("is one of no more than the most", async () => {
    const { time, grants } = near({ maxEntries: 2 });
    for (const id of ["a", "b", "c"]) grants.set(id, GRANT, time.epoch());
    expect(["a", "b", "c"].map((id) => grants.get(id) !== undefined)).toEqual([false, true, true]);
  });

  it("is none under its lease, nor is one set there that was read before it ended", async () => {
    const { time, grants, set } = near();
    set();
    await time.advance(1);
    await grants.without(ID, async () => {
      expect(grants.get(ID)).toBeUndefined();
      await time.advance(1);
      set();
      expect(grants.get(ID)).toBeUndefined();
    });
    expect(grants.get(ID)).toBeUndefined();
    set();
    expect(grants.get(ID)).toBe(GRANT);
    await grants.without("another id", async () => expect(grants.get(ID)).toBe(GRANT));
    await expect(grants.without(ID, () => Promise.reject(new Error("it failed")))).rejects.toThrow("it failed");
    await time.advance(1);
    set();
    expect(grants.get(ID)).toBe(GRANT);
  });
});

const KEYS = { a: key(1), b: key(2) };

describe("reseal", () => {
  const setUp = async () => {
    const driver = memoryDriver();
    for (const tenant of ["ann", "bob"]) {
      const store = grantStore(driver, { seal: testRing(), tenant });
      for (const profile of ["one", "two", "three"]) await store.save(madeGrant({ profile }), undefined);
      await store.saveClient(madeClient({ issuer: `https://${tenant}.example` }), "form");
    }
    return { driver, ring: testRing({ current: "b", keys: KEYS }) };
  };

  it("seals every record with the current key, and each is found as before", async () => {
    const { driver, ring } = await setUp();
    expect(await keysInUse(driver)).toEqual({ a: 8 });
    expect(await reseal(driver, ring)).toEqual({ resealed: 8, current: 0, changed: 0, unusable: 0 });
    expect(await keysInUse(driver)).toEqual({ b: 8 });
    const store = grantStore(driver, { seal: testRing({ current: "b", keys: { b: KEYS.b } }), tenant: "ann" });
    expect(await store.list({ profile: "two" })).toHaveLength(1);
    expect(await store.readClient("https://bob.example", "form")).toBeDefined();
    expect(await reseal(driver, ring)).toEqual({ resealed: 0, current: 8, changed: 0, unusable: 0 });
  });

  it("goes on behind the first page of the engine", async () => {
    const { driver, store } = sealedStore();
    const profiles = Array.from({ length: 201 }, (_, nth) => `p${nth}`);
    for (const profile of profiles) await store.save(madeGrant({ profile }), undefined);
    const ring = testRing({ current: "b", keys: KEYS });
    expect(await keysInUse(driver)).toEqual({ a: 201 });
    expect(await reseal(driver, ring)).toMatchObject({ resealed: 201 });
    expect(await keysInUse(driver)).toEqual({ b: 201 });
  });

  it("leaves a login to be revoked for thirty days from then on", async () => {
    const time = new TestTime();
    const driver = memoryDriver({ clock: time });
    await grantStore(driver, { seal: testRing() }).unrevoked?.add(madeGrant());
    await reseal(driver, testRing({ current: "b", keys: KEYS }));
    expect(await keysInUse(driver)).toEqual({ b: 1 });
    await time.advance(UNREVOKED_MS);
    expect(await keysInUse(driver)).toEqual({});
  });

  it("continues where it was aborted", async () => {
    const { driver, ring } = await setUp();
    const { put } = driver;
    const controller = new AbortController();
    let puts = 0;
    driver.put = async (...args) => {
      if (++puts === 3) controller.abort();
      return put.apply(driver, args);
    };
    expect(await pendingError(reseal(driver, ring, { signal: controller.signal }))).toMatchObject({ code: "aborted" });
    driver.put = put;
    expect(await reseal(driver, ring)).toMatchObject({ resealed: 5, current: 3 });
  });

  it("puts no older text over what another process has stored since it was read", async () => {
    const { driver, ring } = await setUp();
    const { scan } = driver;
    let changed: string | undefined;
    driver.scan = async (...args) => {
      const page = await scan.apply(driver, args);
      const [first] = page.items;
      if (changed === undefined && first) {
        changed = await driver.put(first.key, first.value, first.version);
      }
      return page;
    };
    expect(await reseal(driver, ring)).toMatchObject({ resealed: 7, changed: 1 });
    const { items } = await scan.call(driver, { kind: "grant" }, { limit: 10 });
    expect(items.map(({ version }) => version)).toContain(changed);
  });

  it("leaves what another process changes, and what it cannot open", async () => {
    const { driver, ring } = await setUp();
    const { put } = driver;
    const [first, second] = (await driver.scan({ kind: "grant" }, { limit: 2 })).items;
    if (!first || !second) throw new Error("two grants");
    await driver.put(second.key, second.value.replace(/"key":"a"(?!.*"key":"a")/s, '"key":"lost"'), second.version);
    const errors: AgentAuthError[] = [];
    driver.put = async (at, value, expected, options) => {
      const isFirst = at.id === first.key.id && at.partition === first.key.partition;
      if (isFirst) await put.call(driver, first.key, first.value, first.version);
      return put.call(driver, at, value, expected, options);
    };
    const report = await reseal(driver, ring, { onUnusable: (error) => errors.push(error) });
    expect(report).toEqual({ resealed: 6, current: 0, changed: 1, unusable: 1 });
    const message = expect.stringContaining('the key "lost", which is not in the key ring');
    expect(errors).toMatchObject([{ code: "store_failed", class: "store", message, cause: expect.any(CipherError) }]);
    expect(await keysInUse(driver)).toEqual({ a: 1, b: 6, lost: 1 });
  });
});
