import { type AgentAuthError, isAgentAuthError, usageError } from "../errors.js";
import { bindingPrototype, bindMethods } from "../http/public-class.js";
import type { LoginRemedy } from "../remedy.js";
import type { DisconnectSummary } from "./agent-logout.js";
import type { AgentClientOptions, AgentContext, DiscoveryReport, StatusOptions } from "./agent-options.js";
import { checkCall, checkedOptions } from "./agent-options.js";
import type {
  AgentTokens,
  AgentUser,
  DisconnectAllOptions,
  DisconnectOptions,
  ExchangeOptions,
  IdpLogout,
} from "./agent-tokens.js";
import { AgentUsers, AgentUserView } from "./agent-tokens.js";
import { requestChallenge } from "./discovery/challenge-request.js";
import { discover } from "./discovery/discovery.js";
import { challengeOfRemedy } from "./discovery/resource-metadata.js";
import { type GrantOptions, type LoginOptions, loginRequired, type TokenOptions } from "./grant/grant-requirements.js";
import { type AgentRequestInit, type FetchContext, fetchWithToken } from "./grant/token-fetch.js";
import type { HandOver } from "./hand-over.js";
import type { TraceEntry } from "./http/http.js";
import { type LoginContext, type PreparedDeviceLogin, type PreparedLogin, withParams } from "./login/authorization.js";
import { beginDevice, finishDevice, finishInSession, grantKeyFor } from "./login/login-flow.js";
import type { LoginSession } from "./login/login-method.js";
import { type Preparation, planLogin, preferredRedirect, prepareLogin } from "./login/login-plan.js";
import type { CallbackOptions, CallbackResult, LoginStart, StartedLogin, StartLoginOptions } from "./login/web-app.js";
import { checkRedirectUri, checkReturnTo, readQueryParameters } from "./login/web-app.js";
import { GRANT_STRATEGIES, type GrantFlag, noStoredTokenError } from "./machine/grant-strategies.js";
import { McpAuthProvider, type ProviderOptions, type SdkTokenContext } from "./mcp-sdk/sdk-provider.js";
import type { Connection, ConnectionPage, ConnectionQuery } from "./model/connection.js";
import { AccessToken, type Grant, type GrantKey, hasExpired } from "./model/grant.js";
import { withReservation } from "./model/grant-store.js";
import { summarizeGrant, toConnection } from "./model/grant-summary.js";
import { IDP_ACCOUNT, parseMachineAccount } from "./model/machine-grant.js";
import type { ExchangedToken } from "./token/exchange.js";
import type { Introspection } from "./token/introspection.js";
import type { RemoteLogout } from "./token/revocation.js";

export type { AgentClientOptions } from "./agent-options.js";

/** Longer than a refresh by the default timeouts. */
const CLOSE_GRACE_MS = 30_000;

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

  /**
   * What the users of a client share.
   *
   * @internal
   */
  static usersOf(agent: AgentClient): AgentUsers {
    return agent.#view.users;
  }

  constructor(options: AgentClientOptions);
  constructor(given: AgentClientOptions | AgentUserView) {
    const isOfUser = given instanceof AgentUserView;
    const view = isOfUser ? given : new AgentUsers(checkedOptions(given)).own();
    if (isOfUser) Object.setPrototypeOf(this, userPrototype());
    else bindMethods(this, AgentClient.prototype);
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
    checkCall(user, "for");
    // The constructor takes it without telling its callers.
    return new AgentClient(this.#view.users.view(user) as never);
  }

  /**
   * A token for an MCP server that is valid for at least `minTtl` more seconds.
   *
   * @throws `AgentAuthError` class `auth` if a login is needed and not possible, `refused` if a peer broke a rule,
   * `unavailable` if a peer did not answer
   */
  async token(mcpUrl: string | URL, options: TokenOptions = {}): Promise<AccessToken> {
    checkCall(options, "token");
    const grant = this.#tokens.get(this.#context.key(mcpUrl), options);
    return new AccessToken(await this.#offerLogin(grant));
  }

  /**
   * Exchanges a token for one with another audience (RFC 8693) at the issuer of an MCP server. The result is cached in
   * memory until it expires.
   *
   * @throws `AgentAuthError` with the issuer's own code, `bad_token_answer`, and as {@link AgentClient.token}
   */
  async exchange(mcpUrl: string | URL, options: ExchangeOptions): Promise<ExchangedToken> {
    checkCall(options, "exchange");
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
    checkCall(options, "authProvider");
    const context: SdkTokenContext = {
      ...this.#fetchContext(),
      clock: this.#context.clock,
      challenge: async (url, signal) =>
        (await requestChallenge(this.#context.loginContext(this.#context.key(url), undefined), url, signal)).challenge,
      offerLogin: (work) => this.#offerLogin(work),
    };
    const { server } = this.#context.key(mcpUrl);
    return new McpAuthProvider(context, { mcpUrl: String(mcpUrl), server }, options);
  }

  /**
   * The `authProvider` of a transport of `@modelcontextprotocol/sdk` 1.x for one MCP server, as
   * {@link AgentClient.authProvider}.
   *
   * @example
   * new StreamableHTTPClientTransport(url, { authProvider: agent.oauthClientProvider(url) });
   */
  oauthClientProvider(mcpUrl: string | URL, options: ProviderOptions = {}): McpAuthProvider {
    return this.authProvider(mcpUrl, options);
  }

  /**
   * Whether requests to a server need a login: not if it answers without a token and publishes no resource metadata. A
   * server with a stored login needs it.
   *
   * @throws `AgentAuthError` of class `unavailable` if the server does not answer, `not_found` if nothing is at the address
   */
  async requiresLogin(mcpUrl: string | URL, options: Pick<TokenOptions, "signal"> = {}): Promise<boolean> {
    checkCall(options, "call");
    return this.#tokens.requiresLogin(this.#context.key(mcpUrl), String(mcpUrl), options);
  }

  /** Logs the user in, even if a valid token is stored. */
  async login(mcpUrl: string | URL, options: LoginOptions = {}): Promise<AccessToken> {
    checkCall(options, "login");
    return this.#offerLogin(this.#login(this.#context.loginKey(mcpUrl), options));
  }

  /**
   * Logs the user in for an agent of a vendor, whose vault gets the login: with a client of its own, unless the option `client`
   * names one. It is stored nowhere, and a login that is stored for the server stays as it is.
   *
   * @throws `AgentAuthError` `dpop_unsupported` if the server accepts only tokens that are bound to a key, `usage` with a
   * key or a certificate in the options, and as {@link AgentClient.login}
   *
   * @example
   * const login = await agent.handOver("https://mcp.example/mcp");
   * await client.beta.vaults.credentials.create(vaultId, login.reveal("anthropic"));
   */
  async handOver(mcpUrl: string | URL, options: LoginOptions = {}): Promise<HandOver> {
    checkCall(options, "login");
    const { handOver, handOverOptions } = await import("./agent-derived.js");
    const own = { ...handOverOptions(this.#context.options), profile: this.#context.profile };
    return handOver(new AgentClient(own), own.store, String(mcpUrl), options);
  }

  /**
   * Logs the user in at the company's identity provider, which the option `idp` names, even if a login is stored. Servers
   * whose issuers take its assertions then need no login: {@link AgentClient.token} gets their tokens without the user.
   *
   * @returns the login, as `status` lists it
   * @throws `AgentAuthError` `bad_token_answer` for an id token that cannot be verified, and as {@link AgentClient.login}
   */
  async loginIdp(options: LoginOptions = {}): Promise<LoginStatus> {
    checkCall(options, "login");
    const { clock, profile, options: own } = this.#context;
    const idp = await this.#tokens.ofIdp();
    return describeLogin(await idp.login.logIn(profile, options), clock.epoch(), own.store.location);
  }

  /**
   * The first half of a login in two steps: everything up to the address that the user opens. The result holds secrets:
   * store it as securely as a token until {@link AgentClient.finishLogin}.
   *
   * @param redirectUri where the callback will be received; a function gets the redirect address of an earlier
   * registration, if there is one, for servers that accept no other
   */
  async beginLogin(
    mcpUrl: string | URL,
    redirectUri: string | ((preferred: string | undefined) => string | Promise<string>),
    options: LoginOptions = {},
  ): Promise<PreparedLogin> {
    checkCall(options, "login");
    return beginBrowserLogin(this.#context, mcpUrl, redirectUri, options);
  }

  /** As {@link AgentClient.beginLogin}, at the company's identity provider: {@link AgentClient.loginIdp} in two steps. */
  async beginIdpLogin(
    redirectUri: string | ((preferred: string | undefined) => string | Promise<string>),
    options: LoginOptions = {},
  ): Promise<PreparedLogin> {
    checkCall(options, "login");
    const { context, issuer, options: wanted } = await this.#prepareIdpLogin(options);
    return beginBrowserLogin(context, issuer, redirectUri, wanted);
  }

  /**
   * The first half of a login on another device in two steps (RFC 8628): requests the code that the user enters. The
   * result holds a secret: store it as securely as a token until {@link AgentClient.finishDeviceLogin}.
   *
   * @throws `AgentAuthError` `no_device_flow`
   */
  async beginDeviceLogin(mcpUrl: string | URL, options: LoginOptions = {}): Promise<PreparedDeviceLogin> {
    checkCall(options, "login");
    return beginDeviceLogin(this.#context, mcpUrl, options);
  }

  /** As {@link AgentClient.beginDeviceLogin}, at the company's identity provider. */
  async beginIdpDeviceLogin(options: LoginOptions = {}): Promise<PreparedDeviceLogin> {
    checkCall(options, "login");
    const { context, issuer, options: wanted } = await this.#prepareIdpLogin(options);
    return beginDeviceLogin(context, issuer, wanted);
  }

  /** The second half: polls the issuer at its interval until the user has entered the code, and stores the grant. */
  async finishDeviceLogin(
    login: PreparedDeviceLogin,
    options: Pick<TokenOptions, "signal"> = {},
  ): Promise<AccessToken> {
    const signal = options.signal ?? new AbortController().signal;
    return new AccessToken(await finishDevice(await this.#contextOf(login), login, signal));
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
  async startLogin(mcpUrl: string | URL, options: StartLoginOptions): Promise<StartedLogin> {
    checkCall(options, "startLogin");
    return startLogin(this.#context, mcpUrl, options);
  }

  /**
   * As {@link AgentClient.startLogin}, at the company's identity provider: {@link AgentClient.loginIdp} in a web app.
   * {@link AgentClient.handleCallback} finishes it.
   */
  async startIdpLogin(options: StartLoginOptions): Promise<StartedLogin> {
    checkCall(options, "startLogin");
    const { context, issuer, options: wanted } = await this.#prepareIdpLogin(options);
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
    const { saved, signal = new AbortController().signal } = options;
    checkCall({ signal }, "call");
    const cookie = options.cookie ?? (callback instanceof Request ? (callback.headers.get("cookie") ?? "") : "");
    const parameters = readQueryParameters(callback);
    const { finishWithCallback, storeWebLogin, takeWebLogin } = await import("./agent-derived.js");
    const webLogins = this.#context.webLogins();
    const { login, returnTo } = await takeWebLogin(webLogins, parameters, { saved, cookie });
    const { server } = login;
    const result = await finishWithCallback(await this.#contextOf(login), login, parameters, signal);
    if (!("again" in result)) return { done: { server, returnTo, token: new AccessToken(result) } };
    // The issuer refused scopes that were added: once more without them.
    const { url: redirect, ...again } = await storeWebLogin(webLogins, { login: result.again, returnTo });
    return { redirect, ...again };
  }

  /**
   * Removes the login at the identity provider, and all tokens of servers that came from it, then revokes them.
   *
   * @returns what was removed, the login itself first; empty if none is stored
   */
  async logoutIdp(options: Pick<TokenOptions, "signal"> = {}): Promise<IdpLogout[]> {
    checkCall(options, "call");
    const { removeAndRevoke } = await import("./agent-logout.js");
    const end = async (grant: Grant): Promise<IdpLogout> => {
      const outcome = await removeAndRevoke(this.#context, grant, options.signal);
      return { server: grant.server, account: grant.account ?? null, removed: true, ...outcome };
    };
    // The login comes first: without it no process gets another token.
    return Promise.all((await (await this.#tokens.ofIdp()).withDerived(this.#context.profile)).map(end));
  }

  /**
   * Ends the login at a server: removes it, then revokes its tokens at the issuer, for at most five seconds. When it returns,
   * no process gets the tokens from the store, and a refresh that was in flight has ended without storing any; a process with
   * a near cache (`near` of `grantStore`) may use its copy for as long as that allows. Tokens that were not revoked are stored
   * for {@link AgentClient.retryRevocations}; without a revocation endpoint they stay valid until they expire.
   *
   * @returns whether there was a login, and what the issuer did
   */
  async disconnect(
    mcpUrl: string | URL,
    options: DisconnectOptions = {},
  ): Promise<{ removed: boolean } & RemoteLogout> {
    checkCall(options, "disconnect");
    const { account, signal } = options;
    const key = this.#context.key(mcpUrl);
    const grant = await (account === undefined
      ? this.#tokens.find(key).then((found) => found ?? this.#tokens.findStored(key, false))
      : this.#context.options.store.read({ ...key, account: account ?? undefined }));
    if (!grant) return { removed: false, revoked: null, sessionEnded: null };
    const { removeAndRevoke } = await import("./agent-logout.js");
    const context = await this.#tokens.revokingContext(grant, this.#context);
    return { removed: true, ...(await removeAndRevoke(context, grant, signal)) };
  }

  /**
   * Ends many logins as {@link AgentClient.disconnect} ends one: with `tenant` or `profile` those of them, else those of this
   * client's own profile. A login that a user finishes at the same time may remain. Revocations that failed before are tried again.
   *
   * @throws `AgentAuthError` class `store` for a login that cannot be read, after the others are ended
   */
  async disconnectAll(options: DisconnectAllOptions = {}): Promise<DisconnectSummary> {
    checkCall(options, "disconnectAll");
    const { tenant, profile, signal } = options;
    if (this.#view.isOfUser && (tenant !== undefined || profile !== undefined))
      throw new TypeError("a client of one user disconnects no others: leave out tenant and profile");
    const context = tenant === undefined ? this.#context : this.#view.users.tokensOf(tenant).context;
    const whose = tenant === undefined ? (profile ?? this.#context.profile) : profile;
    const { disconnectLogins, retryRevocations } = await import("./agent-logout.js");
    const done = await disconnectLogins(context, whose, signal);
    const { revoked, pending } = await retryRevocations(context, whose, signal);
    return { removed: done.removed, revoked: done.revoked + revoked, pending };
  }

  /**
   * Tries again to revoke the tokens of removed logins whose issuers did not revoke them: all that the store has, or those of
   * the user of this client. They are stored for 30 days.
   */
  async retryRevocations(
    options: Pick<TokenOptions, "signal"> = {},
  ): Promise<Pick<DisconnectSummary, "revoked" | "pending">> {
    checkCall(options, "call");
    const profile = this.#view.isOfUser ? this.#context.profile : undefined;
    const { retryRevocations } = await import("./agent-logout.js");
    return retryRevocations(this.#context, profile, options.signal);
  }

  /**
   * Whether this client can do its work, for the readiness probe of a pod: its store answers and may be used, and it is not
   * closed. It asks the store and sends nothing to an issuer.
   */
  async health(options: Pick<TokenOptions, "signal"> = {}): Promise<AgentHealth> {
    checkCall(options, "call");
    const { store } = this.#context.options;
    const closed = this.#context.pending.isClosed ? ["the client is closed"] : [];
    const report = { storedIn: store.location, risks: [] };
    try {
      const health = (await store.health?.({ signal: options.signal })) ?? { errors: [], risks: [] };
      // A store that cannot say how it is can be read, or cannot.
      if (store.health === undefined) await store.read({ profile: "health", server: "https://health.invalid/" });
      const errors = [...closed, ...health.errors];
      return { ...report, risks: [...health.risks], errors, ready: errors.length === 0 };
    } catch (error) {
      if (!isAgentAuthError(error) || error.class === "aborted") throw error;
      return { ...report, errors: [...closed, error.message], ready: false };
    }
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
   * @param options `onUnusable` is called for stored logins that cannot be read
   */
  async status(mcpUrl?: string | URL, options: StatusOptions = {}): Promise<LoginStatus[]> {
    checkCall(options, "status");
    const { clock, profile, options: own } = this.#context;
    if (this.#view.isOfUser && options.all) throw new TypeError("a client of one user lists no others: leave out all");
    const { store, loginHint } = own;
    const key = mcpUrl === undefined ? undefined : this.#context.key(mcpUrl);
    // A login that cannot be read is an error if it is the requested one.
    if (key) await store.read(key);
    const grants = await store.list({ server: key?.server, ...(!options.all && { profile }) }, options.onUnusable);
    return grants
      .filter(({ account }) => !key || account === loginHint || !loginHint)
      .map((grant) => describeLogin(grant, clock.epoch(), store.location));
  }

  /**
   * A page of the stored logins of this profile, without secrets: of the client of one user, those of the user.
   *
   * @throws `AgentAuthError` `usage` for a wrong limit, state or cursor
   */
  async connections(query: Omit<ConnectionQuery, "tenant" | "profile"> = {}): Promise<ConnectionPage> {
    const { profile, options } = this.#context;
    for await (const page of options.store.connections({ ...query, tenant: undefined, profile })) return page;
    return { items: [], cursor: undefined };
  }

  /** Runs discovery and reports every request, also on failure. Does not log in or register a client. */
  async discover(mcpUrl: string | URL, options: Pick<TokenOptions, "signal"> = {}): Promise<DiscoveryReport> {
    const trace: TraceEntry[] = [];
    try {
      checkCall(options, "call");
      const key = this.#context.key(mcpUrl);
      // Discovery works without a readable store.
      const remembered = await this.#context.options.store.read(key).catch(() => undefined);
      const login = this.#context.loginContext(key, remembered, (entry) => trace.push(entry));
      return { found: await discover(login, String(mcpUrl), undefined, options.signal), trace, error: undefined };
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      return { found: undefined, trace, error };
    }
  }

  /** Introspects the stored token at its issuer (RFC 7662). */
  async introspect(mcpUrl: string | URL, options: Pick<TokenOptions, "signal"> = {}): Promise<Introspection> {
    checkCall(options, "call");
    const tokens = this.#tokens;
    const key = this.#context.key(mcpUrl);
    const grant = await tokens.find(key);
    if (!grant) throw tokens.isOfMachine ? noStoredTokenError(key.server) : loginRequired(key, "not logged in");
    this.#context.requireIssuer(grant.issuer, grant.server);
    const { client, privateKey, http } = (await tokens.clientOf(grant)).context.callOf(grant);
    const { introspect } = await import("./agent-derived.js");
    return introspect({ ...grant, client }, http, options.signal, privateKey);
  }

  #fetchContext(): FetchContext {
    return this.#tokens.fetchContext((url) => this.#context.key(url));
  }

  async #prepareIdpLogin<Options extends LoginOptions>(options: Options) {
    return (await this.#tokens.ofIdp()).login.prepare(this.#context.profile, options);
  }

  /** The context that finishes a login, at a server or at the identity provider. */
  async #contextOf(login: PreparedLogin | PreparedDeviceLogin): Promise<LoginContext> {
    if (login.account !== IDP_ACCOUNT) return this.#context.contextOf(login);
    return (await this.#tokens.ofIdp()).login.contextOf(this.#context.profile, login);
  }

  async #login(key: GrantKey, options: BeginOptions): Promise<AccessToken> {
    const seen = await this.#context.options.store.read(key);
    return new AccessToken(await this.#tokens.ofUser.login(key, { ...options, seen, explicit: true }));
  }

  /** The result, or its error with a function that begins the login that is its remedy, if the client has a way to. */
  async #offerLogin<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      const { login: method, grant, store, loginSecret } = this.#context.options;
      const mayStart = method !== undefined || loginSecret !== undefined || store.shortLived !== undefined;
      const remedy = isAgentAuthError(error) ? error.remedy : undefined;
      // Not enumerable: the remedy stays data for logs, copies and comparisons.
      if (grant === undefined && mayStart && remedy?.action === "login" && remedy.start === undefined)
        Object.defineProperty(remedy, "start", { value: this.#starterOf(remedy) });
      throw error;
    }
  }

  #starterOf(remedy: LoginRemedy): LoginStart {
    const { server, account, idp } = remedy;
    const challenge = challengeOfRemedy(remedy);
    const start = async (options: Partial<StartLoginOptions> = {}): Promise<unknown> => {
      checkCall(options, "startLogin");
      const { redirectUri, signal, scope = remedy.scope } = options;
      const authorizationParams = { ...remedy.authorizationParams, ...options.authorizationParams };
      if (redirectUri !== undefined) {
        const wanted = { ...options, redirectUri, scope, authorizationParams };
        return idp ? this.startIdpLogin(wanted) : startLogin(this.#context, server, { ...wanted, challenge });
      }
      if (this.#context.options.login === undefined) throw redirectRequiredError();
      const wanted = { scope, signal, authorizationParams };
      const key = { profile: this.#context.profile, server, account };
      return idp ? this.loginIdp(wanted) : this.#login(key, { ...wanted, challenge });
    };
    return start as LoginStart;
  }
}

/** The prototype of the clients of single users: binding all methods would cost more than everything else of them. */
function userPrototype(): object {
  // Made when it is needed: a bundle without AgentClient leaves the class out only if loading this module does nothing.
  ofUsers ??= bindingPrototype(AgentClient.prototype);
  return ofUsers;
}

let ofUsers: object | undefined;

type BeginOptions = LoginOptions & Pick<GrantOptions, "challenge">;

/** Prepares a login in a browser; its redirect address may depend on that of an earlier registration. */
async function beginBrowserLogin(
  agent: AgentContext,
  mcpUrl: string | URL,
  redirectUri: string | ((preferred: string | undefined) => string | Promise<string>),
  options: BeginOptions,
): Promise<PreparedLogin> {
  const { context, preparation } = await prepareTwoStepLogin(agent, mcpUrl, "browser", options);
  const preferred = await preferredRedirect(context, preparation.found.issuer);
  return withReservation(context.store, grantKeyFor(context, preparation.found.server), async () => {
    const address = typeof redirectUri === "string" ? redirectUri : await redirectUri(preferred);
    return prepareLogin(context, { ...preparation, redirectUri: address });
  });
}

async function beginDeviceLogin(agent: AgentContext, mcpUrl: string | URL, options: BeginOptions) {
  const { context, preparation } = await prepareTwoStepLogin(agent, mcpUrl, "device", options);
  return withReservation(context.store, grantKeyFor(context, preparation.found.server), () =>
    beginDevice(context, preparation),
  );
}

/** Prepares a login in a web app, and stores it until its callback. */
async function startLogin(
  agent: AgentContext,
  mcpUrl: string | URL,
  options: StartLoginOptions & Pick<BeginOptions, "challenge">,
): Promise<StartedLogin> {
  const redirectUri = checkRedirectUri(options.redirectUri);
  const returnTo = checkReturnTo(options.returnTo, redirectUri);
  const login = await beginBrowserLogin(agent, mcpUrl, redirectUri.href, options);
  const { storeWebLogin } = await import("./agent-derived.js");
  return storeWebLogin(agent.webLogins(), { login, returnTo });
}

function redirectRequiredError(): AgentAuthError {
  const message = "redirectUri is required: a client without a login method can only start logins in a web app";
  const hint = "call start({ redirectUri }), or set the option login of the client";
  return usageError(message, hint);
}

/** Everything of a login in two steps before the user is needed. */
async function prepareTwoStepLogin(
  agent: AgentContext,
  mcpUrl: string | URL,
  flow: LoginContext["flow"],
  options: BeginOptions,
): Promise<{ context: LoginContext; preparation: Preparation }> {
  const { store, login: method } = agent.options;
  const key = agent.loginKey(mcpUrl);
  const requested = withParams(agent.loginContext(key, await store.read(key)), options);
  const signal = options.signal ?? new AbortController().signal;
  const { challenge, scope } = options;
  return planLogin(requested, { mcpUrl: String(mcpUrl), challenge, scope, flow, method, signal });
}

/** Whether a client can do its work. */
export interface AgentHealth {
  /** Whether there are no errors. */
  ready: boolean;
  /** Where the logins are stored, without credentials. */
  storedIn: string;
  /** Why the client cannot work: the store does not answer or must not be used, or the client is closed. */
  errors: string[];
  /** Why logins may be lost although they were stored. */
  risks: string[];
}

/** A stored login as `status` shows it, without secrets. */
export interface LoginStatus
  extends Pick<
    Connection,
    ("profile" | "server" | "account" | "issuer" | "scope") | ("expires_at" | "logged_in_at" | "refreshable" | "reason")
  > {
  /** How it gets tokens: by a login of the user at the server (`login`) or at an identity provider (`idp`), or by a machine grant. */
  grant: "login" | "idp" | GrantFlag;
  /** The type of its tokens: `DPoP` tokens are bound to a key that is stored with them. */
  token_type: "Bearer" | "DPoP";
  /** The `resource` parameter; `none` if none is sent. */
  resource: string;
  /** The options that the login was made with and that stay in force for it, such as `acceptTokenType`. */
  exceptions: readonly LoginException[];
  /** The client that the tokens were issued to. */
  client_id: string;
  /** `expired` if the token has expired, or if the issuer rejected the grant (`reason`) and a new login is required. */
  state: "valid" | "expired";
  /** RFC 3339 if the response to the last refresh was lost, so that the token is used until it expires; else null. */
  refresh_lost_at: string | null;
  /** Where it is stored. */
  stored_in: string;
}

export function describeLogin(grant: Grant, now: number, location: string): LoginStatus {
  const { profile, server, account, issuer, scope, ...connection } = toConnection(summarizeGrant(grant), now);
  const machine = parseMachineAccount(grant.account);
  return {
    profile,
    server,
    account,
    grant: machine ? GRANT_STRATEGIES[machine].flag : grant.account === IDP_ACCOUNT ? "idp" : "login",
    token_type: grant.proofKey === undefined ? "Bearer" : "DPoP",
    resource: grant.resource,
    issuer,
    exceptions: listExceptions(grant),
    client_id: grant.client.clientId,
    scope,
    expires_at: connection.expires_at,
    logged_in_at: connection.logged_in_at,
    state: grant.retired || hasExpired(grant.tokens, now) ? "expired" : "valid",
    refreshable: connection.refreshable,
    refresh_lost_at: grant.lostRefresh === undefined ? null : new Date(grant.lostRefresh.at).toISOString(),
    reason: connection.reason,
    stored_in: location,
  };
}

/** An option that a login was made with and that stays in force for its issuer: an exception of this one server. */
export interface LoginException {
  /** The option of `AgentClient`, such as `acceptTokenType`. */
  option: string;
  /** Its value; absent for an option that is only set. */
  value?: string;
}

export function listExceptions(grant: Grant): LoginException[] {
  const { overrides, acceptedTokenType, authorizationParams = {}, resource, issuer, namedIssuer } = grant;
  const toException = (option: string) => (option === "resource" ? { option, value: resource } : { option });
  return [
    ...overrides.map(toException),
    ...(acceptedTokenType === undefined ? [] : [{ option: "acceptTokenType", value: acceptedTokenType }]),
    ...Object.entries(authorizationParams).map(([name, value]) => {
      return { option: "authorizationParams", value: `${name}=${value}` };
    }),
    ...(namedIssuer === undefined ? [] : [{ option: "issuer", value: issuer }]),
  ];
}
