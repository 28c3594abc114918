import { inspect } from "node:util";
import { describe, expect, it, vi } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import { grantStore } from "../../../src/store/driver/grant-store.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";
import { recordLocation } from "../../../src/store/driver/tenant-records.js";
import { keychainCipher } from "../../../src/store/keychain/keyring.js";
import { envelope, openEnvelope } from "../../../src/store/seal/envelope.js";
import { keyRing } from "../../../src/store/seal/key-ring.js";
import { pendingError } from "../../helpers/captured.js";
import { FakeClock } from "../../helpers/clock.js";
import { madeGrant } from "../../helpers/grant.js";
import { key, NAME_KEY, testEnvelope, testRing } from "./support.js";

const KEY = { profile: "default", server: "https://mcp.example/mcp" };
const SIGNAL = new AbortController().signal;

describe("an envelope", () => {
  it("asks the key management service once a tenant, and never for a cached token", async () => {
    const driver = memoryDriver();
    const { sealing, calls } = testEnvelope();
    const store = grantStore(driver, { seal: sealing, tenant: "ann" });
    const grants = Array.from({ length: 10 }, (_, nth) => madeGrant({ profile: `p${nth}` }));
    await Promise.all(grants.map((grant) => store.save(grant, undefined)));
    expect(calls).toEqual({ wrap: 1, unwrap: 0 });
    const elsewhere = testEnvelope();
    const other = grantStore(driver, { seal: elsewhere.sealing, tenant: "ann" });
    const reads = vi.spyOn(driver, "get");
    await Promise.all(grants.map(({ profile }) => other.read({ ...KEY, profile })));
    await other.read({ ...KEY, profile: "p0" });
    expect(elsewhere.calls).toEqual({ wrap: 0, unwrap: 1 });
    expect(reads.mock.calls.filter(([{ kind }]) => kind === "key")).toHaveLength(1);
    await grantStore(driver, { seal: sealing, tenant: "bob" }).save(madeGrant(), undefined);
    expect(calls).toEqual({ wrap: 2, unwrap: 0 });
    expect((await driver.scan({ kind: "key" }, { limit: 10 })).items).toHaveLength(2);
  });

  it("uses the key of the process that stored one first", async () => {
    const driver = memoryDriver();
    let wrapping = 0;
    let release: () => void = () => undefined;
    const all = new Promise<void>((resolve) => {
      release = resolve;
    });
    const wrap = async (bytes: Uint8Array) => {
      if (++wrapping === 5) release();
      await all;
      return bytes.map((byte) => byte ^ 0xff);
    };
    const unwrap = async (bytes: Uint8Array) => bytes.map((byte) => byte ^ 0xff);
    const seal = () => envelope({ wrap, unwrap, nameKey: NAME_KEY });
    const stores = Array.from({ length: 5 }, () => grantStore(driver, { seal: seal() }));
    await Promise.all(stores.map((store, nth) => store.save(madeGrant({ profile: `p${nth}` }), undefined)));
    const reader = grantStore(driver, { seal: testEnvelope().sealing });
    expect(await reader.list()).toHaveLength(5);
    for (const store of stores) expect(await store.list()).toHaveLength(5);
  });

  it("asks again after five minutes", async () => {
    const driver = memoryDriver();
    const clock = new FakeClock();
    let unwrapped = 0;
    const same = async (bytes: Uint8Array) => {
      unwrapped++;
      return bytes;
    };
    const sealing = openEnvelope({ wrap: async (bytes) => bytes, unwrap: same, nameKey: NAME_KEY }, clock);
    const cipher = sealing.cipherFor(recordLocation(driver, "ann"));
    const sealed = await cipher.seal("text", "n");
    await clock.sleep(299_999, SIGNAL);
    await cipher.open(sealed, "n");
    expect(unwrapped).toBe(0);
    await clock.sleep(1, SIGNAL);
    await Promise.all([cipher.open(sealed, "n"), cipher.open(sealed, "n")]);
    expect(unwrapped).toBe(1);
  });

  it("reports a key management service that fails as one that may answer later", async () => {
    const failing = () => Promise.reject(new Error("kms: \u001b[31mthrottled"));
    const store = grantStore(memoryDriver(), { seal: envelope({ wrap: failing, unwrap: failing, nameKey: NAME_KEY }) });
    expect(await pendingError(store.save(madeGrant(), undefined))).toMatchObject({
      code: "store_unavailable",
      class: "unavailable",
    });
  });

  it("passes on an error of ours that the key management service throws", async () => {
    const own = new AgentAuthError("tls_failed", "no", { class: "remote" });
    const failing = () => Promise.reject(own);
    const store = grantStore(memoryDriver(), { seal: envelope({ wrap: failing, unwrap: failing, nameKey: NAME_KEY }) });
    await expect(store.save(madeGrant(), undefined)).rejects.toBe(own);
  });

  it("asks again at once after an unwrap that failed", async () => {
    const driver = memoryDriver();
    await grantStore(driver, { seal: testEnvelope().sealing }).save(madeGrant(), undefined);
    let unwrapped = 0;
    const turn = async (bytes: Uint8Array) => bytes.map((byte) => byte ^ 0xff);
    const unwrap = (bytes: Uint8Array) => (unwrapped++ === 0 ? Promise.reject(new Error("throttled")) : turn(bytes));
    const store = grantStore(driver, { seal: envelope({ wrap: turn, unwrap, nameKey: NAME_KEY }) });
    // A list that leaves them out would say that no user is logged in.
    expect(await pendingError(store.list())).toMatchObject({ message: expect.stringContaining("could not unwrap") });
    expect(await store.read(KEY)).toMatchObject({ generation: 1 });
    expect(await store.read(KEY)).toMatchObject({ generation: 1 });
    expect(unwrapped).toBe(2);
  });

  it("opens what another process has sealed since with a new key of the tenant, and keeps that key", async () => {
    const driver = memoryDriver();
    const open = () => {
      const { sealing, calls } = testEnvelope();
      return { store: grantStore(driver, { seal: sealing }), calls };
    };
    const first = open();
    await first.store.save(madeGrant({ profile: "one" }), undefined);
    const [key] = (await driver.scan({ kind: "key" }, { limit: 2 })).items;
    if (key) await driver.delete(key.key);
    const second = open();
    for (const profile of ["two", "three"]) await second.store.save(madeGrant({ profile }), undefined);
    const profiles = ["two", "three", "one"];
    const found = [];
    for (const profile of profiles) found.push((await first.store.read({ ...KEY, profile }))?.profile);
    expect(found).toEqual(["two", "three", undefined]);
    expect(first.calls).toEqual({ wrap: 1, unwrap: 1 });
  });

  it.each<[string, object | string]>([
    ["no JSON", "{"],
    ["a list", "[]"],
    ["another kind", { kind: "sealed" }],
    ["a newer schema", { schema: 2 }],
    ["no id", { key: 7 }],
    ["no wrapped key", { wrapped: 7 }],
    ["a wrapped key that is no base64url", { wrapped: "+" }],
  ])("reports the stored key of a tenant that is %s", async (_what, over) => {
    const driver = memoryDriver();
    const { sealing, calls } = testEnvelope();
    await grantStore(driver, { seal: testEnvelope().sealing }).save(madeGrant(), undefined);
    const [record] = (await driver.scan({ kind: "key" }, { limit: 2 })).items;
    if (record === undefined) throw new Error("a key is stored");
    const text = typeof over === "string" ? over : JSON.stringify({ ...JSON.parse(record.value), ...over });
    await driver.put(record.key, text, record.version);
    await expect(grantStore(driver, { seal: sealing }).read(KEY)).rejects.toMatchObject({
      class: "store",
      message: expect.stringContaining("the key of its tenant is stored in a form that this version does not read"),
    });
    expect(calls.unwrap).toBe(0);
  });

  it("refuses a key of another length from the key management service", async () => {
    const driver = memoryDriver();
    await grantStore(driver, { seal: testEnvelope().sealing }).save(madeGrant(), undefined);
    const wrap = async (bytes: Uint8Array) => bytes;
    for (const length of [16, 31, 33]) {
      const unwrap = async () => new Uint8Array(length);
      const store = grantStore(driver, { seal: envelope({ wrap, unwrap, nameKey: NAME_KEY }) });
      const message = `unwrap returned ${length} bytes, not 32`;
      expect(await pendingError(store.read(KEY))).toMatchObject({
        class: "store",
        message: expect.stringContaining(message),
      });
    }
  });

  it("stores no data key that is not wrapped", async () => {
    const driver = memoryDriver();
    let plain = "";
    const wrap = async (bytes: Uint8Array) => {
      plain = Buffer.from(bytes).toString("base64url");
      return bytes.map((byte) => byte ^ 0xff);
    };
    await grantStore(driver, { seal: envelope({ wrap, unwrap: wrap, nameKey: NAME_KEY }) }).save(
      madeGrant(),
      undefined,
    );
    const [record] = (await driver.scan({ kind: "key" }, { limit: 2 })).items;
    expect(plain).toHaveLength(43);
    expect(record?.value).not.toContain(plain);
  });

  it("refuses options that are wrong", () => {
    expect(() => envelope({ wrap: undefined, unwrap: undefined, nameKey: NAME_KEY } as never)).toThrow("wrap");
    const same = async (bytes: Uint8Array) => bytes;
    expect(() => envelope({ wrap: same, unwrap: same } as never)).toThrow("nameKey");
  });
});

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

describe("a key ring", () => {
  it("opens what it sealed, under the same name only", async () => {
    const ring = testRing();
    const sealed = await ring.seal("text ✓", "grant:p:1");
    expect(await ring.open(sealed, "grant:p:1")).toBe("text ✓");
    expect(await ring.seal("text ✓", "grant:p:1")).not.toBe(sealed);
    await expect(ring.open(sealed, "grant:p:2")).rejects.toThrow(/changed .*or another record/);
    const changed = sealed.replace(/(?<="data":")./, (first) => (first === "A" ? "B" : "A"));
    await expect(ring.open(changed, "grant:p:1")).rejects.toThrow();
  });

  it("writes and reads the texts of the stores in files", async () => {
    const cipher = keychainCipher(key(1));
    const fromFile = await cipher.seal("text", "name");
    const id = JSON.parse(fromFile).key as string;
    const ring = testRing({ current: id, keys: { [id]: key(1) } });
    expect(await ring.open(fromFile, "name")).toBe("text");
    expect(await cipher.open(await ring.seal("text", "name"), "name")).toBe("text");
  });

  it("seals with the current key and opens with any", async () => {
    const old = await testRing().seal("old", "n");
    const keys = { a: hex(key(1)), b: Buffer.from(key(2)).toString("base64url") };
    const ring = testRing({ current: "b", keys });
    expect(await ring.open(old, "n")).toBe("old");
    expect(JSON.parse(await ring.seal("new", "n"))).toMatchObject({ key: "b", alg: "A256GCM" });
    const without = testRing({ current: "b", keys: { b: keys.b } });
    await expect(without.open(old, "n")).rejects.toThrow('the key "a", which is not in the key ring: that has "b"');
  });

  it("names alike in every process with its name key, and shows nothing", async () => {
    const name = await testRing().nameOf("https://mcp.example");
    expect(name).toMatch(/^[\w-]{43}$/);
    expect(await testRing({ keys: { a: key(3) } }).nameOf("https://mcp.example")).toBe(name);
    expect(await testRing({ nameKey: key(8) }).nameOf("https://mcp.example")).not.toBe(name);
  });

  it.each([
    ["plain text", "it is not valid JSON"],
    ['{"kind":"grant"}', "it is not sealed"],
    ['{"schema":2,"kind":"sealed"}', "its schema is"],
    ['{"schema":1,"kind":"sealed","alg":"none"}', "its alg is"],
    ['{"schema":1,"kind":"sealed","alg":"A256GCM"}', "its key is not named"],
    ['{"schema":1,"kind":"sealed","alg":"A256GCM","key":"a","nonce":"AA","data":"AA"}', "its nonce does not have"],
    ['{"schema":1,"kind":"sealed","alg":"A256GCM","key":"a","nonce":"AB","data":"AA"}', "its nonce is not base64url"],
    [
      '{"schema":1,"kind":"sealed","alg":"A256GCM","key":"a","nonce":"AAAAAAAAAAAAAAAA","data":"AA"}',
      "its data is cut",
    ],
  ])("opens nothing else: %s", async (text, message) => {
    expect(await pendingError(testRing().open(text, "n"))).toMatchObject({ name: "CipherError" });
    await expect(testRing().open(text, "n")).rejects.toThrow(message);
  });

  const FORM = "must have 32 bytes, as bytes, 64 hexadecimal digits or 43 characters of base64url";
  const MAKE = "make one with: openssl rand -hex 32";
  const ADD = "add the key to keys, or name another one";
  it.each<[object, string, string]>([
    [{ keys: { a: "short!" } }, `keys.a ${FORM}; it has 6 characters and is neither`, MAKE],
    [{ keys: { a: hex(key(1)).slice(2) } }, `keys.a ${FORM}; it has 62 characters and is neither`, MAKE],
    [{ keys: { a: `${hex(key(1))}0000` } }, `keys.a ${FORM}; it has 51 bytes`, MAKE],
    [{ keys: { a: new Uint8Array(31) } }, `keys.a ${FORM}; it has 31 bytes`, MAKE],
    [{ nameKey: undefined }, `nameKey ${FORM}; it is missing`, MAKE],
    [{ nameKey: 5 }, `nameKey ${FORM}; it is of the type number`, MAKE],
    [{ current: "b" }, 'current is "b", and keys has no key of this id: it has "a"', ADD],
    [
      { current: "c", keys: { a: key(1), b: key(2) } },
      'current is "c", and keys has no key of this id: it has "a", "b"',
      ADD,
    ],
    [{ keys: {} }, 'current is "a", and keys has no key of this id: it has none', ADD],
    [{ keys: undefined }, 'current is "a", and keys has no key of this id: it has none', ADD],
  ])("refuses options that are wrong, and shows no key: %o", (over, message, hint) => {
    const make = () => keyRing({ current: "a", keys: { a: key(1) }, nameKey: NAME_KEY, ...over } as never);
    expect(make).toThrow(expect.objectContaining({ code: "usage", message, hint }));
  });

  it.each([
    ["capital digits", hex(key(250)).toUpperCase()],
    ["base64url", Buffer.from(key(250)).toString("base64url")],
    ["base64url with its padding", `${Buffer.from(key(250)).toString("base64url")}=`],
  ])("reads a key in %s", async (_how, text) => {
    const sealed = await testRing({ keys: { a: key(250) } }).seal("text", "n");
    expect(await testRing({ keys: { a: text } }).open(sealed, "n")).toBe("text");
  });

  it("shows no key when it is printed", () => {
    const printed = inspect(testRing(), { depth: 10, showHidden: true });
    expect(printed).not.toContain("1, 1, 1");
  });
});
