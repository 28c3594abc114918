import { type Clock, systemClock } from "../http/deadline.js";
import { createEvents, type Events } from "../telemetry/emit.js";
import type { ClientCall } from "./agent-exchange.js";
import { type AgentClientOptions, DEFAULT_TIMEOUT_MS, expectedIssuer, loginSecrets } from "./agent-options.js";
import { clientSecretOf } from "./client/client-auth.js";
import { credentialOf } from "./client/issuer-binding.js";
import { issuerMismatchError } from "./discovery/issuer-choice.js";
import { machineAccountError } from "./grant/grant-requirements.js";
import { PendingRefreshes } from "./grant/send-refresh.js";
import { Nonces } from "./http/http.js";
import { ConnectionPool, type Remembered, type ServerConnection } from "./http/server-connection.js";
import type { TraceEntry } from "./http/trace.js";
import type { LoginContext } from "./login/login-context.js";
import { DEFAULT_LOGIN_TIMEOUT_MS } from "./login/login-method.js";
import type { PreparedDeviceLogin, PreparedLogin } from "./login/prepared-login.js";
import type { WebLoginContext } from "./login/web-login.js";
import { noInteractiveLoginError } from "./machine/grant-strategies.js";
import type { Grant, GrantKey } from "./model/grant.js";
import { isMachineAccount } from "./model/machine-grant.js";
import { isSameIssuer } from "./model/metadata.js";
import { parseMcpUrl } from "./model/resource.js";

/** What the operations of an agent client have in common: its options, its connections, and the keys of its grants. */
export class AgentContext {
  readonly options: AgentClientOptions;
  readonly connections: ConnectionPool;
  readonly clock: Clock;
  readonly nonces: Nonces;
  readonly pending: PendingRefreshes;
  readonly profile: string;
  /** The tenant of the store; undefined where it has none. */
  readonly tenant: string | undefined;
  readonly events: Events;
  /** The address of the latest call, which is that of the next one in most programs. */
  #latestKey: { mcpUrl: string; key: GrantKey } | undefined;

  /**
   * @param profile whose logins these are
   * @param like the context whose connections, documents, nonces and events these are too; none knows anything of a login
   */
  constructor(
    options: AgentClientOptions,
    profile = options.profile ?? "default",
    like?: AgentContext,
    tenant = options.store.tenant,
  ) {
    this.options = options;
    this.connections = like?.connections ?? new ConnectionPool(options);
    this.nonces = like?.nonces ?? new Nonces();
    this.pending = like?.pending ?? new PendingRefreshes();
    this.clock = options.clock ?? systemClock;
    this.profile = profile;
    this.tenant = tenant;
    this.events = like?.events ?? createEvents(options.onEvent);
  }

  /** The context that finishes a login, which must be one of the issuer in the options. */
  contextOf(login: PreparedLogin | PreparedDeviceLogin): LoginContext {
    this.requireIssuer(login.issuer.issuer, login.server);
    const { server, overrides, acceptedTokenType, resource, issuer } = login;
    const endpoints = { token: issuer.tokenEndpoint };
    const { issuer: name, namedIssuer } = issuer;
    const remembered = { overrides, acceptedTokenType, resource, issuer: name, namedIssuer, endpoints };
    return this.loginContext(this.key(server), remembered);
  }

  loginContext(
    { profile, server, account }: GrantKey,
    remembered: Remembered | undefined,
    trace: (entry: TraceEntry) => void = this.options.onTrace ?? (() => {}),
  ): LoginContext {
    const own = { clock: this.clock, nonces: this.nonces, events: this.events, profile, trace };
    return loginContextOf(this.options, account, { ...this.connections.get(server, remembered), ...own, remembered });
  }

  /** Where the started logins of web apps are, and to whom they belong. */
  webLogins(): WebLoginContext {
    const { store, loginHint: account } = this.options;
    const { clock, tenant, profile } = this;
    return { store, clock, tenant, profile, account, secrets: loginSecrets(this.options) };
  }

  /** A request by the client of a grant; unstored credentials come from the options if they name the same client. */
  callOf(grant: Grant): ClientCall {
    const expected = expectedIssuer(this.options) ?? grant.issuer;
    const configured = isSameIssuer(expected, grant.issuer) ? this.options.client : undefined;
    const acceptedTokenType = this.options.policy?.acceptTokenType ?? grant.acceptedTokenType;
    const { http } = this.connections.get(grant.server, grant);
    const { issuer, endpoints, client: stored, exchanges } = grant;
    const isSameClient = configured?.clientId === stored.clientId && stored.source === "pre-registered";
    const clientSecret = stored.clientSecret ?? (isSameClient ? clientSecretOf(configured) : undefined);
    const by = { clock: this.clock, http, acceptedTokenType, trace: this.options.onTrace };
    const privateKey = isSameClient ? configured.privateKey : undefined;
    return {
      ...by,
      issuer,
      tokenEndpoint: endpoints.token,
      client: { ...stored, clientSecret },
      privateKey,
      exchanges,
    };
  }

  /** What the managers of all tokens of this client have in common. */
  managerContext() {
    const { clock, events, nonces, pending, connections } = this;
    const { store, login: method, timeoutMs = DEFAULT_TIMEOUT_MS, onProgress } = this.options;
    return {
      store,
      clock,
      events,
      nonces,
      pending,
      method,
      timeoutMs,
      onProgress,
      loginContext: (key: GrantKey, before: Grant | undefined) => this.loginContext(key, before),
      httpFor: (grant: Grant) => connections.get(grant.server, grant).http,
      httpTo: (address: string) => connections.get(address).http,
    };
  }

  /** Rejects a login of another issuer than the one in the options. */
  requireIssuer(issuer: string, from: string): void {
    const expected = expectedIssuer(this.options);
    if (expected !== undefined && !isSameIssuer(expected, issuer)) throw issuerMismatchError(expected, [issuer], from);
  }

  /** The key of a user's login; throws for machine grants. */
  loginKey(mcpUrl: string): GrantKey {
    const key = this.key(mcpUrl);
    if (this.options.grant) throw noInteractiveLoginError(this.options.grant);
    if (isMachineAccount(key.account)) throw machineAccountError(key.account);
    return key;
  }

  key(mcpUrl: string): GrantKey {
    if (this.#latestKey === undefined || this.#latestKey.mcpUrl !== mcpUrl)
      this.#latestKey = { mcpUrl, key: this.#keyOf(mcpUrl) };
    return this.#latestKey.key;
  }

  #keyOf(mcpUrl: string): GrantKey {
    return { profile: this.profile, server: parseMcpUrl(mcpUrl).resource, account: this.options.loginHint };
  }
}

/**
 * The login context of a client's options.
 *
 * @param account the account to log in with; default: that of the options
 * @param connection the server connection, and the state of the client
 */
function loginContextOf(
  options: AgentClientOptions,
  account: string | undefined,
  connection: ServerConnection & Pick<LoginContext, "clock" | "events" | "nonces" | "profile" | "remembered" | "trace">,
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
    authorizationParams,
    flow,
    loginHint,
    mutualTls,
    dpop,
  } = options;
  return {
    ...connection,
    timeoutMs: timeout ?? DEFAULT_TIMEOUT_MS,
    overrides: options.policy ?? {},
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
    authorizationParams,
    flow: flow ?? "browser",
    confirmsEndpoints: options.login?.confirmEndpoints !== undefined,
    loginTimeoutMs: options.loginTimeoutMs ?? options.login?.loginTimeoutMs ?? DEFAULT_LOGIN_TIMEOUT_MS,
    loginHint: account ?? loginHint,
    refusals: [],
    onProgress: options.onProgress,
  };
}
