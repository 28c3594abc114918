import type { Clock } from "../../http/deadline.js";
import type { Events } from "../../telemetry/emit.js";
import type { ClientKey, PreRegisteredClient } from "../client/client-auth.js";
import type { IssuerTrust } from "../client/issuer-binding.js";
import type { DiscoveryContext } from "../discovery/server-examination.js";
import type { DpopPolicy } from "../dpop/dpop.js";
import type { LoginOptions } from "../grant/grant-requirements.js";
import type { Nonces } from "../http/http.js";
import type { Progress } from "../http/trace.js";
import type { BearerChallenge } from "../model/challenge.js";
import type { GrantStore } from "../model/grant-store.js";
import type { LoginMethod } from "./login-method.js";

/** What every login of an agent client needs. */
export interface LoginContext extends DiscoveryContext {
  store: GrantStore;
  events: Events;
  clock: Pick<Clock, "now" | "epoch" | "sleep">;
  profile: string;
  /** The name that a registration says; undefined for the default one, or that of a stored client. */
  clientName: string | undefined;
  preRegistered: PreRegisteredClient | undefined;
  /** How the issuer of that client is determined. */
  trust: IssuerTrust;
  /** Whether the login is one at an identity provider, whose id token is verified before the login is stored. */
  requiresIdToken?: boolean | undefined;
  /** The key of a client of the method `private_key_jwt`. */
  privateKey?: ClientKey | undefined;
  /** Whether tokens are bound to a key of this client. */
  dpop: DpopPolicy;
  /** DPoP nonces of the servers. */
  nonces: Nonces;
  clientMetadataUrl: string | undefined;
  flow: "browser" | "device";
  /** Milliseconds for the user to log in. */
  loginTimeoutMs: number;
  loginHint: string | undefined;
  /** Unix milliseconds of recent rejections by servers, if they led to this login. */
  refusals: readonly number[];
  onProgress?: ((progress: Progress) => void) | undefined;
}

export interface LoginRequest {
  mcpUrl: string;
  method: LoginMethod;
  scope: string | undefined;
  /** The scopes requested before, in a step-up. */
  previousScope?: string | undefined;
  challenge?: BearerChallenge | undefined;
  signal: AbortSignal;
}

/** The context of a login with parameters of its own; each replaces that of the client of the same name. */
export function withParams(
  context: LoginContext,
  { authorizationParams }: Pick<LoginOptions, "authorizationParams">,
): LoginContext {
  return { ...context, authorizationParams: { ...context.authorizationParams, ...authorizationParams } };
}
