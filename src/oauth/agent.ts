import { bindingPrototype, bindMethods } from "../http/public-class.js";
import type { AgentContext } from "./agent-context.js";
import {
  type DisconnectAllOptions,
  type DisconnectOptions,
  type DisconnectSummary,
  disconnect,
  disconnectAll,
  type IdpLogout,
  logoutIdp,
  retryRevocations,
} from "./agent-disconnect.js";
import type { ExchangeOptions } from "./agent-exchange.js";
import { type AgentRequestInit, type FetchContext, fetchWithToken } from "./agent-fetch.js";
import {
  type AgentHealth,
  checkHealth,
  introspectStored,
  listConnections,
  listLogins,
  reportDiscovery,
} from "./agent-inspection.js";
import { beginBrowserLogin, beginDeviceLogin, handleCallback, offerStart, startLogin } from "./agent-logins.js";
import {
  type AgentClientOptions,
  checkCall,
  checkedOptions,
  type DiscoveryReport,
  type StatusOptions,
} from "./agent-options.js";
import type { AgentTokens } from "./agent-tokens.js";
import { type AgentUser, AgentUsers, AgentUserView } from "./agent-users.js";
import { requestChallenge } from "./discovery/challenge-request.js";
import { AccessToken } from "./grant/access-token.js";
import type { GrantOptions, LoginOptions, TokenOptions } from "./grant/grant-requirements.js";
import { type KeepAliveOptions, type KeepAliveReport, keepLoginsAlive } from "./keep-alive.js";
import type { LoginContext } from "./login/login-context.js";
import { finishDevice, finishInSession } from "./login/login-flow.js";
import type { LoginSession } from "./login/login-method.js";
import type { PreparedDeviceLogin, PreparedLogin } from "./login/prepared-login.js";
import type { CallbackOptions, CallbackResult, StartedLogin, StartLoginOptions } from "./login/web-types.js";
import { describeLogin, type LoginStatus } from "./login-status.js";
import { SdkProvider } from "./mcp-sdk/sdk-provider.js";
import { type SdkTokenContext, SdkTokenSource } from "./mcp-sdk/token-source.js";
import type { McpAuthProvider, McpOAuthClientProvider, ProviderOptions } from "./mcp-sdk/types.js";
import type { ConnectionPage, ConnectionQuery } from "./model/connection.js";
import type { GrantKey } from "./model/grant.js";
import { IDP_ACCOUNT } from "./model/machine-grant.js";
import type { ExchangedToken } from "./token/exchange.js";
import type { Introspection } from "./token/introspection.js";
import type { RemoteLogout } from "./token/revocation.js";

export type { AgentClientOptions } from "./agent-options.js";

/** Longer than a refresh by the default timeouts. */
const CLOSE_GRACE_MS = 30_000;

let usersOf: (agent: AgentClient) => AgentUsers;

/**
 * Keeps unused logins alive, whose refresh tokens would expire otherwise: each is refreshed once in a time, by
 * whichever of the workers that share the store comes first. A login that was refreshed for a use is left alone for that
 * time. Two logins of a tenant with a thousand users are as far apart as the time allows: no minute has more than twice as
 * many refreshes as the mean, or ten. A `Retry-After` of an issuer is kept.
 *
 * @returns how many logins had which outcome, once the signal has fired and what was in flight has ended; with `once`, as
 * soon as nothing is due
 * @throws `TypeError` for a wrong option; `AgentAuthError` if the store cannot be used, with `once` also if it does not
 * answer
 *
 * @example
 * await keepAlive(agents, { every: "24h", signal });
 */
export function keepAlive(agent: AgentClient, options: KeepAliveOptions): Promise<KeepAliveReport> {
  return keepLoginsAlive(usersOf(agent), options);
}

/**
 * Gets bearer tokens for MCP servers: uses the stored token, refreshes it, or logs the user in. Its methods are bound:
 * `{ fetch: agent.fetch }` works.
 *
 * @example
 * const agent = new AgentClient({ store: memoryStore(), login });
 * const { value } = await agent.token("https://mcp.example/mcp");
 */
export class AgentClient {
  readonly #context: AgentContext;
  readonly #tokens: AgentTokens;
  readonly #view: AgentUserView;

  static {
    usersOf = (agent) => agent.#view.users;
  }

  constructor(options: AgentClientOptions);
  constructor(given: AgentClientOptions | AgentUserView) {
    const isOfUser = given instanceof AgentUserView;
    if (isOfUser) Object.setPrototypeOf(this, OF_USERS);
    else bindMethods(this, AgentClient.prototype);
    const view = isOfUser ? given : new AgentUsers(checkedOptions(given)).own();
    this.#context = view.context;
    this.#tokens = view.tokens;
    this.#view = view;
  }

  /**
   * This client for one of its many users, at the price of a small object. The users of a client share its connections, the
   * documents of issuers and the work in flight for the same login, and no token; keep the client's own profile, by default
   * `default`, apart from theirs.
   *
   * @throws `TypeError` without a user, for a tenant of a store that has none, and with `grant` or `loginHint`
   *
   * @example
   * const mine = agents.for({ tenant: "acme", user: "u1" });
   * const { value } = await mine.token("https://mcp.example/mcp");
   */
  for(user: AgentUser): AgentClient {
    // The constructor takes it without telling its callers.
    return new AgentClient(this.#view.users.view(user) as never);
  }

  /**
   * A token for an MCP server that is valid for at least `minTtl` more seconds.
   *
   * @throws `AgentAuthError` class `auth` if a login is needed and not possible, `refused` if a peer broke a rule,
   * `unavailable` if a peer did not answer
   */
  async token(mcpUrl: string, options: TokenOptions = {}): Promise<AccessToken> {
    checkCall(options);
    const grant = this.#tokens.get(this.#context.key(mcpUrl), options);
    return new AccessToken(await this.#offerLogin(grant));
  }

  /**
   * Exchanges a token for one with another audience (RFC 8693) at the issuer of an MCP server. The result is cached in
   * memory until it expires.
   *
   * @throws `AgentAuthError` with the issuer's own code, `bad_token_answer`, and as {@link AgentClient.token}
   */
  async exchange(mcpUrl: string, options: ExchangeOptions): Promise<ExchangedToken> {
    checkCall(options);
    return this.#offerLogin(this.#tokens.exchange(this.#context.key(mcpUrl), options));
  }

  /**
   * `fetch` with the token of its server. Refreshes the token before it expires; on 401 refreshes and retries once; on
   * 403 `insufficient_scope` logs in once for the missing scopes.
   *
   * The token is sent to its own server only, never to another origin. A server that requires no login gets the request
   * without a token.
   *
   * @throws `TypeError` for an address that is not below the option `server`
   */
  fetch(input: string | URL | Request, init: AgentRequestInit = {}): Promise<Response> {
    return this.#offerLogin(fetchWithToken(this.#fetchContext(), input, init));
  }

  /**
   * The `authProvider` of a transport of `@modelcontextprotocol/client` 2.x for one MCP server. The transport uses the
   * stored login; the provider refreshes its token, logs in, and logs in again for missing scopes.
   *
   * @example
   * new StreamableHTTPClientTransport(url, { authProvider: agent.authProvider(url) });
   */
  authProvider(mcpUrl: string | URL, options: ProviderOptions = {}): McpAuthProvider {
    checkCall(options);
    const context: SdkTokenContext = {
      ...this.#fetchContext(),
      clock: this.#context.clock,
      challenge: async (url, signal) =>
        (await requestChallenge(this.#context.loginContext(this.#context.key(url), undefined), url, signal)).challenge,
      offerLogin: (work) => this.#offerLogin(work),
    };
    const { server } = this.#context.key(String(mcpUrl));
    return new SdkProvider(new SdkTokenSource(context, String(mcpUrl), options), server);
  }

  /**
   * The `authProvider` of a transport of `@modelcontextprotocol/sdk` 1.x for one MCP server, as
   * {@link AgentClient.authProvider}.
   *
   * @example
   * new StreamableHTTPClientTransport(url, { authProvider: agent.oauthClientProvider(url) });
   */
  oauthClientProvider(mcpUrl: string | URL, options: ProviderOptions = {}): McpOAuthClientProvider {
    return this.authProvider(mcpUrl, options);
  }

  /**
   * Whether requests to a server need a login: not if it answers without a token and publishes no resource metadata. A
   * server with a stored login needs it.
   *
   * @throws `AgentAuthError` of class `unavailable` if the server does not answer, `not_found` if nothing is at the address
   */
  async requiresLogin(mcpUrl: string, options: Pick<TokenOptions, "signal"> = {}): Promise<boolean> {
    checkCall(options);
    return this.#tokens.requiresLogin(this.#context.key(mcpUrl), mcpUrl, options);
  }

  #fetchContext(): FetchContext {
    return this.#tokens.fetchContext((url) => this.#context.key(url));
  }

  /** Logs the user in, even if a valid token is stored. */
  async login(mcpUrl: string, options: LoginOptions = {}): Promise<AccessToken> {
    checkCall(options);
    return this.#offerLogin(this.#login(this.#context.loginKey(mcpUrl), options));
  }

  /**
   * Logs the user in at the company's identity provider, which the option `idp` names, even if a login is stored. Servers
   * whose issuers take its assertions then need no login: {@link AgentClient.token} gets their tokens without the user.
   *
   * @returns the login, as `status` lists it
   * @throws `AgentAuthError` `bad_token_answer` for an id token that cannot be verified, and as {@link AgentClient.login}
   */
  async loginIdp(options: LoginOptions = {}): Promise<LoginStatus> {
    const { clock, profile, options: own } = this.#context;
    return describeLogin(await this.#tokens.idpLogin.logIn(profile, options), clock.epoch(), own.store.location);
  }

  /**
   * Removes the login at the identity provider, and all tokens of servers that came from it, then revokes them.
   *
   * @returns what was removed, the login itself first; empty if none is stored
   */
  async logoutIdp(options: Pick<TokenOptions, "signal"> = {}): Promise<IdpLogout[]> {
    return logoutIdp(this.#view, options);
  }

  async #login(key: GrantKey, options: LoginOptions & Pick<GrantOptions, "challenge">): Promise<AccessToken> {
    const seen = await this.#context.options.store.read(key);
    return new AccessToken(await this.#tokens.ofUser.login(key, { ...options, seen, explicit: true }));
  }

  /** The result, or its error with a function that begins the login that is its remedy. */
  async #offerLogin<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      offerStart(this.#context, error, {
        atServer: (key, options) => this.#login(key, options),
        atIdp: this.loginIdp,
        webAtIdp: this.startIdpLogin,
      });
      throw error;
    }
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
    options: LoginOptions = {},
  ): Promise<PreparedLogin> {
    return beginBrowserLogin(this.#context, mcpUrl, redirectUri, options);
  }

  /** As {@link AgentClient.beginLogin}, at the company's identity provider: {@link AgentClient.loginIdp} in two steps. */
  async beginIdpLogin(
    redirectUri: string | ((preferred: string | undefined) => string | Promise<string>),
    options: LoginOptions = {},
  ): Promise<PreparedLogin> {
    const { context, issuer, options: wanted } = await this.#tokens.idpLogin.prepare(this.#context.profile, options);
    return beginBrowserLogin(context, issuer, redirectUri, wanted);
  }

  /**
   * The first half of a login on another device in two steps (RFC 8628): requests the code that the user enters. The
   * result holds a secret: store it as securely as a token until {@link AgentClient.finishDeviceLogin}.
   *
   * @throws `AgentAuthError` `no_device_flow`
   */
  async beginDeviceLogin(mcpUrl: string, options: LoginOptions = {}): Promise<PreparedDeviceLogin> {
    return beginDeviceLogin(this.#context, mcpUrl, options);
  }

  /** As {@link AgentClient.beginDeviceLogin}, at the company's identity provider. */
  async beginIdpDeviceLogin(options: LoginOptions = {}): Promise<PreparedDeviceLogin> {
    const { context, issuer, options: wanted } = await this.#tokens.idpLogin.prepare(this.#context.profile, options);
    return beginDeviceLogin(context, issuer, wanted);
  }

  /** The second half: polls the issuer at its interval until the user has entered the code, and stores the grant. */
  async finishDeviceLogin(
    login: PreparedDeviceLogin,
    options: Pick<TokenOptions, "signal"> = {},
  ): Promise<AccessToken> {
    const signal = options.signal ?? new AbortController().signal;
    return new AccessToken(await finishDevice(this.#contextOf(login), login, signal));
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
    const signal = options.signal ?? new AbortController().signal;
    return new AccessToken(await finishInSession(() => this.#contextOf(login), login, session, signal));
  }

  /**
   * Starts a login in a web app: redirect the browser to `url` with the header `Set-Cookie: cookie`. The callback may
   * reach another process with the same store, or the same `loginSecret`, and has to within ten minutes.
   *
   * @throws `AgentAuthError` `usage` for an unsafe `redirectUri` or `returnTo`, and as {@link AgentClient.login}
   */
  async startLogin(mcpUrl: string, options: StartLoginOptions): Promise<StartedLogin> {
    return startLogin(this.#context, mcpUrl, options);
  }

  /**
   * As {@link AgentClient.startLogin}, at the company's identity provider: {@link AgentClient.loginIdp} in a web app.
   * {@link AgentClient.handleCallback} finishes it.
   */
  async startIdpLogin(options: StartLoginOptions): Promise<StartedLogin> {
    const { context, issuer, options: wanted } = await this.#tokens.idpLogin.prepare(this.#context.profile, options);
    return startLogin(context, issuer, wanted);
  }

  /**
   * Finishes a login in a web app with the request, or the address, of the callback. Each login is finished once, by the
   * browser, the profile and the account that it started with.
   *
   * @throws `AgentAuthError` `state_mismatch`, `browser_mismatch`, `login_not_found`, `bad_saved_login`, `iss_mismatch`,
   * the issuer's own error such as `access_denied`, and as {@link AgentClient.login}
   */
  async handleCallback(callback: Request | URL | string, options: CallbackOptions = {}): Promise<CallbackResult> {
    checkCall(options);
    return handleCallback(this.#context, callback, { ...options, contextOf: (login) => this.#contextOf(login) });
  }

  /** The context that finishes a login, at a server or at the identity provider. */
  #contextOf(login: PreparedLogin | PreparedDeviceLogin): LoginContext {
    const { account } = login;
    return account === IDP_ACCOUNT
      ? this.#tokens.idpLogin.contextOf(this.#context.profile, login)
      : this.#context.contextOf(login);
  }

  /**
   * Ends the login at a server: removes it, then revokes its tokens at the issuer, for at most five seconds. When it returns,
   * no process gets the tokens from the store, and a refresh that was in flight has ended without storing any; a process with
   * a near cache (`near` of `grantStore`) may use its copy for as long as that allows. Tokens that were not revoked are stored
   * for {@link AgentClient.retryRevocations}; without a revocation endpoint they stay valid until they expire.
   *
   * @returns whether there was a login, and what the issuer did
   */
  async disconnect(mcpUrl: string, options: DisconnectOptions = {}): Promise<{ removed: boolean } & RemoteLogout> {
    return disconnect(this.#view, mcpUrl, options);
  }

  /**
   * Ends many logins as {@link AgentClient.disconnect} ends one: with `tenant` or `profile` those of them, else those of this
   * client's own profile. A login that a user finishes at the same time may remain. Revocations that failed before are tried again.
   *
   * @throws `AgentAuthError` class `store` for a login that cannot be read, after the others are ended
   */
  async disconnectAll(options: DisconnectAllOptions = {}): Promise<DisconnectSummary> {
    return disconnectAll(this.#view, options);
  }

  /**
   * Tries again to revoke the tokens of removed logins whose issuers did not revoke them: all that the store has, or those of
   * the user of this client. They are stored for 30 days.
   */
  async retryRevocations(
    options: Pick<TokenOptions, "signal"> = {},
  ): Promise<Pick<DisconnectSummary, "revoked" | "pending">> {
    checkCall(options);
    const profile = this.#view.isOfUser ? this.#context.profile : undefined;
    return retryRevocations(this.#context, profile, options.signal);
  }

  /**
   * Whether this client can do its work, for the readiness probe of a pod: its store answers and may be used, and it is not
   * closed. It asks the store and sends nothing to an issuer.
   */
  async health(options: Pick<TokenOptions, "signal"> = {}): Promise<AgentHealth> {
    return checkHealth(this.#context, options);
  }

  /**
   * Closes this client and those of all its users, before the process ends: no refresh begins any more, and those in flight
   * end and are saved, because an issuer may have obeyed them. Stored tokens that are valid are still returned.
   *
   * @param options `graceMs` is for how long it waits; default: 30,000
   * @returns whether everything ended in that time
   */
  async close({ graceMs = CLOSE_GRACE_MS }: { graceMs?: number | undefined } = {}): Promise<boolean> {
    if (this.#view.isOfUser)
      throw new TypeError("a client of one user is not closed: close the one that it comes from");
    return this.#context.pending.close(graceMs, this.#context.clock);
  }

  /**
   * The stored logins of this profile, or of every profile with `all`, without secrets.
   *
   * @param options `onUnusable` is called for stored logins that cannot be read, of any profile
   */
  async status(mcpUrl?: string, options: StatusOptions = {}): Promise<LoginStatus[]> {
    return listLogins(this.#view, mcpUrl, options);
  }

  /**
   * A page of the stored logins of this profile, without secrets: of the client of one user, those of the user.
   *
   * @throws `AgentAuthError` `usage` for a wrong limit, state or cursor
   */
  async connections(query: Omit<ConnectionQuery, "tenant" | "profile"> = {}): Promise<ConnectionPage> {
    return listConnections(this.#context, query);
  }

  /** Runs discovery and reports every request, also on failure. Does not log in or register a client. */
  async discover(mcpUrl: string, options: Pick<TokenOptions, "signal"> = {}): Promise<DiscoveryReport> {
    return reportDiscovery(this.#context, mcpUrl, options.signal);
  }

  /** Introspects the stored token at its issuer (RFC 7662). */
  async introspect(mcpUrl: string, options: Pick<TokenOptions, "signal"> = {}): Promise<Introspection> {
    return introspectStored(this.#view, mcpUrl, options);
  }
}

/** The prototype of the clients of single users: binding all methods would cost more than everything else of them. */
const OF_USERS = bindingPrototype(AgentClient.prototype);
