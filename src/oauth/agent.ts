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
import {
  type AgentHealth,
  checkHealth,
  introspectStored,
  type LoginStatus,
  listConnections,
  listLogins,
  reportDiscovery,
} from "./agent-inspection.js";
import { AgentLogins } from "./agent-logins.js";
import {
  type AgentClientOptions,
  checkCall,
  checkCallNames,
  checkedOptions,
  type DiscoveryReport,
  type StatusOptions,
} from "./agent-options.js";
import { type AgentTokens, type AgentUser, AgentUsers, AgentUserView } from "./agent-tokens.js";
import { requestChallenge } from "./discovery/challenge-request.js";
import type { TokenOptions } from "./grant/grant-requirements.js";
import { type AgentRequestInit, type FetchContext, fetchWithToken } from "./grant/token-fetch.js";
import { SdkProvider, type SdkTokenContext, SdkTokenSource } from "./mcp-sdk/sdk-provider.js";
import type { McpAuthProvider, McpOAuthClientProvider, ProviderOptions } from "./mcp-sdk/types.js";
import type { ConnectionPage, ConnectionQuery } from "./model/connection.js";
import { AccessToken } from "./model/grant.js";
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
export class AgentClient extends AgentLogins {
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
    super(view);
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
    checkCallNames(user, "for");
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
    checkCallNames(options, "token");
    checkCall(options);
    const grant = this.#tokens.get(this.#context.key(mcpUrl), options);
    return new AccessToken(await AgentLogins.offerLogin(this, grant));
  }

  /**
   * Exchanges a token for one with another audience (RFC 8693) at the issuer of an MCP server. The result is cached in
   * memory until it expires.
   *
   * @throws `AgentAuthError` with the issuer's own code, `bad_token_answer`, and as {@link AgentClient.token}
   */
  async exchange(mcpUrl: string, options: ExchangeOptions): Promise<ExchangedToken> {
    checkCallNames(options, "exchange");
    checkCall(options);
    return AgentLogins.offerLogin(this, this.#tokens.exchange(this.#context.key(mcpUrl), options));
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
    return AgentLogins.offerLogin(this, fetchWithToken(this.#fetchContext(), input, init));
  }

  /**
   * The `authProvider` of a transport of `@modelcontextprotocol/client` 2.x for one MCP server. The transport uses the
   * stored login; the provider refreshes its token, logs in, and logs in again for missing scopes.
   *
   * @example
   * new StreamableHTTPClientTransport(url, { authProvider: agent.authProvider(url) });
   */
  authProvider(mcpUrl: string | URL, options: ProviderOptions = {}): McpAuthProvider {
    checkCallNames(options, "authProvider");
    checkCall(options);
    const context: SdkTokenContext = {
      ...this.#fetchContext(),
      clock: this.#context.clock,
      challenge: async (url, signal) =>
        (await requestChallenge(this.#context.loginContext(this.#context.key(url), undefined), url, signal)).challenge,
      offerLogin: (work) => AgentLogins.offerLogin(this, work),
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
    checkCallNames(options, "call");
    checkCall(options);
    return this.#tokens.requiresLogin(this.#context.key(mcpUrl), mcpUrl, options);
  }

  #fetchContext(): FetchContext {
    return this.#tokens.fetchContext((url) => this.#context.key(url));
  }

  /**
   * Removes the login at the identity provider, and all tokens of servers that came from it, then revokes them.
   *
   * @returns what was removed, the login itself first; empty if none is stored
   */
  async logoutIdp(options: Pick<TokenOptions, "signal"> = {}): Promise<IdpLogout[]> {
    checkCallNames(options, "call");
    return logoutIdp(this.#view, options);
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
    checkCallNames(options, "disconnect");
    return disconnect(this.#view, mcpUrl, options);
  }

  /**
   * Ends many logins as {@link AgentClient.disconnect} ends one: with `tenant` or `profile` those of them, else those of this
   * client's own profile. A login that a user finishes at the same time may remain. Revocations that failed before are tried again.
   *
   * @throws `AgentAuthError` class `store` for a login that cannot be read, after the others are ended
   */
  async disconnectAll(options: DisconnectAllOptions = {}): Promise<DisconnectSummary> {
    checkCallNames(options, "disconnectAll");
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
    checkCallNames(options, "call");
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
    checkCallNames(options, "status");
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
    checkCallNames(options, "call");
    return reportDiscovery(this.#context, mcpUrl, options.signal);
  }

  /** Introspects the stored token at its issuer (RFC 7662). */
  async introspect(mcpUrl: string, options: Pick<TokenOptions, "signal"> = {}): Promise<Introspection> {
    checkCallNames(options, "call");
    return introspectStored(this.#view, mcpUrl, options);
  }
}

/** The prototype of the clients of single users: binding all methods would cost more than everything else of them. */
function userPrototype(): object {
  // Made when it is needed: a bundle without AgentClient leaves the class out only if loading this module does nothing.
  ofUsers ??= bindingPrototype(AgentClient.prototype);
  return ofUsers;
}

let ofUsers: object | undefined;
