import { describe, expect } from "vitest";
import { type AgentAuthError, type ListingSummary, ManagementClient } from "../../src/index.js";
import { type Fault, startSandbox } from "../../src/sandbox/index.js";
import { fc } from "../helpers/properties.js";
import { rejection } from "../helpers/service.js";
import { sandboxTest } from "../sandbox/sandbox-test.js";

/** Waits that the policy asks for are taken, only not in real time. */
const faster = {
  now: () => performance.now(),
  epoch: () => Date.now(),
  sleep: async () => {},
};

const passing: fc.Arbitrary<Fault> = fc
  .record({
    effect: fc.constantFrom<Fault>(
      { kind: "status", status: 500 },
      { kind: "status", status: 502, body: "html" },
      { kind: "status", status: 503, body: "empty" },
      { kind: "status", status: 504 },
      { kind: "status", status: 429, retryAfter: "1" },
      { kind: "reset-before" },
      { kind: "reset-mid-body" },
      { kind: "truncated-json" },
      { kind: "slow-headers", ms: 5 },
      { kind: "slow-body", bytes: 4000, ms: 1 },
      { kind: "unknown-enum" },
      { kind: "extra-fields" },
      { kind: "hostile-text" },
      { kind: "page-size", size: 7 },
    ),
    after: fc.integer({ min: 0, max: 20 }),
    times: fc.integer({ min: 1, max: 2 }),
  })
  .map(({ effect, after, times }) => ({ ...effect, after, times, path: "device" }));

const DEVICES = 120;

const it = sandboxTest({ seed: 7, devices: DEVICES })
  .extend("pool_id", ({ sandbox }) => sandbox.ids.pool)
  /** The ids of all devices, in the order of the service. */
  .extend("truth", ({ sandbox, pool_id }) =>
    Array.from({ length: DEVICES }, (_, index) => sandbox.data.device(pool_id, index)?.id ?? ""),
  )
  /** Makes a management client. */
  .extend("service", ({ sandbox }) => {
    return (options: object = {}) =>
      new ManagementClient({ baseUrl: sandbox.baseUrl, token: sandbox.apiToken, clock: faster, ...options });
  });

describe("a listing over real sockets", () => {
  it("gives exactly the set, in order, none twice, through any schedule of passing faults", async ({
    sandbox,
    truth,
    pool_id,
    service,
  }) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(passing, { maxLength: 6 }),
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 1, max: 8 }),
        async (faults, pageSize, concurrency) => {
          sandbox.faults.clear();
          sandbox.faults.add(faults);
          let end: ListingSummary | undefined;
          const ids: string[] = [];
          const listing = service({ maxRetries: 19 }).devices.list(
            { pool_id },
            { pageSize, concurrency, onEnd: (verdict) => (end = verdict) },
          );
          for await (const device of listing) ids.push(device.id ?? "");
          expect(ids).toEqual(truth);
          expect(end).toMatchObject({ yielded: DEVICES, expected: DEVICES, complete: true });
        },
      ),
      { numRuns: Number(process.env["PROPERTY_RUNS"] ?? 60) },
    );
  }, 300_000);

  it("goes on from `resume` as often as it is broken off, and the parts are the whole", async ({
    sandbox,
    truth,
    pool_id,
    service,
  }) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 5, max: 60 }),
        fc.integer({ min: 1, max: 6 }),
        async (breaks, pageSize, concurrency) => {
          sandbox.faults.clear();
          sandbox.faults.add(breaks.map((after) => ({ kind: "reset-mid-body", after, path: "device" })));
          const ids: string[] = [];
          let from: number | undefined;
          for (let tries = 0; tries < 20; tries++) {
            try {
              const listing = service({ maxRetries: 0 }).devices.list(
                { pool_id },
                { pageSize, concurrency, offset: from },
              );
              for await (const device of listing) ids.push(device.id ?? "");
              break;
            } catch (error) {
              from = (error as AgentAuthError).resume;
              expect(from).toBe(ids.length);
            }
          }
          expect(ids).toEqual(truth);
        },
      ),
      { numRuns: 40 },
    );
  }, 300_000);

  it.for<[string, string]>([
    ["stuck-offset", "pagination_loop"],
    ["cycling-offset", "pagination_loop"],
    ['bad-offset:value="50"', "bad_pagination"],
    ["omit-pagination", "bad_pagination"],
  ])(
    "names %s as %s, with everything before it returned",
    async ([text, code], { sandbox, truth, pool_id, service }) => {
      const { parseFault } = await import("../../src/sandbox/index.js");
      sandbox.faults.clear();
      sandbox.faults.add({ ...parseFault(text), path: "device", times: 0, after: 1 });
      const ids: string[] = [];
      const error = await rejection(
        (async () => {
          for await (const device of service().devices.list({ pool_id }, { pageSize: 50 })) ids.push(device.id ?? "");
        })(),
      );
      expect(error).toMatchObject({ code, class: "partial", resume: ids.length });
      expect(ids).toEqual(truth.slice(0, ids.length));
      expect(ids.length).toBeGreaterThanOrEqual(50);
    },
  );

  it("reads on past an empty page in the middle", async ({ sandbox, truth, pool_id, service }) => {
    sandbox.faults.clear();
    sandbox.faults.add({ kind: "empty-page", offset: 100, path: "device" });
    const ids: string[] = [];
    for await (const device of service().devices.list({ pool_id }, { pageSize: 50 })) ids.push(device.id ?? "");
    expect(ids).toEqual(truth);
  });

  it("loses no device and repeats none while devices come and go", async () => {
    for (const kind of ["insert", "delete"] as const) {
      for (const concurrency of [1, 4]) {
        await using changing = await startSandbox({ seed: 3, devices: 300 });
        const pool = changing.ids.pool;
        const before = Array.from({ length: 300 }, (_, index) => changing.data.device(pool, index)?.id ?? "");
        changing.faults.add({ kind, count: 3, position: 10, after: 2, times: 1, path: "device" });
        changing.faults.add({ kind, count: 2, position: 40, after: 4, times: 1, path: "device" });
        const client = new ManagementClient({ baseUrl: changing.baseUrl, token: changing.apiToken });
        const drift: unknown[] = [];
        const ids: string[] = [];
        const listing = client.devices.list(
          { pool_id: pool },
          { pageSize: 20, concurrency, onDrift: (d) => drift.push(d) },
        );
        for await (const device of listing) ids.push(device.id ?? "");
        const count = changing.data.deviceCount(pool);
        const after = new Set(Array.from({ length: count }, (_, index) => changing.data.device(pool, index)?.id));
        const stayed = before.filter((id) => after.has(id));
        expect(new Set(ids).size).toBe(ids.length);
        expect(ids.filter((id) => stayed.includes(id)).sort()).toEqual([...stayed].sort());
        expect(drift.length).toBeGreaterThan(0);
      }
    }
  });

  it("uses a new token when the service refuses the one it has, and continues at the same page", async ({
    sandbox,
    truth,
    pool_id,
    service,
  }) => {
    sandbox.faults.clear();
    let requested = 0;
    const token = () => (requested++ === 3 ? "sandbox_ended" : sandbox.apiToken);
    const all = await service({ token }).devices.list({ pool_id }, { pageSize: 24 }).toArray();
    expect(all.map((device) => device.id)).toEqual(truth);
    expect(requested).toBe(7);
  });

  it("sorts by every field that the service allows", async ({ sandbox, pool_id, service }) => {
    sandbox.faults.clear();
    for (const field of ["id", "last_seen", "status", "title"] as const) {
      for (const direction of ["asc", "desc"] as const) {
        const page = service().devices.list({ pool_id }, { sort: { field, direction }, pageSize: 100 });
        const ids = (await page.toArray()).map((device) => device.id);
        expect(new Set(ids).size).toBe(DEVICES);
        for await (const { sorting } of page.pages()) {
          expect(sorting).toEqual({ field, direction });
          break;
        }
      }
    }
  });

  it("never shows a client secret or the token in what is printed", async ({ sandbox, pool_id, service }) => {
    const { inspect } = await import("node:util");
    const client = service();
    const devices = await client.devices.list({ pool_id }, { limit: 3 }).toArray();
    expect(devices[0]?.dynamic_client_details?.client_secret).toBe("<CLIENT_SECRET>");
    const shown = [client, client.devices, client.client, devices].map((value) =>
      inspect(value, { depth: 9, showHidden: false }),
    );
    shown.push(JSON.stringify(devices), JSON.stringify(client), String(client));
    for (const text of shown) {
      expect(text).not.toContain("<CLIENT_SECRET>");
      expect(text).not.toContain(sandbox.apiToken);
    }
  });
});
