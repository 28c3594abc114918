/**
 * What clients are made of. Stores in memory and over a driver, the sealing of logins, and the text form of
 * logins and clients. Web-standard interfaces only.
 *
 * @module agentauth/store
 */
export { decodeClient, decodeGrant, encodeClient, encodeGrant } from "../oauth/model/codec.js";
export type * from "./driver/driver.js";
export type { Takeover } from "./driver/driver-leases.js";
export { type GrantStoreOptions, grantStore } from "./driver/grant-store.js";
export { type MemoryDriverOptions, memoryDriver } from "./driver/memory-driver.js";
export type { NearOptions } from "./driver/remembered-grants.js";
export { keysInUse, type ResealOptions, type ResealReport, reseal } from "./driver/tenant-records.js";
export { memoryStore } from "./memory.js";
export { type EnvelopeOptions, envelope } from "./seal/envelope.js";
export type { KeyInput } from "./seal/key-ring.js";
export { type KeyRing, type KeyRingOptions, keyRing } from "./seal/key-ring.js";
export type { RecordCipher, RecordLocation, Sealing } from "./seal/sealing.js";
