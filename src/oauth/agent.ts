import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { type Clock, follow, systemClock } from "../http/deadline.js";
import type { Network } from "../http/network.js";
import { AccessToken } from "./access-token.js";
import { fetchWithToken } from "./agent-fetch.js";
import { type Discovered, discover, type Overrides } from "./discovery.js";
import { endRemotely, type RemoteLogout } from "./end-session.js";
import { GrantKeeper, type TokenOptions } from "./grant-keeper.js";
import type { GrantKey, GrantStore } from "./grant-store.js";
import type { OAuthHttpOptions, TraceEntry } from "./http.js";
import { type Introspection, introspect } from "./introspection.js";
import type { LoginMethod, LoginSession } from "./login.js";
import type { LoginContext } from "./login-context.js";
import { finishInSession, knownRedirect, type PreparedLogin, prepareLogin, scopeFor } from "./login-flow.js";
import { describeLogin, type LoginStatus } from "./login-status.js";
import { loginRequired, type Progress } from "./refresh.js";
import type { PreRegisteredClient } from "./registration.js";
import { parseMcpUrl } from "./resource.js";
import { type Remembered, Ways } from "./way.js";

/** How an {@link AgentClient} works. */
export interface AgentClientOptions extends OAuthHttpOptions, Overrides {
  /** Where grants are kept. */
  store: GrantStore;
  /** How a person signs in; without it nobody is ever asked, and a needed login is an error. */
  login?: LoginMethod | undefined;
  /** What the client is called where a person gives consent. Default "agentauth". */
  clientName?: string | undefined;
  /**
   * What judges addresses by where their names lead, such as `nodeNetwork()` of `agentauth/node`; it takes the place of
   * `fetch`. Without it an address is judged by how it is written.
   */
  network?: Network | undefined;
  /** Keeps several accounts apart. Default "default". */
  profile?: string | undefined;
  /** A client that the issuer already knows. */
  client?: PreRegisteredClient | undefined;
  /** The https address of this client's metadata document. */
  clientMetadataUrl?: string | undefined;
  /** Replaces the `resource` that the server's metadata names. */
  resource?: string | undefined;
  /** How a person signs in. Default "browser". */
  flow?: "browser" | "device" | undefined;
  /** Which account is meant. */
  loginHint?: string | undefined;
  /** Hears of every request of the flow and what became of its answer. */
  onTrace?: ((entry: TraceEntry) => void) | undefined;
  /** Hears what goes on beyond single requests: whom it waits for, what is renewed. */
  onProgress?: ((progress: Progress) => void) | undefined;
}

/** Everything that discovery did and found. */
export interface DiscoveryReport {
  found: Discovered | undefined;
  trace: readonly TraceEntry[];
  error: AgentAuthError | undefined;
}

const DEFAULT_TIMEOUT_MS = 15_000;

/**
 * Gets bearer tokens for MCP servers: from the store, else by refresh, else by signing a person in.
 *
 * @example
 * const agent = new AgentClient({ store: memoryStore(), login });
 * const { value } = await agent.token("https://mcp.example/mcp");
 */
export class AgentClient {
  readonly #options: AgentClientOptions;
  readonly #ways: Ways;
  readonly #clock: Clock;
  readonly #keeper: GrantKeeper;

  constructor(options: AgentClientOptions) {
    const { store, login, timeout = DEFAULT_TIMEOUT_MS, onProgress } = options;
    this.#options = options;
    this.#ways = new Ways(options);
    this.#clock = options.clock ?? systemClock;
    this.#keeper = new GrantKeeper({
      store,
      httpFor: (grant) => this.#ways.to(grant.server, grant).http,
      clock: this.#clock,
      timeout,
      method: login,
      loginContext: (key, before) => this.#context(key, before),
      onProgress,
    });
  }

  /**
   * A token for an MCP server that is good for `minTtl` more seconds.
   *
   * @throws `AgentAuthError` class `auth` where a person is needed and there is none, `refused` where a peer broke a
   * rule, `unavailable` where one did not answer
   */
  async token(mcpUrl: string, options: TokenOptions = {}): Promise<AccessToken> {
    return new AccessToken(await this.#keeper.get(this.#key(mcpUrl), options));
  }

  /**
   * `fetch` with the token of the server it goes to. Refreshes before the token ends; on 401 refreshes once and asks once
   * more; on 403 `insufficient_scope` signs in once for the scopes that are missing.
   *
   * The token goes to the server that it is for and is never sent along to another origin.
   */
  fetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    return fetchWithToken(
      {
        fetchFor: (grant) => this.#ways.to(grant.server, grant).fetch,
        grant: (url, options) => this.#keeper.toSend(this.#key(url), options),
        renew: (grant, signal) => this.#keeper.renewRefused(grant, signal),
        replace: (refused, request) => this.#keeper.signIn(refused, { ...request, refused }),
        mayLogin: this.#options.login !== undefined,
      },
      input,
      init,
    );
  }

  /** Signs a person in, whatever is stored. */
  async login(mcpUrl: string, options: Pick<TokenOptions, "scope" | "signal"> = {}): Promise<AccessToken> {
    const key = this.#key(mcpUrl);
    const seen = await this.#options.store.read(key);
    return new AccessToken(await this.#keeper.signIn(key, { ...options, seen, explicit: true }));
  }

  /**
   * The first half of a login in two steps: everything up to the address that a person has to open. What is given back
   * holds secrets and must be kept as privately as a token until {@link AgentClient.finishLogin}.
   *
   * @param redirectUri where the callback will be received; as a function it is told the address that the client is
   * registered with, if it is, for servers that take no other
   */
  async beginLogin(
    mcpUrl: string,
    redirectUri: string | ((preferred: string | undefined) => string | Promise<string>),
    options: Pick<TokenOptions, "scope" | "signal"> = {},
  ): Promise<PreparedLogin> {
    const key = this.#key(mcpUrl);
    const context = this.#context(key, await this.#options.store.read(key));
    const signal = options.signal ?? new AbortController().signal;
    const found = await discover(context, mcpUrl, undefined, signal);
    const scope = scopeFor(found, { scope: options.scope });
    const resource = context.resource ?? found.resource?.resource ?? found.server;
    const preferred = await knownRedirect(this.#options.store, found.issuer.issuer);
    const address = typeof redirectUri === "string" ? redirectUri : await redirectUri(preferred);
    return prepareLogin(context, { found, scope, resource, redirectUri: address, signal });
  }

  /** The second half: waits for the callback in a session that is open at the redirect address, and keeps the grant. */
  async finishLogin(
    login: PreparedLogin,
    session: LoginSession,
    options: Pick<TokenOptions, "signal"> = {},
  ): Promise<AccessToken> {
    const { server, overrides, issuer } = login;
    const endpoints = { token: issuer.tokenEndpoint };
    const context = this.#context(this.#key(server), { overrides, issuer: issuer.issuer, endpoints });
    const signal = options.signal ?? new AbortController().signal;
    try {
      return new AccessToken(await finishInSession(context, login, session, signal));
    } catch (error) {
      if (isAgentAuthError(error)) await session.close({ ok: false, error });
      throw error;
    }
  }

  /**
   * Forgets the login at a server, then tells the issuer, for at most five seconds.
   *
   * @returns whether there was a login, and what the issuer said
   */
  async logout(
    mcpUrl: string,
    options: Pick<TokenOptions, "signal"> = {},
  ): Promise<{ removed: boolean } & RemoteLogout> {
    const grant = await this.#keeper.find(this.#key(mcpUrl));
    if (!grant) return { removed: false, told: undefined };
    await this.#options.store.remove(grant);
    const call = follow(
      options.signal,
      5000,
      () => new AgentAuthError("timeout", "no answer in 5 s", { class: "unavailable" }),
    );
    try {
      return { removed: true, ...(await endRemotely(grant, this.#ways.to(grant.server, grant).http, call.signal)) };
    } finally {
      call.release();
    }
  }

  /** What is stored, of this profile unless `all` is set: nothing secret. */
  async status(mcpUrl?: string, options: { all?: boolean } = {}): Promise<LoginStatus[]> {
    const { store, loginHint } = this.#options;
    const key = mcpUrl === undefined ? undefined : this.#key(mcpUrl);
    // One that cannot be used is an error where it is the one that is asked for.
    if (key) await store.read(key);
    const grants = await store.list();
    return grants
      .filter(({ profile }) => options.all || profile === this.#profile())
      .filter(({ server, account }) => !key || (server === key.server && (account === loginHint || !loginHint)))
      .map((grant) => describeLogin(grant, this.#clock.epoch(), store.location));
  }

  /** Goes through discovery and tells every request, also when it fails. Signs nobody in, registers nothing. */
  async discover(mcpUrl: string, options: Pick<TokenOptions, "signal"> = {}): Promise<DiscoveryReport> {
    const trace: TraceEntry[] = [];
    try {
      const key = this.#key(mcpUrl);
      // A store that cannot be read is no reason to show nothing.
      const remembered = await this.#options.store.read(key).catch(() => undefined);
      const context = this.#context(key, remembered, (entry) => trace.push(entry));
      return { found: await discover(context, mcpUrl, undefined, options.signal), trace, error: undefined };
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      return { found: undefined, trace, error };
    }
  }

  /** What the issuer says of the stored token (RFC 7662). */
  async introspect(mcpUrl: string, options: Pick<TokenOptions, "signal"> = {}): Promise<Introspection> {
    const key = this.#key(mcpUrl);
    const grant = await this.#keeper.find(key);
    if (!grant) throw loginRequired(key, "nobody is signed in");
    return introspect(grant, this.#ways.to(grant.server, grant).http, options.signal);
  }

  #context(
    { server, account }: GrantKey,
    remembered: Remembered | undefined,
    trace: (entry: TraceEntry) => void = this.#options.onTrace ?? (() => {}),
  ): LoginContext {
    const { store, timeout, clientName, client, clientMetadataUrl, resource, flow, loginHint } = this.#options;
    return {
      ...this.#ways.to(server, remembered),
      remembered,
      timeout: timeout ?? DEFAULT_TIMEOUT_MS,
      overrides: this.#options,
      trace,
      store,
      clock: this.#clock,
      profile: this.#profile(),
      clientName: clientName ?? "agentauth",
      preRegistered: client,
      clientMetadataUrl,
      resource,
      flow: flow ?? "browser",
      loginHint: account ?? loginHint,
    };
  }

  #profile(): string {
    return this.#options.profile ?? "default";
  }

  #key(mcpUrl: string): GrantKey {
    return { profile: this.#profile(), server: parseMcpUrl(mcpUrl).resource, account: this.#options.loginHint };
  }
}
