import { describe, expect, it, vi } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import { grantStore } from "../../../src/store/driver/grant-store.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";
import { recordLocation } from "../../../src/store/driver/tenant-records.js";
import { envelope, openEnvelope } from "../../../src/store/seal/envelope.js";
import { pendingError } from "../../helpers/captured.js";
import { FakeClock } from "../../helpers/clock.js";
import { madeGrant } from "../../helpers/grant.js";
import { NAME_KEY, testEnvelope } from "./support.js";

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
      message: expect.stringContaining("could not wrap the key of a tenant: kms: \\e[31mthrottled"),
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
    // A list that leaves them out would say that nobody is logged in.
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
