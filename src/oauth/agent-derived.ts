// What most users in a browser have none of, loaded where it is used: tokens that come from no login of a user at the server
// (those of a machine, those of a login at an identity provider, and exchanged ones), the logins of a web app, those that are
// handed over, and introspection.
import { AgentAuthError, isAgentAuthError, usageError, withHint } from "../errors.js";
import type { Clock } from "../http/deadline.js";
import { Lru } from "../http/lru.js";
import { SingleFlight } from "../http/single-flight.js";
import { quote, Secret } from "../redact.js";
import type { Remedy } from "../remedy.js";
import { AgentContext, type ClientCall, type IdpOptions } from "./agent-options.js";
import { preRegisteredClient } from "./client/client-auth.js";
import { fingerprintCredential, holdToIssuer } from "./client/issuer-binding.js";
import { isLoginNotRequired } from "./discovery/challenge-request.js";
import { discoverIssuer } from "./discovery/discovery.js";
import { acceptedTypeFor } from "./discovery/overrides.js";
import { type GrantOptions, type LoginOptions, loginRequired } from "./grant/grant-requirements.js";
import type { LoginContext, PreparedDeviceLogin, PreparedLogin } from "./login/authorization.js";
import { TokenManager } from "./login/token-manager.js";
import { fingerprintSource } from "./machine/grant-strategies.js";
import { MachineTokenManager } from "./machine/machine-token-manager.js";
import type { ClientRecord, Grant, GrantKey } from "./model/grant.js";
import { hashValues } from "./model/hash.js";
import { buildMachineAccount, IDP_ACCOUNT, type IdJagSubject, type MachineGrantOf } from "./model/machine-grant.js";
import { type Discovered, type IssuerMetadata, isSameIssuer, listsExchange, takesIdJag } from "./model/metadata.js";
import { parseMcpUrl } from "./model/resource.js";
import { unionScopes } from "./model/scope.js";
import { type ExchangedToken, type ExchangeRequest, exchangeTokens } from "./token/exchange.js";
import { isCurrent, verifyIdToken } from "./token/token.js";

/** The users, each at one server, whose managers are kept. */
const MAX_USERS = 1000;

type ServerClient = Pick<ConstructorParameters<typeof MachineTokenManager>[0], "client" | "isDocument">;

/**
 * The tokens of servers that come from the login at the company's identity provider (enterprise-managed authorization):
 * machine grants with its id token.
 */
export class IdpTokens {
  readonly #agent: AgentContext;
  readonly login: IdpLogin;
  /**
   * The manager of each user and server, with the login that its tokens come from: a later call reads that login alone.
   */
  readonly #servers = new Lru<{ login: Grant; manager: MachineTokenManager }>(MAX_USERS);

  constructor(agent: AgentContext) {
    this.#agent = agent;
    this.login = new IdpLogin(agent);
  }

  /**
   * The manager of the tokens of a server that come from the login; undefined if its issuer takes no assertions, or if no
   * login is stored and none is configured.
   *
   * @throws `AgentAuthError` `login_required` for a provider that the options name, and as discovery
   */
  async managerFor(
    key: GrantKey,
    { challenge, signal, login: mayLogIn }: GrantOptions,
  ): Promise<MachineTokenManager | undefined> {
    const { idp, client: preRegistered, store } = this.#agent.options;
    const name = JSON.stringify([key.profile, key.server]);
    const latest = this.#servers.get(name);
    if (latest && (await store.read(latest.login))?.signedInAt === latest.login.signedInAt) return latest.manager;
    const login = await this.login.stored(key.profile);
    if (login === undefined && typeof idp !== "object") return undefined;
    const known = login && (await this.#derived(login, key));
    const found = known ? undefined : await this.#announcing(key, challenge, signal);
    if (known === undefined && found === undefined) return undefined;
    const client = preRegistered === undefined ? this.#clientOf(known, found) : { client: preRegistered };
    if (client === undefined) {
      const error = noKnownClientError(key.server, found?.issuer.issuer);
      const { login: method, onProgress } = this.#agent.options;
      if (mayLogIn === false || method === undefined) throw error;
      onProgress?.({ subject: "login", text: `${error.message}: ${error.hint}` });
      return undefined;
    }
    if (login === undefined) {
      const issuer = typeof idp === "object" ? idp.issuer : "";
      throw loginRequired(idpKey(key.profile, issuer), "not logged in at the identity provider");
    }
    const manager = this.#managerOf(login, client);
    this.#servers.set(name, { login, manager });
    return manager;
  }

  async find(key: GrantKey): Promise<Grant | undefined> {
    const login = await this.login.stored(key.profile);
    return login && this.#derived(login, key);
  }

  /** The login, then the grants of servers that came from it; none if no login is stored. */
  async withDerived(profile: string): Promise<Grant[]> {
    const login = await this.login.stored(profile);
    if (login === undefined) return [];
    const { store } = this.#agent.options;
    const suffix = await this.#suffixOf(login);
    const all = await store.list({ profile });
    return [login, ...all.filter(({ account }) => suffix !== undefined && account?.endsWith(suffix))];
  }

  /** How the accounts of tokens end that came from a login; undefined if it has no id token. */
  async #suffixOf({ endpoints, client, tokens }: Grant): Promise<string | undefined> {
    const { idToken } = tokens;
    if (idToken === undefined) return undefined;
    const fingerprint = await fingerprintSource([endpoints.token, client.clientId], idToken.reveal());
    // As the accounts of machine grants have it.
    return buildMachineAccount("id_jag", "", fingerprint).slice(buildMachineAccount("id_jag", "").length);
  }

  async #derived(login: Grant, { profile, server }: GrantKey): Promise<Grant | undefined> {
    const { store, client } = this.#agent.options;
    const suffix = await this.#suffixOf(login);
    const all = suffix === undefined ? [] : await store.list({ profile, server });
    const clientId = client?.clientId;
    return all.find(
      (grant) =>
        grant.account?.endsWith(suffix ?? "") && (clientId === undefined || grant.client.clientId === clientId),
    );
  }

  /** What discovery finds, if the issuer of the server takes assertions. */
  async #announcing(key: GrantKey, challenge: GrantOptions["challenge"], signal: AbortSignal | undefined) {
    try {
      const found = await discoverIssuer(this.#agent.loginContext(key, undefined), key.server, challenge, signal);
      return takesIdJag(found.issuer) ? found : undefined;
    } catch (error) {
      if (!isLoginNotRequired(error)) throw error;
      return undefined;
    }
  }

  /** The client for an issuer: that of the stored tokens, else the metadata document. */
  #clientOf(known: Grant | undefined, found: Discovered<IssuerMetadata> | undefined): ServerClient | undefined {
    if (known !== undefined) {
      const { clientId, source } = known.client;
      return { client: { clientId, issuer: known.issuer }, isDocument: source === "metadata-document" };
    }
    const { clientMetadataUrl } = this.#agent.options;
    if (found?.issuer.takesClientIdDocuments && clientMetadataUrl !== undefined && clientMetadataUrl !== "none")
      return { client: { clientId: clientMetadataUrl }, isDocument: true };
    return undefined;
  }

  #managerOf(login: Grant, { client, isDocument = false }: ServerClient): MachineTokenManager {
    return new MachineTokenManager({
      ...this.#agent.managerContext(),
      grant: this.#grantOf(login),
      client,
      isDocument,
      loginContext: (key, before) => ({
        ...this.#agent.loginContext(key, before),
        // As for every machine grant: an assertion is sent only to an issuer that the server names too.
        chosenIssuer: undefined,
        sendsCredential: true,
      }),
    });
  }

  #grantOf(login: Grant): MachineGrantOf<"id_jag"> {
    const { issuer, endpoints, client } = login;
    const { clientId, clientSecret, authMethod } = client;
    const latest = async () => {
      const stored = await this.#agent.options.store.read(login);
      if (stored === undefined) throw loginRequired(login, "not logged in at the identity provider");
      return stored;
    };
    return {
      type: "id_jag",
      idp: { issuer, tokenEndpoint: endpoints.token, clientId, clientSecret, authMethod },
      idToken: async () => (await latest()).tokens.idToken?.reveal() ?? "",
      subject: async () => this.login.subjectOf(await latest()),
    };
  }
}

/**
 * The login at the company's identity provider: a grant as every other, under the issuer of the provider, which is refreshed
 * under its lease.
 */
class IdpLogin {
  readonly #agent: AgentContext;
  /** By issuer and client. */
  readonly #providers = new Map<string, TokenManager>();

  constructor(agent: AgentContext) {
    this.#agent = agent;
  }

  async logIn(profile: string, requested: LoginOptions): Promise<Grant> {
    const { context, issuer, options, stored } = await this.prepare(profile, requested);
    const manager = this.#managerAt(context, issuer);
    return manager.login(context.loginKey(issuer), { ...options, seen: stored, explicit: true });
  }

  /** What a login at the provider needs: a context whose target is the provider, its issuer, and options with `openid`. */
  async prepare<Options extends LoginOptions>(profile: string, requested: Options) {
    const { idp } = this.#agent.options;
    const named = typeof idp === "object" ? idp : undefined;
    const stored = await this.stored(profile);
    const issuer = named?.issuer ?? stored?.issuer;
    if (issuer === undefined) throw notNamedError();
    // The tokens of servers come from the only login; without a name it is the one that is stored.
    const other = named && (await this.#logins(profile)).find((login) => !isSameIssuer(login.issuer, issuer));
    if (other !== undefined) throw otherLoginError(other);
    const context = this.#contextAt(profile, { ...named, issuer }, stored?.client);
    const scope = unionScopes(requested.scope ?? named?.scope);
    const options = scope === undefined ? requested : { ...requested, scope: unionScopes("openid", scope) };
    return { context, issuer, options, stored };
  }

  /** The context that finishes a login at the provider, which another process may have begun. */
  contextOf(profile: string, login: PreparedLogin | PreparedDeviceLogin): LoginContext {
    const { idp } = this.#agent.options;
    const { issuer } = typeof idp === "object" ? idp : login.issuer;
    return this.#contextAt(profile, { ...(typeof idp === "object" && idp), issuer }, login.client).contextOf(login);
  }

  /** The login at the provider of the options, or the only one that is stored. */
  async stored(profile: string): Promise<Grant | undefined> {
    const { idp, store } = this.#agent.options;
    if (typeof idp === "object") return store.read(idpKey(profile, idp.issuer));
    const [login, ...others] = await this.#logins(profile);
    if (login !== undefined && others.length > 0) throw ambiguousError([login, ...others]);
    return login;
  }

  async #logins(profile: string): Promise<Grant[]> {
    return (await this.#agent.options.store.list({ profile })).filter(({ account }) => account === IDP_ACCOUNT);
  }

  /** What identifies the user at the provider: a valid id token, if need be a new one, else the refresh token. */
  async subjectOf(login: Grant): Promise<IdJagSubject> {
    const { clock, connections } = this.#agent;
    if (login.retired) throw loginRequired(login, login.retired.reason);
    const isValid = ({ tokens }: Grant) => isCurrent(tokens.idToken?.reveal(), clock.epoch());
    const hasRefreshToken = login.tokens.refreshToken !== undefined;
    if (!isValid(login) && !hasRefreshToken)
      throw loginRequired(login, "the id token has expired, and there is no refresh token");
    const { issuer } = login;
    const provider = () => this.#managerAt(this.#contextAt(login.profile, { issuer }, login.client), issuer);
    const grant = isValid(login) ? login : await provider().renew(login, undefined);
    const { http } = connections.get(grant.server, grant);
    if (isValid(grant)) return { idToken: await verifyIdToken(grant, { http, now: clock.epoch() }) };
    // Providers may leave out the id token of a refresh (OpenID Connect Core section 12.2).
    const { refreshToken } = grant.tokens;
    if (refreshToken === undefined) throw loginRequired(grant, "the identity provider issued no new id token");
    return { refreshToken };
  }

  /** The context of the login itself: that of an agent whose client and issuer are those of the provider. */
  #contextAt(profile: string, { issuer, clientId, clientSecret }: IdpOptions, before: ClientRecord | undefined) {
    const known = before?.source === "pre-registered" && isSameIssuer(before.issuer, issuer) && before;
    const id = clientId ?? (known ? known.clientId : undefined);
    const secret = clientSecret ?? (known && known.clientId === id ? known.clientSecret : undefined);
    const client = id === undefined ? undefined : { clientId: id, clientSecret: secret, issuer };
    const { options } = this.#agent;
    const own = { ...options, client, issuer, dpop: "off", resource: undefined, idp: undefined } as const;
    return new ProviderContext(own, profile, this.#agent);
  }

  #managerAt(context: ProviderContext, issuer: string): TokenManager {
    const { client } = context.options;
    const name = JSON.stringify([issuer, client?.clientId]);
    const before = this.#providers.get(name);
    if (before) return before;
    const requirements = { dpop: "off", expectedIssuer: issuer, preRegistered: client } as const;
    const manager = new TokenManager({ ...context.managerContext(), requirements });
    this.#providers.set(name, manager);
    return manager;
  }
}

/** The context of an agent whose only target is the identity provider. */
class ProviderContext extends AgentContext {
  override loginContext(...parameters: Parameters<AgentContext["loginContext"]>): LoginContext {
    return { ...super.loginContext(...parameters), requiresIdToken: true };
  }

  override loginKey(issuer: string): GrantKey {
    return this.key(issuer);
  }

  override key(issuer: string): GrantKey {
    return { ...super.key(issuer), account: IDP_ACCOUNT };
  }
}

function idpKey(profile: string, issuer: string): GrantKey {
  return { profile, server: parseMcpUrl(issuer).resource, account: IDP_ACCOUNT };
}

function notNamedError(): AgentAuthError {
  const message = "no identity provider is named, and no login at one is stored";
  return usageError(message, "set the option idp: { issuer, clientId }");
}

function otherLoginError({ issuer, profile }: Grant): AgentAuthError {
  const message = `a login at the identity provider ${quote(issuer)} is stored in the profile ${profile}, which has one at most`;
  return usageError(message, "log out there first, or use another profile");
}

function ambiguousError(logins: readonly Grant[]): AgentAuthError {
  const names = logins.map(({ issuer }) => quote(issuer)).join(", ");
  const message = `logins at several identity providers are stored in this profile: ${names}`;
  const hint = "use a profile for each of them";
  return new AgentAuthError("account_ambiguous", message, { class: "usage", hint });
}

/** The error for an issuer that takes assertions of the identity provider, but only from clients that it knows. */
function noKnownClientError(server: string, issuer: string | undefined): AgentAuthError {
  const message = `${quote(issuer)} takes assertions of the identity provider for ${quote(server)}, but no client that it knows is named`;
  const hint = "set client.clientId and client.issuer";
  const remedy = { action: "configure", option: "client", value: issuer } as const;
  return new AgentAuthError("login_required", message, { class: "auth", hint, remedy });
}

/** A cached token is not returned if it expires within this time. */
const MARGIN_MS = 60_000;
const MAX_CACHED = 256;

export class ExchangeCache {
  readonly #cached = new Lru<ExchangedToken>(MAX_CACHED);
  readonly #inFlight = new SingleFlight<ExchangedToken>();

  /** @throws as `exchangeTokens`, and `login_required` if no client is known */
  async get(
    server: string,
    call: ClientCall | undefined,
    request: ExchangeRequest,
    { clock, signal }: { clock: Pick<Clock, "epoch">; signal: AbortSignal | undefined },
  ): Promise<ExchangedToken> {
    if (call === undefined) throw noClientError(server);
    if (call.exchanges === false) throw notListedError(call.issuer);
    const name = await buildCacheKey(call, request);
    const cached = this.#cached.get(name);
    if (cached?.expiresAt !== undefined && cached.expiresAt.getTime() - MARGIN_MS > clock.epoch()) return cached;
    const work = (within: AbortSignal) =>
      exchangeTokens({ ...call, signal: within }, request).catch(rethrowWithExchangeHint);
    const token = await this.#inFlight.run(name, work, signal);
    if (token.expiresAt !== undefined) this.#cached.set(name, token);
    return token;
  }
}

/** Hash of everything that an exchanged token depends on, so that the cache does not hold the input tokens. */
function buildCacheKey(call: ClientCall, request: ExchangeRequest): Promise<string> {
  const { subjectToken, subjectTokenType, actorToken, actorTokenType, requestedTokenType } = request;
  const plain = (token: string | Secret | undefined) => (token instanceof Secret ? token.reveal() : token);
  const tokens = [plain(subjectToken), subjectTokenType, plain(actorToken), actorTokenType, requestedTokenType];
  const target = [request.audience, request.resource, request.scope];
  return hashValues(call.issuer, call.tokenEndpoint, call.client.clientId, ...tokens, ...target);
}

const HINTS: Readonly<Record<string, readonly [hint: string, remedy?: Remedy]>> = {
  invalid_target: ["ask for an audience or a resource that the issuer gives tokens for"],
  invalid_scope: ["ask for scopes that the token has which is exchanged"],
  unauthorized_client: [
    "the client has to be allowed token exchange at the issuer",
    { action: "configure", option: "clientId" },
  ],
  unsupported_grant_type: ["the issuer does not exchange tokens", { action: "inspect", subject: "grants" }],
};

function rethrowWithExchangeHint(thrown: unknown): never {
  if (!isAgentAuthError(thrown) || thrown.hint !== undefined || thrown.remedy !== undefined) throw thrown;
  const [hint, remedy] = (Object.hasOwn(HINTS, thrown.code) && HINTS[thrown.code]) || [];
  throw hint === undefined ? thrown : withHint(thrown, hint, remedy);
}

function noClientError(server: string): AgentAuthError {
  const message = `an exchange at the issuer of ${quote(server)} needs a registered client, and there is no login yet`;
  const hint = "name one with client.clientId, or log in first";
  const remedy = { action: "login", server, option: "clientId" } as const;
  return new AgentAuthError("login_required", message, { class: "auth", hint, remedy });
}

/** The error for an issuer without token exchange: the token is not sent. */
function notListedError(issuer: string): AgentAuthError {
  const message = `the metadata of ${quote(issuer)} list grant types (grant_types_supported) without token exchange (RFC 8693): nothing was sent`;
  const hint = "log in again if the issuer has begun to exchange tokens";
  const remedy = { action: "inspect", subject: "grants" } as const;
  return new AgentAuthError("unsupported_grant_type", message, { class: "remote", hint, remedy });
}

/** A request by the client of the options, at the issuer that a server names; undefined without such a client. */
export async function callForClient(
  context: LoginContext,
  mcpUrl: string,
  signal: AbortSignal | undefined,
): Promise<ClientCall | undefined> {
  const { preRegistered, http, clock, trace } = context;
  if (preRegistered === undefined) return undefined;
  const search = { ...context, chosenIssuer: undefined, sendsCredential: true };
  const { issuer: server, server: named } = await discoverIssuer(search, mcpUrl, undefined, signal);
  // The token to exchange is a credential too.
  const credential = fingerprintCredential(preRegistered) ?? "the token to exchange";
  const use = { client: preRegistered, issuer: server.issuer, server: named, credential, isInteractive: false, signal };
  await holdToIssuer(context, use);
  const client = preRegisteredClient({ ...context, client: preRegistered, server, isMachine: true });
  const { issuer, tokenEndpoint } = server;
  const acceptedTokenType = acceptedTypeFor(server, context);
  const { privateKey } = preRegistered;
  const exchanges = listsExchange(server);
  return { http, clock, issuer, tokenEndpoint, client, privateKey, acceptedTokenType, trace, exchanges };
}

export { handOver, handOverOptions } from "./hand-over.js";
export { finishWithCallback, storeWebLogin, takeWebLogin } from "./login/web-login.js";
export { introspect } from "./token/introspection.js";
export { MachineTokenManager };
