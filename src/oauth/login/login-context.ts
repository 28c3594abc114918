import type { Clock } from "../../http/deadline.js";
import { type AgentClientOptions, DEFAULT_TIMEOUT_MS, expectedIssuer } from "../agent-options.js";
import type { ClientKey } from "../client/client-auth.js";
import { credentialOf, type IssuerTrust } from "../client/issuer-binding.js";
import type { PreRegisteredClient } from "../client/pre-registered-client.js";
import type { DiscoveryContext } from "../discovery/discovery.js";
import type { DpopPolicy } from "../dpop/dpop.js";
import type { Nonces } from "../http/nonces.js";
import type { ServerConnection } from "../http/server-connection.js";
import type { Progress } from "../http/trace.js";
import type { BearerChallenge } from "../model/challenge.js";
import type { GrantStore } from "../model/grant-store.js";
import type { LoginMethod } from "./login-method.js";
import { DEFAULT_LOGIN_TIMEOUT_MS } from "./login-timeout.js";

/** What every login of an agent client needs. */
export interface LoginContext extends DiscoveryContext {
  store: GrantStore;
  clock: Pick<Clock, "now" | "epoch" | "sleep">;
  profile: string;
  /** The name that a registration says; undefined for the default one, or that of a stored client. */
  clientName: string | undefined;
  preRegistered: PreRegisteredClient | undefined;
  /** How the issuer of that client is determined. */
  trust: IssuerTrust;
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

/** Input of one login. */
export interface LoginRequest {
  mcpUrl: string;
  method: LoginMethod;
  scope: string | undefined;
  /** The scopes asked for before, in a step-up. */
  previousScope?: string | undefined;
  /** The challenge that led to the login, if there was one. */
  challenge?: BearerChallenge | undefined;
  signal: AbortSignal;
}

/**
 * The login context of a client's options.
 *
 * @param account the account to log in with; default: that of the options
 * @param connection the server connection, and the state of the client
 */
export function loginContextOf(
  options: AgentClientOptions,
  account: string | undefined,
  connection: ServerConnection & Pick<LoginContext, "clock" | "nonces" | "profile" | "remembered" | "trace">,
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
    resourceMetadata,
    flow,
    loginHint,
    mutualTls,
    dpop,
  } = options;
  return {
    ...connection,
    timeoutMs: timeout ?? DEFAULT_TIMEOUT_MS,
    overrides: options,
    store,
    clientName,
    // A machine sends its credential only to an issuer that the server names too.
    chosenIssuer: options.grant === undefined ? options.issuer : undefined,
    expectedIssuer: issuer,
    sendsCredential: options.grant !== undefined || (client !== undefined && credentialOf(client) !== undefined),
    preRegistered: client,
    trust: { issuer, trustNamedIssuer, confirmIssuer },
    privateKey: client?.privateKey,
    mutualTls,
    dpop: dpop ?? "auto",
    clientMetadataUrl,
    resource,
    resourceMetadata,
    flow: flow ?? "browser",
    confirmsEndpoints: options.login?.confirmEndpoints !== undefined,
    loginTimeoutMs: options.loginTimeoutMs ?? options.login?.loginTimeoutMs ?? DEFAULT_LOGIN_TIMEOUT_MS,
    loginHint: account ?? loginHint,
    refusals: [],
    onProgress: options.onProgress,
  };
}
