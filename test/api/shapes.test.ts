import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { checkShape as checkWith, SHAPES, type Shape } from "../../src/api/shapes.js";
import { readStrictChecks } from "../../src/api/types.js";
import { hideClientSecret, MASK } from "../../src/redact.js";
import { fc } from "../helpers/properties.js";

const moment = {
  asn: 64496,
  at: 1767225600.5,
  city: "Example City",
  country_code: "ZZ",
  ja4_fingerprint: "t13d0000h2_000000000000_000000000000",
  lat_long: [12.5, -34.5],
  region_code: "EX",
  remote_ip: "192.0.2.10",
  timezone: "Etc/UTC",
  user_agent: "ExampleAgent/1.0",
};
// The contract's own example, so that a field which is added to the contract needs no second one here.
const contract = parse(readFileSync("openapi.yaml", "utf8"));
const page = contract.paths["/api/v1/device"].get.responses["200"].content["application/json"].example;
const device: Record<string, unknown> & { dynamic_client_details: object } = {
  ...page.summaries[0],
  first_seen: moment,
  last_seen: moment,
};
const pool = {
  account_id: "<account_id>",
  authentication_ruleset_nid: "<ruleset_nid>",
  domain_id: "<domain_id>",
  id: "<pool_id>",
  status: "any word",
  title: "Example pool",
  type: "pool",
};
const domain = {
  account_id: "<account_id>",
  id: "<domain_id>",
  status: "any word",
  title: "Example domain",
  type: "domain",
};
const pagination = {
  item_count: 1,
  item_start: 1,
  item_end: 1,
  page_count: 1,
  page_index: 1,
  page_offset: 0,
  page_size: 50,
  next_page_offset: null,
  previous_page_offset: null,
};
const sorting = { direction: "asc", field: "any word" };
const deviceSorting = { direction: "desc", field: "last_seen" };
const documented: Record<keyof typeof SHAPES, Record<string, unknown>> = {
  pool,
  domain,
  device,
  pagination,
  sorting,
  deviceSorting,
};
const REQUIRED: Record<keyof typeof SHAPES, string[]> = {
  pool: ["id", "type", "domain_id"],
  domain: ["id", "type", "account_id"],
  device: ["id", "type", "pool_id"],
  pagination: Object.keys(pagination),
  sorting: [],
  deviceSorting: [],
};
const names = Object.keys(documented) as (keyof typeof SHAPES)[];

const checkShape = (shape: Shape, value: unknown) => checkWith(shape, value, readStrictChecks("all"));
const lastSeen = (change: object) => ({ ...device, last_seen: { ...moment, ...change } });
const client = (change: object) => ({
  ...device,
  dynamic_client_details: { ...device.dynamic_client_details, ...change },
});

describe("checkShape", () => {
  it.each(names)("accepts a %s as it is documented", (name) => {
    expect(checkShape(SHAPES[name], documented[name])).toBeUndefined();
  });

  describe.each(names)("of a %s", (name) => {
    const shape = SHAPES[name];
    const value = documented[name];

    it.each(Object.keys(value))("finds that %s is missing", (key) => {
      const { [key]: _, ...rest } = value;
      expect(checkShape(shape, rest)).toEqual({ path: key, value: undefined, rule: "is missing" });
      expect(checkShape(shape, { ...value, [key]: undefined })?.rule).toBe("is missing");
    });

    it.each(Object.keys(value))("finds a null in %s that is not the service's own", (key) => {
      const problem = checkShape(shape, { ...value, [key]: null });
      const own = key === "next_page_offset" || key === "previous_page_offset";
      expect(problem).toEqual(own ? undefined : { path: key, value: null, rule: "must not be null" });
    });

    it("lets an optional field be absent or null, and a new one be there, unless that is checked too", () => {
      const required = REQUIRED[name];
      for (const key of Object.keys(value)) {
        const { [key]: _, ...rest } = value;
        const found = [rest, { ...value, [key]: null }].map(
          (one) => checkWith(shape, one, readStrictChecks(true))?.rule,
        );
        const isNullable = key.endsWith("_page_offset");
        const rules = required.includes(key) ? ["is missing", isNullable ? undefined : "must not be null"] : [];
        expect([key, ...found]).toEqual([key, rules[0], rules[1]]);
      }
      const extra = { ...value, x_new: 1 };
      const [strict, nulls] = [readStrictChecks(true), readStrictChecks(["nulls"])];
      expect([checkWith(shape, extra, strict), checkWith(shape, extra, nulls)]).toEqual([undefined, undefined]);
    });

    it("finds a property that is not documented, whatever it is called", () => {
      fc.assert(
        fc.property(fc.oneof(fc.string(), fc.constantFrom("__proto__", "constructor", "toString")), (key) => {
          fc.pre(!Object.hasOwn(value, key));
          const extra = JSON.parse(`{${JSON.stringify(key)}:"a new secret",${JSON.stringify(value).slice(1)}`);
          expect(checkShape(shape, extra)).toEqual({ path: key, value: undefined, rule: "is not documented" });
        }),
      );
    });
  });

  it.each([
    ["title", { ...device, title: 7 }, 7, "must be a string"],
    ["last_seen.at", lastSeen({ at: "1767225600" }), "1767225600", "must be a number"],
    ["last_seen.at", lastSeen({ at: Number.NaN }), Number.NaN, "must be a number"],
    ["last_seen.asn", lastSeen({ asn: 64496.5 }), 64496.5, "must be an integer"],
    ["dynamic_client_details.pkce_required", client({ pkce_required: "yes" }), "yes", "must be a boolean"],
    ["last_seen.lat_long", lastSeen({ lat_long: { 0: 1, 1: 2 } }), { 0: 1, 1: 2 }, "must be an array"],
    ["last_seen", { ...device, last_seen: [moment] }, [moment], "must be an object"],
    ["last_seen", { ...device, last_seen: 1767225600 }, 1767225600, "must be an object"],
    ["last_seen.lat_long[1]", lastSeen({ lat_long: [12.5, "-34.5"] }), "-34.5", "must be a number"],
    ["last_seen.lat_long[0]", lastSeen({ lat_long: [null, 0] }), null, "must not be null"],
    ["dynamic_client_details.redirect_uris[0]", client({ redirect_uris: [1] }), 1, "must be a string"],
  ])("finds a wrong type at %s", (path, value, wrong, rule) => {
    expect(checkShape(SHAPES.device, value)).toEqual({ path, value: wrong, rule });
  });

  it("names null in the rule where the service itself documents it", () => {
    const problem = checkShape(SHAPES.pagination, { ...pagination, next_page_offset: "50" });
    expect(problem).toEqual({ path: "next_page_offset", value: "50", rule: "must be a number or null" });
  });

  it.each([
    ["status", { ...device, status: "paused" }, "paused", "must be one of active, revoked"],
    ["session_type", { ...device, session_type: "cli" }, "cli", "must be one of browser, api, mcp"],
    ["dynamic_client_details.auth_profile", client({ auth_profile: "x" }), "x", "must be one of openid, mcp"],
    ["type", { ...device, type: "pool" }, "pool", "must be device"],
  ])("finds an unknown value of %s", (path, value, wrong, rule) => {
    expect(checkShape(SHAPES.device, value)).toEqual({ path, value: wrong, rule });
  });

  it("knows the sort fields of a device list only", () => {
    const value = { ...deviceSorting, field: "created" };
    expect(checkShape(SHAPES.sorting, value)).toBeUndefined();
    expect(checkShape(SHAPES.deviceSorting, value)?.rule).toBe("must be one of id, last_seen, status, title");
    expect(checkShape(SHAPES.sorting, { ...sorting, direction: "up" })?.rule).toBe("must be one of asc, desc");
  });

  it.each(["zz", "ZZZ", "Z", "", "Z1", "ZZ\n", "ÄÖ"])("finds that %j is no country code", (country_code) => {
    const problem = checkShape(SHAPES.device, lastSeen({ country_code }));
    expect(problem).toEqual({ path: "last_seen.country_code", value: country_code, rule: "must match ^[A-Z]{2}$" });
  });

  it("finds a number that is too small", () => {
    const problem = checkShape(SHAPES.device, lastSeen({ asn: 0 }));
    expect(problem).toEqual({ path: "last_seen.asn", value: 0, rule: "must be at least 1" });
    expect(checkShape(SHAPES.device, lastSeen({ asn: 1 }))).toBeUndefined();
  });

  it("accepts every IPv4 address", () => {
    fc.assert(
      fc.property(fc.ipV4(), (remote_ip) => {
        expect(checkShape(SHAPES.device, lastSeen({ remote_ip }))).toBeUndefined();
      }),
    );
  });

  it.each([
    "192.0.2",
    "192.0.2.1.1",
    "192.0.2.256",
    "192.0.2.01",
    "192.0.2.",
    "2001:db8::1",
    "",
    "192.0.2.1\n",
    "a.b.c.d",
  ])("finds that %j is no IPv4 address", (remote_ip) => {
    const problem = checkShape(SHAPES.device, lastSeen({ remote_ip }));
    expect(problem).toEqual({ path: "last_seen.remote_ip", value: remote_ip, rule: "must be an IPv4 address" });
  });

  it.each([[[]], [[1]], [[1, 2, 3]]])("finds that %j is no position", (lat_long) => {
    const problem = checkShape(SHAPES.device, lastSeen({ lat_long }));
    expect(problem).toEqual({ path: "last_seen.lat_long", value: lat_long, rule: "must have exactly 2 items" });
  });

  it("says which bound of a length is broken", () => {
    const shape: Shape = { type: "array", minItems: 1, maxItems: 2 };
    expect(checkShape(shape, [])?.rule).toBe("must have at least 1 items");
    expect(checkShape(shape, [1, 2, 3])?.rule).toBe("must have at most 2 items");
    expect(checkShape(shape, [1, 2])).toBeUndefined();
  });

  it("has an empty path for the value itself", () => {
    expect(checkShape(SHAPES.device, null)).toEqual({ path: "", value: null, rule: "must not be null" });
    expect(checkShape(SHAPES.device, "device")).toEqual({ path: "", value: "device", rule: "must be an object" });
    expect(checkShape(SHAPES.device, undefined)?.rule).toBe("is missing");
  });

  it("reports the first problem in the documented order", () => {
    expect(checkShape(SHAPES.device, { extra: 1, type: 1, domain_id: 1 })?.path).toBe("account_id");
    expect(checkShape(SHAPES.device, { ...device, extra: 1, type: 1, domain_id: 1 })?.path).toBe("domain_id");
  });

  it("checks an object whose secret is hidden", () => {
    const hidden = (change: object) => ({
      ...device,
      dynamic_client_details: hideClientSecret({ ...device.dynamic_client_details, ...change }),
    });
    expect(checkShape(SHAPES.device, hidden({}))).toBeUndefined();
    expect(checkShape(SHAPES.device, hidden({ title: 1 }))?.path).toBe("dynamic_client_details.title");
  });

  it("never reports a client secret", () => {
    const secret = ["planted-secret"];
    const path = "dynamic_client_details.client_secret";
    expect(checkShape(SHAPES.device, client({ client_secret: secret }))).toEqual({
      path,
      value: MASK,
      rule: "must be a string",
    });
    const nested = { ...device, dynamic_client_details: [{ client_secret: secret, title: "kept" }] };
    expect(checkShape(SHAPES.device, nested)?.value).toEqual([{ client_secret: MASK, title: "kept" }]);
    expect(
      JSON.stringify(checkShape(SHAPES.device, { ...device, title: client({ client_secret: "planted-secret" }) })),
    ).not.toContain("planted");
  });

  it("reports a value that nests without end", () => {
    const title = JSON.parse(`${"[".repeat(50_000)}${"]".repeat(50_000)}`);
    expect(checkShape(SHAPES.device, { ...device, title })).toEqual({
      path: "title",
      value: [[[["…"]]]],
      rule: "must be a string",
    });
  });

  it("finds a problem, and never throws, wherever one part of a device is replaced by a value of another type", () => {
    const parts = fc.constantFrom(...Object.keys(device));
    fc.assert(
      fc.property(parts, fc.oneof(fc.double(), fc.boolean(), fc.array(fc.jsonValue())), (key, value) => {
        expect(checkShape(SHAPES.device, { ...device, [key]: value })?.path).toBe(key);
      }),
    );
  });
});
