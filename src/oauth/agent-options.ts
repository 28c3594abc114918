import { type AgentAuthError, abortedError, errorMessage, isAgentAuthError, usageError } from "../errors.js";
import type { Network } from "../http/address-class.js";
import type { HttpEvent } from "../http/buffered-response.js";
import { CookieJars } from "../http/cookies.js";
import { type Clock, systemClock } from "../http/deadline.js";
import { checkOptionNames, type OptionNames } from "../http/public-class.js";
import { suggestionHint } from "../http/suggest.js";
import { quote, type Secret } from "../redact.js";
import { createEvents, type Events } from "../telemetry/emit.js";
import type { AgentEvent } from "../telemetry/events.js";
import { type PreRegisteredClient, readClientSecret } from "./client/client-auth.js";
import { fingerprintCredential, type IssuerTrust } from "./client/issuer-binding.js";
import { issuerMismatchError } from "./discovery/issuer-choice.js";
import type { SecurityPolicy } from "./discovery/overrides.js";
import { DPOP_POLICIES, type DpopPolicy } from "./dpop/dpop.js";
import { checkedStore } from "./grant/checked-store.js";
import { type LoginOptions, machineAccountError, type TokenOptions } from "./grant/grant-requirements.js";
import { PendingRefreshes } from "./grant/send-refresh.js";
import type { OAuthHttpOptions, Progress, Remembered, TraceEntry } from "./http/http.js";
import { ConnectionPool, Nonces } from "./http/http.js";
import type { LoginContext, PreparedDeviceLogin, PreparedLogin } from "./login/authorization.js";
import { DEFAULT_LOGIN_TIMEOUT_MS, type LoginMethod } from "./login/login-method.js";
import type { WebLoginContext } from "./login/web-login.js";
import { noInteractiveLoginError } from "./machine/grant-strategies.js";
import { type AuthorizationParams, checkAuthorizationParam } from "./model/authorization-params.js";
import type { ClientRecord, Grant, GrantKey } from "./model/grant.js";
import type { GrantStore } from "./model/grant-store.js";
import { isMachineAccount, type MachineGrant } from "./model/machine-grant.js";
import { type Discovered, isSameIssuer } from "./model/metadata.js";
import { parseMcpUrl } from "./model/resource.js";
import { parseScope } from "./model/scope.js";
import { checkEndpoint, type TokenCall } from "./token/token.js";
import { isAcceptableTokenType, TOKEN_TYPE_RULE } from "./token/token-checks.js";

/** The company's identity provider. */
export interface IdpOptions {
  /** Its issuer identifier. */
  issuer: string;
  /** The client that is registered with it. Default: that of the stored login, else as at any other issuer. */
  clientId?: string | undefined;
  /** The secret of that client, if it has one. It is stored with the login. */
  clientSecret?: string | Secret | undefined;
  /** Scopes beside `openid`, separated by blanks. Default: `offline_access`, if the provider lists it. */
  scope?: string | undefined;
}

/** How machine grants are stored with what their requests need, and read again. */
export interface StoredGrants {
  /** What is stored with the tokens of `grant`, and the secret of its client: how to get its proof again. Default: nothing. */
  recipe?: string | undefined;
  /** The client and the grant of a stored recipe. @param stored the client that it was stored with */
  read(
    recipe: string,
    stored: Pick<ClientRecord, "clientId" | "clientSecret">,
  ): Promise<Required<Pick<AgentClientOptions, "grant">> & Pick<AgentClientOptions, "client">>;
}

/** How an `AgentClient` works. */
export interface AgentClientOptions extends Omit<OAuthHttpOptions, "onEvent">, IssuerTrust {
  /** Where grants are stored. */
  store: GrantStore;
  /** How the user logs in. Without it, a call that needs a login fails. */
  login?: LoginMethod | undefined;
  /**
   * Client name in a registration, which the consent page shows. Default: that of the stored client, else "agentauth".
   * With another name than that of the stored client, another client is registered.
   */
  clientName?: string | undefined;
  /**
   * Classifies addresses after DNS resolution, such as `nodeNetwork()` of `agentauth/node`; replaces `fetch`. Without
   * it addresses are classified by their text alone.
   */
  network?: Network | undefined;
  /** Namespace of the stored logins. Default "default". */
  profile?: string | undefined;
  /** A client that is registered with the issuer already. */
  client?: PreRegisteredClient | undefined;
  /**
   * Machine grant for the client named by `client`; the grant `jwt_bearer` needs none. No user is asked to log in, and its tokens are stored apart from
   * the logins of users.
   */
  grant?: MachineGrant | undefined;
  /**
   * Machine grants that are stored so that a client without `grant` uses them, where no user is logged in at the server.
   */
  storedGrants?: StoredGrants | undefined;
  /**
   * The company's identity provider, where `loginIdp()` logs the user in once: servers whose issuers take its assertions
   * then need no login of their own (enterprise-managed authorization). With `stored`, the one at which a login is stored.
   * The user's own login at a server, and one of `loginHint`, come before that.
   */
  idp?: IdpOptions | "stored" | undefined;
  /**
   * Whether requests to issuers present a client certificate; selects their mTLS endpoint aliases (RFC 8705 section 5).
   */
  mutualTls?: boolean | undefined;
  /**
   * Whether tokens are bound to a key of this client (RFC 9449), so that a stolen token is useless. Such a token works
   * with {@link AgentClient.fetch} only, which sends a proof of the key with every request. Default "auto": bound if
   * the server accepts no other tokens and its issuer supports DPoP.
   */
  dpop?: DpopPolicy | undefined;
  /** The https address of this client's metadata document, for issuers that support those; `none` uses none. */
  clientMetadataUrl?: string | undefined;
  /**
   * Replaces the `resource` that the server's metadata names; `none` sends none. Accepts metadata that name exactly this
   * resource, if it is a parent of the server on the same origin.
   */
  resource?: string | undefined;
  /**
   * The address of the server's resource metadata (RFC 9728), for a server that names it only in its response to some
   * requests. The rules for an address that a challenge names are in force for it.
   */
  resourceMetadata?: string | undefined;
  /**
   * Parameters that an issuer wants in the authorization request beside those of the flow, such as `access_type` of
   * Google. Stored with the login, and sent at the next one. An empty value leaves a parameter out: `{ prompt: "" }`
   * forces no consent.
   */
  authorizationParams?: AuthorizationParams | undefined;
  /** How the user logs in. Default "browser". */
  flow?: "browser" | "device" | undefined;
  /**
   * Milliseconds for the user to finish the flow "device", even if its code is valid for longer. Default: that of
   * `login`, else 300,000. In the flow "browser", `login` sets the limit.
   */
  loginTimeoutMs?: number | undefined;
  /** Security checks to disable or to tighten, for servers that you trust. */
  policy?: SecurityPolicy | undefined;
  /** The account to log in with. */
  loginHint?: string | undefined;
  /**
   * Seals the logins that {@link AgentClient.startLogin} saves: at least 32 random characters, the same in every process.
   * Of several, the first one seals and each one opens. Without it, the store holds these logins. With a store that has no
   * `shortLived`, a login is finished once within each process; across processes, only the issuer prevents that a callback
   * is used again, since it accepts a code once (RFC 6749 section 4.1.2).
   */
  loginSecret?: string | readonly string[] | undefined;
  /**
   * Receives what the client does: each token, refresh, login and revocation, and each HTTP request of the flow. `type` says
   * which; docs/events.md has the fields. What it throws for an {@link AgentEvent} is ignored.
   */
  onEvent?: ((event: AgentEvent | HttpEvent) => void) | undefined;
  /** Called for every request of the flow, with its outcome. */
  onTrace?: ((entry: TraceEntry) => void) | undefined;
  /** Called for progress beyond single requests, such as a refresh or waiting for another process. */
  onProgress?: ((progress: Progress) => void) | undefined;
}

/**
 * The names of {@link AgentClientOptions}.
 *
 * @internal
 */
export const AGENT_OPTIONS: OptionNames<AgentClientOptions> = {
  ...{ store: true, login: true, clientName: true, network: true, profile: true, client: true },
  ...{ grant: true, storedGrants: true, idp: true, mutualTls: true, dpop: true, clientMetadataUrl: true },
  ...{ resource: true, resourceMetadata: true, authorizationParams: true, flow: true },
  ...{ loginTimeoutMs: true, loginHint: true, loginSecret: true, onTrace: true, onProgress: true },
  ...{ fetch: true, clock: true, random: true, onEvent: true, logger: true, timeoutMs: true },
  ...{ maxRetries: true, userAgent: true, policy: true, issuer: true, trustNamedIssuer: true },
  ...{ confirmIssuer: true },
};

const DEFAULT_TIMEOUT_MS = 15_000;

/** The options, with a store whose grants are checked; contradictory ones are rejected before any request. */
export function checkedOptions(options: AgentClientOptions): AgentClientOptions {
  checkOptions(options);
  return { ...options, store: checkedStore(options.store, createEvents(options.onEvent)) };
}

function checkOptions(options: AgentClientOptions): void {
  checkOptionNames(options, AGENT_OPTIONS, "AgentClient");
  checkParams(options.authorizationParams);
  const { store, grant, client, loginHint, dpop, loginTimeoutMs: loginTimeout } = options;
  if (typeof store?.read !== "function") throw new TypeError("store is required: where logins are stored");
  if (dpop !== undefined && !DPOP_POLICIES.includes(dpop))
    throw new TypeError('dpop must be "off", "auto" or "required"');
  checkFlow(options.flow);
  checkPolicy(options.policy);
  if (loginTimeout !== undefined && !(loginTimeout > 0))
    throw new TypeError("loginTimeoutMs must be a number of milliseconds above 0");
  if (loginSecrets(options).some((secret) => secret.length < 32))
    throw new TypeError("loginSecret must have at least 32 characters");
  if (client !== undefined) checkOptionNames(client, CLIENT, "client");
  if (typeof options.idp === "object") checkOptionNames(options.idp, IDP, "idp");
  const distinctIssuers = new Set([options.issuer, client?.issuer, grant?.issuer].filter((one) => one !== undefined));
  if (distinctIssuers.size > 1)
    throw new TypeError("issuer, client.issuer and grant.issuer must be the same where they are set");
  if (options.clientName?.trim() === "") throw new TypeError("clientName must not be empty");
  if (typeof options.idp === "object") checkEndpoint(options.idp.issuer, "idp.issuer");
  if (grant === undefined) return;
  if (options.idp !== undefined) throw new TypeError("grant and idp exclude each other");
  if (client === undefined && grant.type !== "jwt_bearer")
    throw new TypeError("grant requires a registered client: set client.clientId");
  if (client?.clientId === "") throw new TypeError("client.clientId must not be empty");
  if (grant.type === "jwt_bearer" && !grant.workload)
    throw new TypeError("grant.workload is required: it names the workload whose tokens are stored");
  if (loginHint !== undefined) throw new TypeError("grant and loginHint exclude each other: a machine has no account");
}

const POLICY: OptionNames<SecurityPolicy> = {
  ...{ allowMissingPkceMetadata: true, allowCrossOriginMetadata: true, allowCrossOriginEndpoints: true },
  ...{ legacyDiscovery: true, allowPrivateNetwork: true, acceptTokenType: true, strictResource: true },
  ...{ sameOriginEndpoints: true },
};

const CLIENT: OptionNames<PreRegisteredClient> = {
  ...{ clientId: true, clientSecret: true, privateKey: true, authMethod: true, issuer: true },
};
const IDP: OptionNames<IdpOptions> = { issuer: true, clientId: true, clientSecret: true, scope: true };

const FLOWS: readonly string[] = ["browser", "device"] satisfies AgentClientOptions["flow"][];

function checkFlow(flow: unknown): void {
  if (flow === undefined || FLOWS.includes(String(flow))) return;
  throw usageError(
    `flow ${quote(flow)} is none of ${FLOWS.join(", ")}`,
    suggestionHint(String(flow), FLOWS, `use one of ${FLOWS.join(", ")}`),
  );
}

function checkPolicy(policy: SecurityPolicy = {}): void {
  checkOptionNames(policy, POLICY, "policy");
  const { acceptTokenType } = policy;
  if (acceptTokenType !== undefined && !isAcceptableTokenType(acceptTokenType))
    throw new TypeError(`policy.acceptTokenType ${TOKEN_TYPE_RULE}`);
}

function checkParams(params: AuthorizationParams = {}): void {
  for (const [name, value] of Object.entries(params)) {
    try {
      checkAuthorizationParam(name, value);
    } catch (cause) {
      throw new TypeError(`authorizationParams ${errorMessage(cause)}`, { cause });
    }
  }
}

function loginSecrets({ loginSecret = [] }: AgentClientOptions): readonly string[] {
  return typeof loginSecret === "string" ? [loginSecret] : loginSecret;
}

export function expectedIssuer({ issuer, client, grant }: AgentClientOptions): string | undefined {
  return issuer ?? client?.issuer ?? grant?.issuer;
}

const CALLS = {
  token: { scope: true, minTtl: true, forceRefresh: true, login: true, signal: true },
  login: { scope: true, authorizationParams: true, challenge: true, signal: true },
  startLogin: { redirectUri: true, returnTo: true, scope: true, authorizationParams: true, signal: true },
  exchange: {
    ...{ subjectToken: true, subjectTokenType: true, actorToken: true, actorTokenType: true, audience: true },
    ...{ resource: true, scope: true, requestedTokenType: true, login: true, signal: true },
  },
  status: { all: true, onUnusable: true, signal: true },
  disconnect: { account: true, signal: true },
  disconnectAll: { tenant: true, profile: true, signal: true },
  authProvider: { scope: true, signal: true },
  for: { tenant: true, user: true },
  call: { signal: true },
} as const;

/**
 * Rejects an option that a call does not have, and invalid ones, before any request.
 *
 * @throws `TypeError` that names the nearest option, or for an invalid number, `AgentAuthError` `usage` for invalid scopes,
 * `aborted` if the signal has fired already
 */
export function checkCall(options: object, call: keyof typeof CALLS): void {
  checkOptionNames(options, CALLS[call], call === "call" ? "the call" : `${call}()`);
  const { minTtl, scope, signal, authorizationParams }: Pick<TokenOptions, "minTtl"> & LoginOptions = options;
  checkParams(authorizationParams);
  if (minTtl !== undefined && !(minTtl >= 0)) throw new TypeError("minTtl must be a number of seconds, 0 or more");
  if (scope !== undefined) checkScope(scope);
  if (signal?.aborted) throw abortedError(signal);
}

function checkScope(scope: string): void {
  try {
    parseScope(scope, "scope", "the caller");
  } catch (cause) {
    if (!isAgentAuthError(cause)) throw cause;
    const rule =
      "must be at most 256 scope tokens with blanks between them, in at most 8192 bytes (RFC 6749 section 3.3)";
    throw usageError(`the scopes ${quote(scope)} ${rule}`);
  }
}

/** The requests and the result of discovery. */
export interface DiscoveryReport {
  /** The result; undefined if discovery failed. */
  found: Discovered | undefined;
  /** Every request in order, with its outcome. */
  trace: readonly TraceEntry[];
  /** The failure; undefined on success. */
  error: AgentAuthError | undefined;
}

/** Options of `AgentClient.status`. */
export interface StatusOptions extends Pick<TokenOptions, "signal"> {
  /** Include every profile. */
  all?: boolean;
  /** Called for each stored login that cannot be read. */
  onUnusable?: (error: AgentAuthError) => void;
}

export interface ClientCall extends Omit<TokenCall, "signal"> {
  /** Whether the issuer lists token exchange; undefined if it lists no grant types. */
  exchanges?: boolean | undefined;
}

/** What the operations of an agent client have in common: its options, its connections, and the keys of its grants. */
export class AgentContext {
  readonly options: AgentClientOptions;
  readonly connections: ConnectionPool;
  readonly clock: Clock;
  readonly nonces: Nonces;
  readonly cookies: CookieJars;
  readonly pending: PendingRefreshes;
  readonly profile: string;
  readonly tenant: string | undefined;
  readonly events: Events;
  /** The address of the latest call, which is that of the next one in most programs. */
  #latestKey: { mcpUrl: string; key: GrantKey } | undefined;

  /**
   * @param profile whose logins these are
   * @param shared the context whose connections, documents, nonces and events these are too; none knows anything of a login
   */
  constructor(
    options: AgentClientOptions,
    profile = options.profile ?? "default",
    shared?: AgentContext,
    tenant = options.store.tenant,
  ) {
    this.options = options;
    this.connections = shared?.connections ?? new ConnectionPool(options);
    this.nonces = shared?.nonces ?? new Nonces();
    this.cookies = shared?.cookies ?? new CookieJars();
    this.pending = shared?.pending ?? new PendingRefreshes();
    this.clock = options.clock ?? systemClock;
    this.profile = profile;
    this.tenant = tenant;
    this.events = shared?.events ?? createEvents(options.onEvent);
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
    const { options, clock, nonces, events } = this;
    const { store, timeoutMs = DEFAULT_TIMEOUT_MS, client, grant, login, loginTimeoutMs, onProgress } = options;
    const { clientName, clientMetadataUrl, resource, resourceMetadata, authorizationParams, mutualTls } = options;
    const { policy = {}, dpop = "auto", flow = "browser", trustNamedIssuer, confirmIssuer } = options;
    const issuer = expectedIssuer(options);
    const own = { clock, nonces, events, profile, trace, remembered, store, timeoutMs, onProgress };
    const registration = { clientName, clientMetadataUrl, preRegistered: client, privateKey: client?.privateKey };
    const request = { resource, resourceMetadata, authorizationParams, mutualTls, dpop, flow };
    return {
      ...this.connections.get(server, remembered),
      ...own,
      ...registration,
      ...request,
      overrides: policy,
      // A machine sends its credential only to an issuer that the server names too.
      chosenIssuer: grant === undefined ? options.issuer : undefined,
      expectedIssuer: issuer,
      boundIssuer: async () => {
        const clientId = client?.clientId || account;
        return clientId && (await store.readBinding({ profile, clientId }))?.issuer;
      },
      sendsCredential: grant !== undefined || (client !== undefined && fingerprintCredential(client) !== undefined),
      trust: { issuer, trustNamedIssuer, confirmIssuer },
      confirmsEndpoints: login?.confirmEndpoints !== undefined,
      loginTimeoutMs: loginTimeoutMs ?? login?.loginTimeoutMs ?? DEFAULT_LOGIN_TIMEOUT_MS,
      loginHint: account ?? options.loginHint,
      refusals: [],
    };
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
    const clientSecret = stored.clientSecret ?? (isSameClient ? readClientSecret(configured) : undefined);
    const by = { clock: this.clock, http, acceptedTokenType, trace: this.options.onTrace };
    const privateKey = isSameClient ? configured.privateKey : undefined;
    const client = { ...stored, clientSecret };
    return { ...by, issuer, tokenEndpoint: endpoints.token, client, privateKey, exchanges };
  }

  managerContext() {
    const { clock, events, nonces, pending, connections } = this;
    const { store, login: method, timeoutMs = DEFAULT_TIMEOUT_MS, onProgress } = this.options;
    const shared = { store, clock, events, nonces, pending, method, timeoutMs, onProgress };
    return {
      ...shared,
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
  loginKey(mcpUrl: string | URL): GrantKey {
    const key = this.key(mcpUrl);
    if (this.options.grant) throw noInteractiveLoginError(this.options.grant);
    if (isMachineAccount(key.account)) throw machineAccountError(key.account);
    return key;
  }

  key(address: string | URL): GrantKey {
    const mcpUrl = String(address);
    if (this.#latestKey?.mcpUrl !== mcpUrl) this.#latestKey = { mcpUrl, key: this.#keyOf(mcpUrl) };
    return this.#latestKey.key;
  }

  #keyOf(mcpUrl: string): GrantKey {
    return { profile: this.profile, server: parseMcpUrl(mcpUrl).resource, account: this.options.loginHint };
  }
}
