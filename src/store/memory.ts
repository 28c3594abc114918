import type { GrantStore } from "../oauth/grant/grant-store.js";
import { openStore } from "./driver/grant-store.js";
import { memoryDriver } from "./driver/memory-driver.js";

/** No other process waits for a lease, and this one must not lose it while it is busy. */
const LEASE_TTL_MS = 24 * 3_600_000;

/** A store that lives as long as the program. */
export function memoryStore(): GrantStore {
  return openStore(memoryDriver(), { seal: "none" }, { leaseTtlMs: LEASE_TTL_MS });
}
