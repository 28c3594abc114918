import { isAgentAuthError } from "../errors.js";
import { bindMethods } from "../http/bind-methods.js";
import { type Clock, systemClock } from "../http/deadline.js";
import { type ClientCall, callForClient, callOf } from "./agent-calls.js";
import { ExchangeCache, type ExchangeOptions } from "./agent-exchange.js";
import { fetchWithToken } from "./agent-fetch.js";
import {
  type AgentClientOptions,
  checkCall,
  checkOptions,
  DEFAULT_TIMEOUT_MS,
  type DiscoveryReport,
  expectedIssuer,
  type StatusOptions,
} from "./agent-options.js";
import { bindUsedClient, issuerMismatch } from "./client/issuer-binding.js";
import { discover } from "./discovery/discovery.js";
import { parseMcpUrl } from "./discovery/resource.js";
import { Nonces } from "./dpop/nonces.js";
import { AccessToken } from "./grant/access-token.js";
import type { Grant } from "./grant/grant.js";
import type { GrantKey } from "./grant/grant-store.js";
import { withReservation } from "./grant/reservation.js";
import { TokenManager } from "./grant/token-manager.js";
import type { TokenOptions } from "./grant/token-options.js";
import { ConnectionPool, type Remembered } from "./http/server-connection.js";
import type { TraceEntry } from "./http/trace.js";
import { checkEndpointOrigins } from "./login/endpoint-origins.js";
import { type LoginContext, loginContextOf } from "./login/login-context.js";
import {
  checkClientIssuer,
  finishInSession,
  grantKeyFor,
  knownRedirect,
  prepareLogin,
  reportNewIssuer,
  scopeFor,
} from "./login/login-flow.js";
import type { LoginSession } from "./login/login-method.js";
import { loginRequired } from "./login/login-required.js";
import { describeLogin, type LoginStatus } from "./login/login-status.js";
import type { PreparedLogin } from "./login/prepared-login.js";
import { isMachineAccount, noPerson, noSignIn, noToken } from "./machine/machine-grant.js";
import { MachineTokenManager } from "./machine/machine-token-manager.js";
import type { ExchangedToken } from "./token/exchange.js";
import { type Introspection, introspect } from "./token/introspection.js";
import { type RemoteLogout, revokeRemotely } from "./token/revocation.js";

export type { AgentClientOptions } from "./agent-options.js";

/**
 * Gets bearer tokens for MCP servers: uses the stored token, refreshes it, or logs the user in. Its methods are bound:
 * `{ fetch: agent.fetch }` works.
 *
 * @example
 * const agent = new AgentClient({ store: memoryStore(), login });
 * const { value } = await agent.token("https://mcp.example/mcp");
 */
export class AgentClient {
  readonly #options: AgentClientOptions;
  readonly #connections: ConnectionPool;
  readonly #clock: Clock;
  readonly #tokenManager: TokenManager;
  readonly #machine: MachineTokenManager | undefined;
  readonly #exchanges = new ExchangeCache();
  readonly #nonces = new Nonces();

  constructor(options: AgentClientOptions) {
    const { store, login, timeoutMs = DEFAULT_TIMEOUT_MS, client, resource, dpop = "auto", onProgress } = options;
    checkOptions(options);
    bindMethods(this, AgentClient.prototype);
    this.#options = options;
    this.#connections = new ConnectionPool(options);
    this.#clock = options.clock ?? systemClock;
    const common = {
      store,
      clock: this.#clock,
      loginContext: (key: GrantKey, before: Grant | undefined) => this.#context(key, before),
      onProgress,
    };
    const httpFor = (grant: Grant) => this.#connections.get(grant.server, grant).http;
    this.#tokenManager = new TokenManager({
      ...common,
      httpFor,
      timeoutMs,
      method: login,
      privateKey: client?.privateKey,
      requirements: { dpop, resource, expectedIssuer: expectedIssuer(options), preRegistered: client },
      nonces: this.#nonces,
    });
    const httpTo = (address: string) => this.#connections.get(address).http;
    this.#machine =
      options.grant && client && new MachineTokenManager({ ...common, grant: options.grant, client, httpTo });
  }

  /**
   * A token for an MCP server that is valid for at least `minTtl` more seconds.
   *
   * @throws `AgentAuthError` class `auth` if a login is needed and not possible, `refused` if a peer broke a rule,
   * `unavailable` if a peer did not answer
   */
  async token(mcpUrl: string, options: TokenOptions = {}): Promise<AccessToken> {
    checkCall(options);
    return new AccessToken(await (this.#machine ?? this.#tokenManager).get(this.#key(mcpUrl), options));
  }

  /**
   * Exchanges a token for one with another audience (RFC 8693) at the issuer of an MCP server. The result is cached in
   * memory until it expires.
   *
   * @throws `AgentAuthError` with the issuer's own code, `bad_token_answer`, and as {@link AgentClient.token}
   */
  async exchange(mcpUrl: string, options: ExchangeOptions): Promise<ExchangedToken> {
    checkCall(options);
    const key = this.#key(mcpUrl);
    const tokenManager = this.#machine ?? this.#tokenManager;
    return this.#exchanges.get(key.server, options, {
      clock: this.#clock,
      grant: (requested) => tokenManager.get(key, requested),
      callOf: (grant) => this.#callOf(grant),
      client: async (signal) => {
        const grant = await tokenManager.find(key);
        if (grant) this.#requireIssuer(grant.issuer, grant.server);
        return grant ? this.#callOf(grant) : callForClient(this.#context(key, undefined), key.server, signal);
      },
    });
  }

  /**
   * `fetch` with the token of its server. Refreshes the token before it expires; on 401 refreshes and retries once; on
   * 403 `insufficient_scope` logs in once for the missing scopes.
   *
   * The token is sent to its own server only, never to another origin.
   */
  fetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    const machine = this.#machine;
    return fetchWithToken(
      {
        fetchFor: (grant) => this.#connections.get(grant.server, grant).fetch,
        grant: (url, options) =>
          machine?.get(this.#key(url), options) ?? this.#tokenManager.toSend(this.#key(url), options),
        refresh: (grant, signal) => this.#tokenManager.refreshRefused(grant, signal),
        replace: (refused, request) =>
          machine?.replace(refused, request) ?? this.#tokenManager.login(refused, { ...request, refused }),
        nonces: this.#nonces,
        // A machine requests a new token where the user would log in.
        mayLogin: machine !== undefined || this.#options.login !== undefined,
        followsRefusal: (grant) => machine === undefined && this.#tokenManager.followsRefusal(grant),
      },
      input,
      init,
    );
  }

  /** Logs the user in, even if a valid token is stored. */
  async login(mcpUrl: string, options: Pick<TokenOptions, "scope" | "signal"> = {}): Promise<AccessToken> {
    checkCall(options);
    const key = this.#loginKey(mcpUrl);
    const seen = await this.#options.store.read(key);
    return new AccessToken(await this.#tokenManager.login(key, { ...options, seen, explicit: true }));
  }

  /**
   * The first half of a login in two steps: everything up to the address that the user opens. The result holds secrets:
   * store it as securely as a token until {@link AgentClient.finishLogin}.
   *
   * @param redirectUri where the callback will be received; a function gets the redirect address of an earlier
   * registration, if there is one, for servers that accept no other
   */
  async beginLogin(
    mcpUrl: string,
    redirectUri: string | ((preferred: string | undefined) => string | Promise<string>),
    options: Pick<TokenOptions, "scope" | "signal"> = {},
  ): Promise<PreparedLogin> {
    checkCall(options);
    const key = this.#loginKey(mcpUrl);
    const requested = this.#context(key, await this.#options.store.read(key));
    const signal = options.signal ?? new AbortController().signal;
    const found = await discover(requested, mcpUrl, undefined, signal);
    reportNewIssuer(requested, found);
    const context = await checkEndpointOrigins(requested, found, {
      flow: "browser",
      method: this.#options.login,
      signal,
    });
    await checkClientIssuer(context, found, signal);
    const wanted = scopeFor(found, { scope: options.scope });
    const resource = context.resource ?? found.resource?.resource ?? found.server;
    const preferred = await knownRedirect(this.#options.store, found.issuer.issuer);
    return withReservation(context.store, grantKeyFor(context, found.server), async () => {
      const address = typeof redirectUri === "string" ? redirectUri : await redirectUri(preferred);
      return prepareLogin(context, { found, ...wanted, resource, redirectUri: address, signal });
    });
  }

  /**
   * The second half: waits for the callback in a session that is open at the redirect address, and stores the grant for
   * the account that the login began with, even if this client is for another account.
   */
  async finishLogin(
    login: PreparedLogin,
    session: LoginSession,
    options: Pick<TokenOptions, "signal"> = {},
  ): Promise<AccessToken> {
    this.#requireIssuer(login.issuer.issuer, login.server);
    const contextOf = () => {
      const { server, overrides, issuer } = login;
      const endpoints = { token: issuer.tokenEndpoint };
      return this.#context(this.#key(server), { overrides, issuer: issuer.issuer, endpoints });
    };
    const signal = options.signal ?? new AbortController().signal;
    return new AccessToken(await finishInSession(contextOf, login, session, signal));
  }

  /**
   * Removes the login at a server, then revokes its tokens at the issuer, for at most five seconds.
   *
   * @param options `account` selects the login: null for the one without an account, as `status` lists it; if left out,
   * the one that {@link AgentClient.token} would use
   * @returns whether there was a login, and the result of the revocation
   */
  async logout(
    mcpUrl: string,
    options: Pick<TokenOptions, "signal"> & { account?: string | null | undefined } = {},
  ): Promise<{ removed: boolean } & RemoteLogout> {
    checkCall(options);
    const { account } = options;
    const key = this.#key(mcpUrl);
    const grant = await (account === undefined
      ? (this.#machine ?? this.#tokenManager).find(key)
      : this.#options.store.read({ ...key, account: account ?? undefined }));
    if (!grant) return { removed: false, revoked: undefined };
    // A login from before bindings were stored is the only record of its client's issuer.
    await bindUsedClient(this.#context(key, grant), grant);
    await this.#options.store.remove(grant);
    const { client, privateKey, http } = this.#callOf(grant);
    return { removed: true, ...(await revokeRemotely({ ...grant, client }, http, options.signal, privateKey)) };
  }

  /**
   * The stored logins of this profile, or of every profile with `all`, without secrets.
   *
   * @param options `onUnusable` is called for stored logins that cannot be read, of any profile
   */
  async status(mcpUrl?: string, options: StatusOptions = {}): Promise<LoginStatus[]> {
    checkCall(options);
    const { store, loginHint } = this.#options;
    const key = mcpUrl === undefined ? undefined : this.#key(mcpUrl);
    // A login that cannot be read is an error if it is the requested one.
    if (key) await store.read(key);
    const grants = await store.list(options.onUnusable);
    return grants
      .filter(({ profile }) => options.all || profile === this.#profile())
      .filter(({ server, account }) => !key || (server === key.server && (account === loginHint || !loginHint)))
      .map((grant) => describeLogin(grant, this.#clock.epoch(), store.location));
  }

  /** Runs discovery and reports every request, also on failure. Does not log in or register a client. */
  async discover(mcpUrl: string, options: Pick<TokenOptions, "signal"> = {}): Promise<DiscoveryReport> {
    const trace: TraceEntry[] = [];
    try {
      const key = this.#key(mcpUrl);
      // Discovery works without a readable store.
      const remembered = await this.#options.store.read(key).catch(() => undefined);
      const context = this.#context(key, remembered, (entry) => trace.push(entry));
      return { found: await discover(context, mcpUrl, undefined, options.signal), trace, error: undefined };
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      return { found: undefined, trace, error };
    }
  }

  /** Introspects the stored token at its issuer (RFC 7662). */
  async introspect(mcpUrl: string, options: Pick<TokenOptions, "signal"> = {}): Promise<Introspection> {
    checkCall(options);
    const key = this.#key(mcpUrl);
    const grant = await (this.#machine ?? this.#tokenManager).find(key);
    if (!grant) throw this.#machine ? noToken(key.server) : loginRequired(key, "not logged in");
    this.#requireIssuer(grant.issuer, grant.server);
    const { client, privateKey, http } = this.#callOf(grant);
    return introspect({ ...grant, client }, http, options.signal, privateKey);
  }

  #context(
    { server, account }: GrantKey,
    remembered: Remembered | undefined,
    trace: (entry: TraceEntry) => void = this.#options.onTrace ?? (() => {}),
  ): LoginContext {
    const own = { clock: this.#clock, nonces: this.#nonces, profile: this.#profile(), trace };
    return loginContextOf(this.#options, account, { ...this.#connections.get(server, remembered), ...own, remembered });
  }

  #callOf(grant: Grant): ClientCall {
    const expected = expectedIssuer(this.#options) ?? grant.issuer;
    const client = expected === grant.issuer ? this.#options.client : undefined;
    return callOf(grant, client, { clock: this.#clock, http: this.#connections.get(grant.server, grant).http });
  }

  /** Rejects a login of another issuer than the one in the options. */
  #requireIssuer(issuer: string, from: string): void {
    const expected = expectedIssuer(this.#options);
    if (expected !== undefined && expected !== issuer) throw issuerMismatch(expected, [issuer], from);
  }

  #profile(): string {
    return this.#options.profile ?? "default";
  }

  /** The key of a user's login; throws for machine grants. */
  #loginKey(mcpUrl: string): GrantKey {
    const key = this.#key(mcpUrl);
    if (this.#options.grant) throw noSignIn(this.#options.grant);
    if (isMachineAccount(key.account)) throw noPerson(key.account);
    return key;
  }

  #key(mcpUrl: string): GrantKey {
    return { profile: this.#profile(), server: parseMcpUrl(mcpUrl).resource, account: this.#options.loginHint };
  }
}
