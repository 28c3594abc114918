import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { Lru } from "../http/lru.js";
import { userAgent } from "../http/version.js";
import { quote, type Secret } from "../redact.js";
import type { ExchangeCache, IdpTokens } from "./agent-derived.js";
import { type AgentClientOptions, AgentContext, expectedIssuer } from "./agent-options.js";
import { isLoginNotRequired, requiredUnlessAbsent } from "./discovery/challenge-request.js";
import { requiresLogin } from "./discovery/discovery.js";
import type { GrantOptions, TokenOptions } from "./grant/grant-requirements.js";
import type { FetchContext } from "./grant/token-fetch.js";
import { TokenManager } from "./login/token-manager.js";
import type { MachineTokenManager } from "./machine/machine-token-manager.js";
import { type Grant, type GrantKey, isFresh } from "./model/grant.js";
import { isMachineAccount, parseMachineAccount } from "./model/machine-grant.js";
import type { ExchangedToken, ExchangeRequest } from "./token/exchange.js";
import type { RemoteLogout } from "./token/revocation.js";

/**
 * The grants of an agent client: those of a machine where its options name a machine grant, else those of its users, who
 * are distinguished by the profile in each key.
 */
export class AgentTokens {
  readonly ofUser: TokenManager;
  readonly context: AgentContext;
  #exchanges: ExchangeCache | undefined;
  #ofMachine: MachineTokenManager | undefined;
  #ofIdp: IdpTokens | undefined;
  /** Those that were found to require no login. */
  readonly #openServers = new Set<string>();
  readonly #machines = new Map<string, AgentTokens>();

  constructor(context: AgentContext) {
    this.context = context;
    const { options } = context;
    const { client, resource, dpop = "auto" } = options;
    this.ofUser = new TokenManager({
      ...context.managerContext(),
      privateKey: client?.privateKey,
      requirements: { dpop, resource, expectedIssuer: expectedIssuer(options), preRegistered: client },
      acceptTokenType: options.policy?.acceptTokenType,
    });
  }

  get isOfMachine(): boolean {
    return this.context.options.grant !== undefined;
  }

  /** Those of the machine grant of the options. Loaded by the clients that have one: a browser has none. */
  async ofMachine(): Promise<MachineTokenManager | undefined> {
    const { client = { clientId: "" }, grant, storedGrants } = this.context.options;
    if (grant === undefined) return undefined;
    const { MachineTokenManager } = await import("./agent-derived.js");
    const own = { grant, client, recipe: storedGrants?.recipe };
    this.#ofMachine ??= new MachineTokenManager({ ...this.context.managerContext(), ...own });
    return this.#ofMachine;
  }

  /** Those that come from the login at an identity provider, which few clients have. */
  async ofIdp(): Promise<IdpTokens> {
    const { IdpTokens } = await import("./agent-derived.js");
    this.#ofIdp ??= new IdpTokens(this.context);
    return this.#ofIdp;
  }

  /**
   * The stored grant: that of the user's login at the server comes before a machine grant, and that before a login at an
   * identity provider.
   */
  async find(key: GrantKey): Promise<Grant | undefined> {
    if (this.isOfMachine) return (await this.ofMachine())?.find(key);
    const own = (await this.ofUser.find(key)) ?? (await this.findStored(key));
    return own ?? (this.#mayUseIdp(key) ? (await this.ofIdp()).find(key) : undefined);
  }

  /**
   * The one machine grant that is stored for a server: with the way to get its proof, or as long as its token is valid.
   *
   * @param isUsed whether its token is to be used: then one without that way counts only where no user can log in instead
   * @throws `AgentAuthError` `usage` if there are several
   */
  async findStored({ profile, server, account }: GrantKey, isUsed = true): Promise<Grant | undefined> {
    const { storedGrants, store, login } = this.context.options;
    if (storedGrants === undefined || (account !== undefined && !isMachineAccount(account))) return undefined;
    const now = this.context.clock.epoch();
    const stored = (await store.list({ profile, server })).filter(
      (grant) =>
        parseMachineAccount(grant.account) !== undefined &&
        (account === undefined || grant.account === account) &&
        (!isUsed ||
          grant.recipe !== undefined ||
          (login === undefined && !grant.retired && isFresh(grant, now, undefined))),
    );
    const accounts = stored.map((grant) => quote(grant.account));
    if (accounts.length < 2) return stored[0];
    const message = `${quote(server)} has several machine grants: ${accounts.join(", ")}`;
    const remedy = { action: "configure", option: "account" } as const;
    throw new AgentAuthError("usage", message, { class: "usage", hint: "name the account with loginHint", remedy });
  }

  /** The client of a stored machine grant, with what its recipe says. */
  async clientOf(grant: Grant): Promise<AgentTokens> {
    const { storedGrants, ...options } = this.context.options;
    const recipe = grant.recipe?.reveal();
    if (recipe === undefined || storedGrants === undefined || options.grant !== undefined) return this;
    const name = JSON.stringify([recipe, grant.issuer, grant.client.clientId, grant.client.clientSecret?.reveal()]);
    const known = this.#machines.get(name);
    if (known !== undefined) return known;
    const read = await storedGrants.read(recipe, grant.client);
    const own = { ...options, ...read, issuer: grant.issuer, idp: undefined, loginHint: undefined };
    const machineOptions = { ...own, storedGrants: { ...storedGrants, recipe } };
    const machine = new AgentTokens(new AgentContext(machineOptions, this.context.profile, this.context));
    this.#machines.set(name, machine);
    return machine;
  }

  /** The context of the client that revokes a grant; without its recipe, that of a machine grant has its secret at least. */
  async revokingContext(grant: Grant, own: AgentContext): Promise<AgentContext> {
    if (grant.recipe === undefined) return own;
    return this.clientOf(grant).then(
      ({ context }) => context,
      () => own,
    );
  }

  async get(key: GrantKey, options: TokenOptions): Promise<Grant> {
    const { machine, own } = await this.#choose(key, options);
    return machine ? machine.get(key, options) : this.ofUser.get(key, options, own);
  }

  /** Who gets tokens for a server without a login there, else the user's own login as it was found. */
  async #choose(key: GrantKey, options: GrantOptions): Promise<{ machine?: MachineTokenManager; own?: Grant }> {
    const ofOptions = this.isOfMachine && (await this.ofMachine());
    if (ofOptions) return { machine: ofOptions };
    const { storedGrants } = this.context.options;
    if (storedGrants === undefined && !this.#mayUseIdp(key)) return {};
    const own = await this.ofUser.find(key);
    if (own && !own.retired && own.recipe === undefined) return { own };
    const stored = await this.findStored(key);
    const ofStored = stored && (await (await this.clientOf(stored)).ofMachine());
    if (ofStored) return { machine: ofStored };
    if (stored && options.forceRefresh !== true) return { own: stored };
    if (!this.#mayUseIdp(key)) return own ? { own } : {};
    const machine = await (await this.ofIdp()).managerFor(key, options);
    return { ...(machine && { machine }), ...(own && { own }) };
  }

  #mayUseIdp({ account }: GrantKey): boolean {
    return this.context.options.idp !== undefined && account === undefined;
  }

  /** Whether requests to a server need a login; one with a stored login does. */
  async requiresLogin(key: GrantKey, mcpUrl: string, { signal }: Pick<TokenOptions, "signal">): Promise<boolean> {
    if ((await this.find(key)) !== undefined) return true;
    return requiresLogin(this.context.loginContext(key, undefined), mcpUrl, signal);
  }

  /** Exchanges the token of a server, or one from elsewhere, by the client of the login there or of the options. */
  async exchange(key: GrantKey, options: ExchangeOptions): Promise<ExchangedToken> {
    const { context } = this;
    const { subjectToken, login, signal, ...rest } = options;
    const grant = await (subjectToken === undefined ? this.get(key, { login, signal }) : this.find(key));
    if (grant && subjectToken !== undefined) context.requireIssuer(grant.issuer, grant.server);
    const { callForClient, ExchangeCache } = await import("./agent-derived.js");
    this.#exchanges ??= new ExchangeCache();
    const call = grant
      ? (await this.clientOf(grant)).context.callOf(grant)
      : await callForClient(context.loginContext(key, undefined), key.server, signal);
    const request = { ...rest, subjectToken: subjectToken ?? grant?.tokens.accessToken ?? "" };
    return this.#exchanges.get(key.server, call, request, { clock: context.clock, signal });
  }

  /** The grant for a request; undefined if its server requires no login. */
  async #grantFor(url: string, key: GrantKey, options: GrantOptions): Promise<Grant | undefined> {
    const { server } = key;
    if (this.#openServers.has(server)) {
      // Another process may have logged in since.
      if ((await this.find(key)) === undefined) return undefined;
      this.#openServers.delete(server);
    }
    try {
      const { machine, own } = await this.#choose(key, options);
      return await (machine ? machine.get(key, options) : this.ofUser.toSend(key, options, own));
    } catch (error) {
      // With a status it is the issuer's own `login_required` (OpenID Connect Core section 3.1.2.6).
      const isUnknown = isAgentAuthError(error, "login_required") && error.status === undefined;
      const mayBeOpen = isUnknown && options.challenge === undefined;
      const isOpen =
        isLoginNotRequired(error) ||
        (mayBeOpen && !(await this.requiresLogin(key, url, options).catch(requiredUnlessAbsent)));
      if (!isOpen) throw error;
      this.#openServers.add(server);
      return undefined;
    }
  }

  /** What a `fetch` with tokens needs. @param keyOf the key of the user's login at a server */
  fetchContext(keyOf: (url: string) => GrantKey): FetchContext {
    const { ofUser, isOfMachine } = this;
    const { connections, cookies, nonces, tenant, options: own } = this.context;
    return {
      // A login of another user begins without the cookies of the one before.
      cookiesFor: (url, grant) => {
        const { profile, account } = grant ?? keyOf(url);
        return cookies.get(new URL(url).origin, tenant, profile, account, grant?.signedInAt);
      },
      userAgent: userAgent(own.userAgent),
      fetchFor: (url, grant) => connections.get(grant?.server ?? url, grant).fetch,
      grant: (url, options) => this.#grantFor(url, keyOf(url), options),
      onRejected: (url) => this.#openServers.delete(keyOf(url).server),
      refresh: (grant, signal) => ofUser.refreshRefused(grant, signal),
      replace: async (refused, request) => {
        const isMachine = isOfMachine || isMachineAccount(refused.account);
        const { machine } = isMachine ? await this.#choose({ ...refused, account: undefined }, request) : {};
        return machine?.replace(refused, request) ?? ofUser.login(refused, { ...request, refused });
      },
      nonces,
      // A machine requests a new token where the user would log in.
      mayLogin: ({ account }, login) => isMachineAccount(account) || (login !== false && own.login !== undefined),
      followsRefusal: (grant) => !isMachineAccount(grant.account) && ofUser.followsRefusal(grant),
    };
  }
}

/** Options of `agent.exchange`: a request of RFC 8693 whose subject token defaults to the server's own access token. */
export interface ExchangeOptions extends Omit<ExchangeRequest, "subjectToken"> {
  /** Default: the access token of the MCP server. It is never stored. */
  subjectToken?: string | Secret | undefined;
  /** Whether to log in if the server's own token needs it. Default: true if the client has a `login` method. */
  login?: boolean | undefined;
  /** Aborts the exchange. */
  signal?: AbortSignal | undefined;
}

/** One of the many users of an agent client. */
export interface AgentUser {
  /** The tenant of the store, which must have tenants. Default: that of the store itself. */
  tenant?: string | undefined;
  /**
   * The user that this program has authenticated. It is the profile that the user's logins are stored under, and is sent to no
   * issuer and no server.
   */
  user: string;
}

const MAX_TENANTS = 1000;

/** What the users of an agent client share: all of them what knows nothing of a login, those of a tenant its logins too. */
export class AgentUsers {
  readonly #own: AgentTokens;
  readonly #tenants = new Lru<AgentTokens>(MAX_TENANTS);

  constructor(options: AgentClientOptions) {
    this.#own = new AgentTokens(new AgentContext(options));
  }

  /** The client's own logins: those of its profile. */
  own(): AgentUserView {
    return new AgentUserView(this, this.#own, this.#own.context);
  }

  /** @throws `TypeError` for a user, or a client, that cannot be distinguished from others */
  view({ tenant, user }: AgentUser): AgentUserView {
    const { grant, loginHint } = this.#own.context.options;
    if (grant !== undefined) throw new TypeError("a machine grant has no users: leave out the option grant");
    if (loginHint !== undefined) throw new TypeError("loginHint names the account of one user: leave it out");
    if (typeof user !== "string" || user === "") throw new TypeError("user must be a text of at least one character");
    const tokens = this.tokensOf(tenant);
    const { options, tenant: ofStore } = tokens.context;
    return new AgentUserView(this, tokens, new AgentContext(options, user, this.#own.context, ofStore));
  }

  /**
   * What the users of a tenant share; undefined: of the store itself.
   *
   * @throws `TypeError` if the store has no tenants
   */
  tokensOf(tenant: string | undefined): AgentTokens {
    if (tenant === undefined) return this.#own;
    const known = this.#tenants.get(tenant);
    if (known !== undefined) return known;
    const { options, profile } = this.#own.context;
    if (options.store.for === undefined)
      throw new TypeError("this store has no tenants: leave out tenant, or use grantStore");
    const store = options.store.for({ tenant });
    const tokens = new AgentTokens(new AgentContext({ ...options, store }, profile, this.#own.context, tenant));
    this.#tenants.set(tenant, tokens);
    return tokens;
  }
}

export class AgentUserView {
  readonly users: AgentUsers;
  readonly tokens: AgentTokens;
  readonly context: AgentContext;

  constructor(users: AgentUsers, tokens: AgentTokens, context: AgentContext) {
    this.users = users;
    this.tokens = tokens;
    this.context = context;
  }

  /** Whether the client is that of one user, not the one that all users come from. */
  get isOfUser(): boolean {
    return this.context !== this.tokens.context;
  }
}

/** A login that {@link AgentClient.logoutIdp} ended: that at the identity provider, or one that came from it. */
export interface IdpLogout extends RemoteLogout {
  /** The issuer of the provider, or the MCP server. */
  server: string;
  /** The account that it was stored under. */
  account: string | null;
  /** It is no longer stored. */
  removed: boolean;
}

/** Options of {@link AgentClient.disconnect}. */
export interface DisconnectOptions extends Pick<TokenOptions, "signal"> {
  /**
   * The account of the login: null for the one without an account, as `status` lists it. Default: that of the login that
   * {@link AgentClient.token} would use.
   */
  account?: string | null | undefined;
}

/** Options of {@link AgentClient.disconnectAll}: without a tenant and a profile, the client's own profile. */
export interface DisconnectAllOptions extends Pick<TokenOptions, "signal">, Partial<Pick<AgentUser, "tenant">> {
  /** The profile whose logins end. Default: every one of the tenant. */
  profile?: string | undefined;
}
