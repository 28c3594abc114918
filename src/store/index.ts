/**
 * `agentauth/store`: what clients are made of. Stores in memory and over a driver, the sealing of logins, the text form of
 * logins and clients, and single token requests for programs that store the result themselves. Web-standard interfaces only.
 *
 * @module
 */
export { generateProofKey, proverOf } from "../oauth/dpop/dpop.js";
export { Nonces, type Prover } from "../oauth/http/http.js";
export {
  clientCredentialsTokens,
  type IdJagRequest,
  idJagAssertion,
  jwtBearerTokens,
  type TokenParameters,
} from "../oauth/machine/machine-tokens.js";
export { decodeClient, decodeGrant, encodeClient, encodeGrant } from "../oauth/model/codec.js";
export { type ExchangeRequest, exchangeTokens } from "../oauth/token/exchange.js";
export type { TokenCall } from "../oauth/token/token.js";
export { type TokenCallOptions, tokenCall } from "../oauth/token/token.js";
export type * from "./driver/driver.js";
export { type GrantStoreOptions, grantStore } from "./driver/grant-store.js";
export { type MemoryDriverOptions, memoryDriver } from "./driver/memory-driver.js";
export type { NearOptions } from "./driver/remembered-grants.js";
export { keysInUse, type ResealOptions, type ResealReport, reseal } from "./driver/reseal.js";
export { memoryStore } from "./memory.js";
export { type EnvelopeOptions, envelope } from "./seal/envelope.js";
export type { KeyInput } from "./seal/key-ring.js";
export { type KeyRing, type KeyRingOptions, keyRing } from "./seal/key-ring.js";
export type { RecordCipher, Sealing, SealPlace } from "./seal/sealing.js";
