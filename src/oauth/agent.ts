import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { type Clock, follow, systemClock } from "../http/deadline.js";
import { AccessToken } from "./access-token.js";
import { fetchWithToken } from "./agent-fetch.js";
import type { BearerChallenge } from "./challenge.js";
import { type Discovered, discover, type Overrides } from "./discovery.js";
import { endRemotely, type RemoteLogout } from "./end-session.js";
import { Flights } from "./flights.js";
import { coversScope, type Grant, isFresh } from "./grant.js";
import type { GrantKey, GrantStore } from "./grant-store.js";
import { OAuthHttp, type OAuthHttpOptions, type TraceEntry } from "./http.js";
import { type Introspection, introspect } from "./introspection.js";
import type { LoginMethod, LoginSession } from "./login.js";
import type { LoginContext } from "./login-context.js";
import { finishInSession, knownRedirect, loginWith, type PreparedLogin, prepareLogin, scopeFor } from "./login-flow.js";
import { loginRequired, refreshGrant } from "./refresh.js";
import type { PreRegisteredClient } from "./registration.js";
import { parseMcpUrl } from "./resource.js";

/** How an {@link AgentClient} works. */
export interface AgentClientOptions extends OAuthHttpOptions, Overrides {
  /** Where grants are kept. */
  store: GrantStore;
  /** How a person signs in; without it nobody is ever asked, and a needed login is an error. */
  login?: LoginMethod | undefined;
  /** What the client is called where a person gives consent. Default "agentauth". */
  clientName?: string | undefined;
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
}

/** What a token must be good for. */
export interface TokenOptions {
  /** Scopes that it must have, separated by blanks. */
  scope?: string | undefined;
  /** Seconds that it must still live. Default 60, at most half of its life. */
  minTtl?: number | undefined;
  /** Gets a new token even if the one at hand is good. */
  forceRefresh?: boolean | undefined;
  /** Whether a person may be asked to sign in. Default: whether the client has a way to. */
  login?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

/** A login as `status` shows it: nothing in it is secret. */
export interface LoginStatus {
  profile: string;
  server: string;
  resource: string;
  issuer: string;
  client_id: string;
  scope: string | null;
  expires_at: string | null;
  state: "valid" | "expired" | "over";
  refreshable: boolean;
  reason: string | null;
  stored_in: string;
}

/** Everything that discovery did and found. */
export interface DiscoveryReport {
  found: Discovered | undefined;
  trace: readonly TraceEntry[];
  error: AgentAuthError | undefined;
}

// Failures of the issuer or of what stands before it: none of them ends a token that still lives.
const PEER_FAILURES: ReadonlySet<string> = new Set(["unavailable", "remote", "refused", "auth"]);

interface SignInRequest {
  scope?: string | undefined;
  previousScope?: string | undefined;
  challenge?: BearerChallenge;
  /** A grant that its server did not take; one that was signed in since does as well. */
  refused?: Grant;
  signal?: AbortSignal | undefined;
}

/**
 * Gets bearer tokens for MCP servers: from the store, else by refresh, else by signing a person in.
 *
 * @example
 * const agent = new AgentClient({ store: memoryStore(), login });
 * const { value } = await agent.token("https://mcp.example/mcp");
 */
export class AgentClient {
  readonly #options: AgentClientOptions;
  readonly #http: OAuthHttp;
  readonly #clock: Clock;
  readonly #flights = new Flights<Grant>();
  readonly #unsaved = new Map<string, Grant>();
  // Servers whose token is being replaced by a sign-in, with the generation that they refused.
  readonly #replacing = new Map<string, number>();

  constructor(options: AgentClientOptions) {
    this.#options = options;
    this.#http = new OAuthHttp(options);
    this.#clock = options.clock ?? systemClock;
  }

  /**
   * A token for an MCP server that is good for `minTtl` more seconds.
   *
   * @throws `AgentAuthError` class `auth` where a person is needed and there is none, `refused` where a peer broke a
   * rule, `unavailable` where one did not answer
   */
  async token(mcpUrl: string, options: TokenOptions = {}): Promise<AccessToken> {
    return new AccessToken(await this.#grant(mcpUrl, options));
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
        fetch: this.#options.fetch ?? globalThis.fetch,
        grant: (url, options) => this.#grantToSend(url, options),
        renew: (grant, signal) => this.#renew(grant, signal),
        replace: (url, refused, request) => this.#signIn(url, { ...request, refused }),
        mayLogin: this.#options.login !== undefined,
      },
      input,
      init,
    );
  }

  /** Signs a person in, whatever is stored. */
  async login(mcpUrl: string, options: Pick<TokenOptions, "scope" | "signal"> = {}): Promise<AccessToken> {
    return new AccessToken(await this.#signIn(mcpUrl, options));
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
    const context = this.#context(this.#options.onTrace ?? (() => {}));
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
    const context = this.#context(this.#options.onTrace ?? (() => {}));
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
    const key = this.#key(mcpUrl);
    const grant = await this.#options.store.read(key);
    if (!grant) return { removed: false, told: undefined };
    await this.#options.store.remove(key);
    const call = follow(
      options.signal,
      5000,
      () => new AgentAuthError("timeout", "no answer in 5 s", { class: "unavailable" }),
    );
    try {
      return { removed: true, ...(await endRemotely(grant, this.#http, call.signal)) };
    } finally {
      call.release();
    }
  }

  /** What is stored, of this profile unless `all` is set: nothing secret. */
  async status(mcpUrl?: string, options: { all?: boolean } = {}): Promise<LoginStatus[]> {
    const { store } = this.#options;
    if (mcpUrl !== undefined) {
      const grant = await store.read(this.#key(mcpUrl));
      return grant ? [this.#describe(grant)] : [];
    }
    const grants = await store.list();
    return grants
      .filter(({ profile }) => options.all || profile === this.#profile())
      .map((grant) => this.#describe(grant));
  }

  /** Goes through discovery and tells every request, also when it fails. Signs nobody in, registers nothing. */
  async discover(mcpUrl: string, options: Pick<TokenOptions, "signal"> = {}): Promise<DiscoveryReport> {
    const trace: TraceEntry[] = [];
    try {
      const context = this.#context((entry) => trace.push(entry));
      return { found: await discover(context, mcpUrl, undefined, options.signal), trace, error: undefined };
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      return { found: undefined, trace, error };
    }
  }

  /** What the issuer says of the stored token (RFC 7662). */
  async introspect(mcpUrl: string, options: Pick<TokenOptions, "signal"> = {}): Promise<Introspection> {
    const key = this.#key(mcpUrl);
    const grant = await this.#options.store.read(key);
    if (!grant) throw loginRequired(key, "nobody is signed in");
    return introspect(grant, this.#http, options.signal);
  }

  async #grant(mcpUrl: string, options: TokenOptions): Promise<Grant> {
    const key = this.#key(mcpUrl);
    const now = this.#clock.epoch();
    const wanted = options.scope?.split(" ").filter(Boolean);
    const grant = await this.#options.store.read(key);
    if (grant && !grant.retired && coversScope(grant, wanted)) {
      if (!options.forceRefresh && isFresh(grant, now, options.minTtl ?? 60)) return grant;
      if (grant.tokens.refreshToken) {
        const renewed = await this.#renewOrUse(grant, options);
        if (renewed && coversScope(renewed, wanted)) return renewed;
      }
    }
    const reason = whyLogin(grant, wanted);
    if (options.login === false || this.#options.login === undefined) throw loginRequired(key, reason);
    return this.#signIn(mcpUrl, { ...options, previousScope: grant?.requestedScope });
  }

  /** Renews; where the issuer gives none, a token that still lives is better than nothing. Undefined: sign in. */
  async #renewOrUse(grant: Grant, options: TokenOptions): Promise<Grant | undefined> {
    try {
      return await this.#renew(grant, options.signal);
    } catch (error) {
      if (!isAgentAuthError(error)) throw error;
      const { expiresAt } = grant.tokens;
      const lives = expiresAt !== undefined && expiresAt > this.#clock.epoch();
      const isOver = error.code === "login_required";
      if (!isOver && PEER_FAILURES.has(error.class) && lives && !options.forceRefresh) return grant;
      if (!isOver || options.login === false || this.#options.login === undefined) throw error;
      return undefined;
    }
  }

  #renew(grant: Grant, signal: AbortSignal | undefined): Promise<Grant> {
    const context = { store: this.#options.store, http: this.#http, clock: this.#clock, unsaved: this.#unsaved };
    return this.#flights.join(`refresh ${grant.server}`, (within) => refreshGrant(context, grant, within), signal);
  }

  /** A token that its server has refused is not sent again while a person signs in for a new one. */
  async #grantToSend(mcpUrl: string, options: { signal?: AbortSignal | undefined }): Promise<Grant> {
    const grant = await this.#grant(mcpUrl, options);
    const isRefused = this.#replacing.get(grant.server) === grant.generation;
    return isRefused ? this.#signIn(mcpUrl, { ...options, refused: grant }) : grant;
  }

  async #signIn(mcpUrl: string, request: SignInRequest): Promise<Grant> {
    const { login: method, store } = this.#options;
    const key = this.#key(mcpUrl);
    if (method === undefined) throw loginRequired(key, "nobody is signed in");
    const { scope, previousScope, challenge, refused } = request;
    const work = async (signal: AbortSignal) => {
      // A store that cannot be read is found out before a person is troubled.
      const stored = await store.read(key);
      const isNewer = refused && stored && stored.generation !== refused.generation && !stored.retired;
      if (isNewer && coversScope(stored, scope?.split(" "))) return stored;
      if (refused && scope === undefined) this.#replacing.set(key.server, refused.generation);
      const context = this.#context(this.#options.onTrace ?? (() => {}));
      const login = loginWith(context, { mcpUrl, method, scope, previousScope, challenge, signal });
      login.catch(() => this.#http.forgetDocuments());
      return login.finally(() => this.#replacing.delete(key.server));
    };
    return this.#flights.join(`login ${key.server} ${request.scope ?? ""}`, work, request.signal);
  }

  #context(trace: (entry: TraceEntry) => void): LoginContext {
    const { store, timeout, clientName, client, clientMetadataUrl, resource, flow, loginHint, fetch } = this.#options;
    return {
      http: this.#http,
      fetch: fetch ?? globalThis.fetch,
      timeout: timeout ?? 15_000,
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
      loginHint,
    };
  }

  #profile(): string {
    return this.#options.profile ?? "default";
  }

  #key(mcpUrl: string): GrantKey {
    return { profile: this.#profile(), server: parseMcpUrl(mcpUrl).resource };
  }

  #describe(grant: Grant): LoginStatus {
    const { expiresAt, scope, refreshToken } = grant.tokens;
    const expired = expiresAt !== undefined && expiresAt <= this.#clock.epoch();
    return {
      profile: grant.profile,
      server: grant.server,
      resource: grant.resource,
      issuer: grant.issuer,
      client_id: grant.client.clientId,
      scope: scope ?? null,
      expires_at: expiresAt === undefined ? null : new Date(expiresAt).toISOString(),
      state: grant.retired ? "over" : expired ? "expired" : "valid",
      refreshable: refreshToken !== undefined && !grant.retired,
      reason: grant.retired?.reason ?? null,
      stored_in: this.#options.store.location,
    };
  }
}

function whyLogin(grant: Grant | undefined, wanted: readonly string[] | undefined): string {
  if (!grant) return "nobody is signed in";
  if (grant.retired) return grant.retired.reason;
  if (!coversScope(grant, wanted)) return `the token lacks the scope ${wanted?.join(" ")}`;
  return "the token has ended, and there is no refresh token";
}
