import type { Clock } from "../../http/deadline.js";
import { type AgentClientOptions, DEFAULT_TIMEOUT_MS, expectedIssuer } from "../agent-options.js";
import type { Progress } from "../agent-progress.js";
import type { ClientKey } from "../client/client-auth.js";
import type { IssuerTrust } from "../client/issuer-binding.js";
import type { PreRegisteredClient } from "../client/pre-registered-client.js";
import type { BearerChallenge } from "../discovery/challenge.js";
import type { DiscoveryContext } from "../discovery/discovery.js";
import type { DpopPolicy } from "../dpop/dpop.js";
import type { Nonces } from "../dpop/nonces.js";
import type { GrantStore } from "../grant/grant-store.js";
import type { ServerConnection } from "../http/server-connection.js";
import type { LoginMethod } from "./login-method.js";
import { DEFAULT_LOGIN_TIMEOUT_MS } from "./login-timeout.js";

/** What every login of an agent client depends on. */
export interface LoginContext extends DiscoveryContext {
  store: GrantStore;
  clock: Pick<Clock, "now" | "epoch" | "sleep">;
  profile: string;
  clientName: string;
  preRegistered: PreRegisteredClient | undefined;
  /** How the issuer of that client is decided. */
  trust: IssuerTrust;
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
  /** Milliseconds that the user may take. */
  loginTimeoutMs: number;
  loginHint: string | undefined;
  /** Unix milliseconds of what servers refused lately, where that is what led to this login. */
  refusals: readonly number[];
  onProgress?: ((progress: Progress) => void) | undefined;
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

/**
 * What a client's options make of a login.
 *
 * @param account which account is meant; without one, that of the options
 * @param by how its requests leave, and what goes on while it lasts
 */
export function loginContextOf(
  options: AgentClientOptions,
  account: string | undefined,
  by: ServerConnection & Pick<LoginContext, "clock" | "nonces" | "profile" | "remembered" | "trace">,
): LoginContext {
  const issuer = expectedIssuer(options);
  const { trustNamedIssuer, confirmIssuer } = options;
  const {
    store,
    timeoutMs: timeout,
    clientName,
    client,
    clientMetadataUrl,
    resource,
    flow,
    loginHint,
    mutualTls,
    dpop,
  } = options;
  return {
    ...by,
    timeoutMs: timeout ?? DEFAULT_TIMEOUT_MS,
    overrides: options,
    store,
    clientName: clientName ?? "agentauth",
    expectedIssuer: issuer,
    preRegistered: client,
    trust: { issuer, trustNamedIssuer, confirmIssuer },
    privateKey: client?.privateKey,
    mutualTls,
    dpop: dpop ?? "auto",
    clientMetadataUrl,
    resource,
    flow: flow ?? "browser",
    loginTimeoutMs: options.loginTimeoutMs ?? options.login?.loginTimeoutMs ?? DEFAULT_LOGIN_TIMEOUT_MS,
    loginHint: account ?? loginHint,
    refusals: [],
    onProgress: options.onProgress,
  };
}
