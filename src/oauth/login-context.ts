import type { Clock } from "../http/deadline.js";
import type { BearerChallenge } from "./challenge.js";
import type { ClientKey } from "./client-auth.js";
import type { DiscoveryContext } from "./discovery.js";
import type { DpopPolicy } from "./dpop.js";
import type { GrantStore } from "./grant-store.js";
import type { PreRegisteredClient } from "./known-client.js";
import type { LoginMethod } from "./login.js";
import type { Nonces } from "./nonces.js";

/** What every login of an agent client depends on. */
export interface LoginContext extends DiscoveryContext {
  store: GrantStore;
  clock: Pick<Clock, "now" | "epoch" | "sleep">;
  profile: string;
  clientName: string;
  preRegistered: PreRegisteredClient | undefined;
  /** What a client of the method `private_key_jwt` signs with. */
  privateKey?: ClientKey | undefined;
  /** Whether tokens are bound to a key of ours. */
  dpop: DpopPolicy;
  /** What servers want to see in proofs of that key. */
  nonces: Nonces;
  clientMetadataUrl: string | undefined;
  /** Replaces the `resource` that the metadata names. */
  resource: string | undefined;
  flow: "browser" | "device";
  loginHint: string | undefined;
}

/** What one login asks for. */
export interface LoginRequest {
  mcpUrl: string;
  method: LoginMethod;
  scope: string | undefined;
  /** The scopes asked for before, in a step-up. */
  previousScope?: string | undefined;
  /** The challenge of the answer that led here, if there was one. */
  challenge?: BearerChallenge | undefined;
  signal: AbortSignal;
}
