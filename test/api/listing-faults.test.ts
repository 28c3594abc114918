import { describe, expect } from "vitest";
import { type AgentAuthError, type ListingSummary, ManagementClient } from "../../src/index.js";
import type { Fault } from "../../src/sandbox/index.js";
import { fc } from "../helpers/properties.js";
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
