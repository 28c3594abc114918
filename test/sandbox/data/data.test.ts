import { describe, expect, it } from "vitest";
import { SandboxData } from "../../../src/sandbox/data/data.js";
import { DEVICE_FIELDS } from "../../../src/sandbox/data/pool-devices.js";
import {
  CLIENTS,
  type Direction,
  LOCATIONS,
  mix,
  type SandboxDevice,
} from "../../../src/sandbox/data/sample-device.js";
import { fc } from "../../helpers/properties.js";

const ANCHOR = 1_790_000_000;
const SIZE = { accounts: 2, domains: 2, pools: 3, devices: 600 };

function make(seed = 1, devices = SIZE.devices): SandboxData {
  return new SandboxData(seed, { ...SIZE, devices }, ANCHOR);
}

function everything(data: SandboxData) {
  return data.accounts().map((account) => ({
    account,
    domains: data.domains(account.id).map((domain) => ({
      domain,
      pools: data.pools(domain.id).map((pool) => ({ pool, devices: allOf(data, pool.id) })),
    })),
  }));
}

function allOf(
  data: SandboxData,
  poolId: string,
  field: (typeof DEVICE_FIELDS)[number] = "id",
  direction: Direction = "asc",
) {
  const pool = data.findDevices(poolId);
  if (!pool) throw new Error("no pool");
  return Array.from({ length: pool.count }, (_, position) => pool.at({ field, direction }, position) as SandboxDevice);
}

describe("sandbox data", () => {
  it("is the same for the same seed and another for another seed", () => {
    expect(everything(make(7))).toEqual(everything(make(7)));
    const poolOf = (seed: number) => allOf(make(seed), make(seed).first.pool).map(({ id }) => id);
    const one = new Set(poolOf(7));
    expect(poolOf(8).some((id) => one.has(id))).toBe(false);
  });

  it("has ids of the kind's own look, unique over all pools, that lead back to their object", () => {
    const data = make();
    const tree = everything(data);
    const ids = tree.flatMap(({ account, domains }) => [
      account.id,
      ...domains.flatMap(({ domain, pools }) => [
        domain.id,
        ...pools.flatMap(({ pool, devices }) => [pool.id, ...devices.map(({ id }) => id)]),
      ]),
    ]);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^(acc|dom|pool|dev)_[0-9a-z]{10,14}$/);
    for (const { account, domains } of tree) {
      for (const { domain, pools } of domains) {
        expect(domain).toMatchObject({ account_id: account.id, type: "domain" });
        for (const { pool, devices } of pools) {
          expect(pool).toMatchObject({ account_id: account.id, domain_id: domain.id, type: "pool" });
          expect(pool.authentication_ruleset_nid).toMatch(/^rs_/);
          const home = { account_id: account.id, domain_id: domain.id, pool_id: pool.id, type: "device" };
          for (const device of devices) expect(device).toMatchObject(home);
        }
      }
    }
  });

  it("hashes different numbers to different ones", () => {
    fc.assert(
      fc.property(
        fc.nat(),
        fc.nat(),
        fc.nat(),
        (key, one, other) => (mix(key, one) === mix(key, other)) === (one === other),
      ),
    );
  });

  it("generates devices as the service documents them", () => {
    const data = make(3);
    const found = allOf(data, data.first.pool);
    const asns = new Map(LOCATIONS.map(({ city, asns }) => [city, asns]));
    for (const device of found) {
      expect(device.dynamic_client_details.client_secret).toBe("<CLIENT_SECRET>");
      expect(device.dynamic_client_details.redirect_uris.every((uri) => URL.canParse(uri))).toBe(true);
      expect(device.first_seen.at).toBeLessThanOrEqual(device.last_seen.at);
      expect(device.last_seen.at).toBeLessThanOrEqual(ANCHOR);
      for (const seen of [device.first_seen, device.last_seen]) {
        const location = LOCATIONS.find(({ city }) => city === seen.city);
        expect([seen.country_code, seen.region_code, seen.timezone]).toEqual([
          location?.country,
          location?.region,
          location?.timezone,
        ]);
        expect(seen.lat_long).toEqual(location?.latLong);
        expect(asns.get(seen.city)).toContain(seen.asn);
        expect(seen.remote_ip).toMatch(
          /^(192\.0\.2|198\.51\.100|203\.0\.113)\.([1-9]|[1-9]\d|1\d\d|2[0-4]\d|25[0-4])$/,
        );
        expect(seen.ja4_fingerprint).toMatch(/^t1[23]d\d{4}\d{0,2}(h[12]|00)_[0-9a-f]{12}_[0-9a-f]{12}$/);
        const agents = CLIENTS[device.session_type].flatMap(({ agents }) => agents);
        expect(agents).toContain(seen.user_agent);
      }
    }
    expect(new Set(found.map(({ session_type }) => session_type))).toEqual(new Set(["browser", "api", "mcp"]));
    const revoked = found.filter(({ status }) => status === "revoked").length / found.length;
    expect(revoked).toBeGreaterThan(0.05);
    expect(revoked).toBeLessThan(0.16);
    const stayed = found.filter((device) => device.first_seen.city === device.last_seen.city).length / found.length;
    expect(stayed).toBeGreaterThan(0.8);
    expect(stayed).toBeLessThan(1);
    for (const script of [/\p{Script=Latin}/u, /\p{Script=Han}/u, /\p{Script=Cyrillic}/u, /\p{Script=Arabic}/u]) {
      expect(found.some(({ title }) => script.test(title))).toBe(true);
    }
    for (const kind of [/\p{Script=Devanagari}/u, /[éüłğåã]/, /\p{Extended_Pictographic}/u]) {
      expect(found.some(({ title }) => kind.test(title))).toBe(true);
    }
  });

  it("has locations whose timezones exist and whose countries have networks", () => {
    expect(new Set(LOCATIONS.map(({ city }) => city)).size).toBe(LOCATIONS.length);
    expect(LOCATIONS.length).toBeGreaterThanOrEqual(12);
    for (const location of LOCATIONS) {
      expect(() => new Intl.DateTimeFormat("en", { timeZone: location.timezone })).not.toThrow();
      expect(location.country).toMatch(/^[A-Z]{2}$/);
      expect(location.asns.length).toBeGreaterThan(0);
      expect(Math.abs(location.latLong[0])).toBeLessThanOrEqual(90);
      expect(Math.abs(location.latLong[1])).toBeLessThanOrEqual(180);
    }
  });

  it("sorts by every field as an independent sort does, also after devices came and went", () => {
    const action = fc.record({
      insert: fc.boolean(),
      at: fc.nat(250),
      field: fc.constantFrom(...DEVICE_FIELDS),
      desc: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.nat(), fc.nat(200), fc.array(action, { maxLength: 12 }), (seed, count, actions) => {
        const data = make(seed, count);
        const pool = data.findDevices(data.first.pool);
        for (const { insert, at, field, desc } of actions) {
          const order = { field, direction: desc ? "desc" : "asc" } as const;
          const before = pool?.count ?? 0;
          if (insert) {
            const added = pool?.insertAt(order, at);
            expect(pool?.at(order, Math.min(at, before))).toEqual(added);
            expect(pool?.count).toBe(before + 1);
          } else {
            pool?.deleteAt(order, at, 2);
            expect(pool?.count).toBe(before - Math.max(0, Math.min(2, before - at)));
          }
        }
        const byId = allOf(data, data.first.pool).sort((a, b) => (a.id < b.id ? -1 : 1));
        for (const field of DEVICE_FIELDS) {
          const key = (device: SandboxDevice) => (field === "last_seen" ? device.last_seen.at : device[field]);
          const expected = [...byId].sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
          expect(allOf(data, data.first.pool, field, "asc")).toEqual(expected);
          expect(allOf(data, data.first.pool, field, "desc")).toEqual(expected.reverse());
        }
      }),
      { numRuns: 25 },
    );
  });

  it("still finds room after hundreds of insertions at one place", () => {
    const data = make(1, 10_000);
    const pool = data.findDevices(data.first.pool);
    const order = { field: "title", direction: "desc" } as const;
    for (let i = 0; i < 400; i++) {
      const added = pool?.insertAt(order, 77);
      expect(pool?.at(order, 77)).toEqual(added);
    }
    expect(pool?.count).toBe(10_400);
  });

  it("changes devices, generated ones and inserted ones, in their place", () => {
    const data = make();
    const { pool } = data.first;
    const inserted = data.insertDevice(pool);
    const generated = data.device(pool, 17) as SandboxDevice;
    for (const { id } of [inserted, generated, inserted, generated]) {
      const before = data.findDevice(pool, id) as SandboxDevice;
      const status = before.status === "active" ? "revoked" : "active";
      expect(data.updateDevice(pool, id, { status })).toEqual({ ...before, status });
      expect(data.findDevice(pool, id)).toEqual({ ...before, status });
      expect(data.deviceCount(pool)).toBe(SIZE.devices + 1);
      const ids = allOf(data, pool).map((device) => device.id);
      expect(ids).toEqual(ids.toSorted());
    }
    expect(data.updateDevice(pool, "dev_00000000000000", { status: "active" })).toBeUndefined();
    expect(data.deleteDevice(pool, generated.id)).toBe(true);
    expect(data.findDevice(pool, generated.id)).toBeUndefined();
    expect(() => data.updateDevice("pool_0", generated.id, {})).toThrow(TypeError);
  });

  it("takes devices in and out by id", () => {
    const data = make();
    const { pool } = data.first;
    const before = data.deviceCount(pool);
    const added = data.insertDevice(pool, { title: "mine", status: "revoked" });
    expect(added).toMatchObject({ title: "mine", status: "revoked", pool_id: pool, type: "device" });
    expect(data.deviceCount(pool)).toBe(before + 1);
    expect(() => data.insertDevice(pool, { id: added.id })).toThrow(TypeError);
    expect(data.deleteDevice(pool, added.id)).toBe(true);
    expect(data.deleteDevice(pool, added.id)).toBe(false);
    const first = data.device(pool, 0) as SandboxDevice;
    expect(data.deleteDevice(pool, first.id)).toBe(true);
    expect(data.device(pool, 0)?.id).not.toBe(first.id);
    expect(data.deviceCount(pool)).toBe(before - 1);
    expect(() => data.deviceCount("pool_nothing")).toThrow(TypeError);
  });
});
