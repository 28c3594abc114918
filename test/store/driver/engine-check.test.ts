import { expect, it } from "vitest";
import type { DriverHealth } from "../../../src/store/driver/driver.js";
import { grantStore } from "../../../src/store/driver/grant-store.js";
import { memoryDriver } from "../../../src/store/driver/memory-driver.js";
import { madeGrant } from "../../helpers/grant.js";

const HEALTHY: DriverHealth = { clockAheadMs: 0, risks: [], errors: [], facts: {} };

function storeWith(health: () => Promise<DriverHealth>) {
  return grantStore(Object.assign(memoryDriver({ location: "redis at host:1" }), { health }), { seal: "none" });
}

it("refuses to save in an engine that evicts records, and reads what is there", async () => {
  const store = storeWith(async () => ({ ...HEALTHY, errors: ["maxmemory_policy is allkeys-lru"] }));
  const grant = madeGrant();
  const error = {
    code: "store_unsafe",
    class: "store",
    message: "the engine redis at host:1 must not hold logins: maxmemory_policy is allkeys-lru",
  };
  await expect(store.save(grant, undefined)).rejects.toMatchObject(error);
  await expect(store.reserve(grant)).rejects.toMatchObject(error);
  expect(await store.read(grant)).toBeUndefined();
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
