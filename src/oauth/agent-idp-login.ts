import { AgentAuthError, usageError } from "../errors.js";
import { quote } from "../redact.js";
import { AgentContext } from "./agent-context.js";
import { checkCall, type IdpOptions } from "./agent-options.js";
import { type LoginOptions, loginRequired } from "./grant/grant-requirements.js";
import type { LoginContext } from "./login/login-context.js";
import type { PreparedDeviceLogin, PreparedLogin } from "./login/prepared-login.js";
import { TokenManager } from "./login/token-manager.js";
import type { ClientRecord, Grant, GrantKey } from "./model/grant.js";
import { IDP_ACCOUNT, type IdJagSubject } from "./model/machine-grant.js";
import { isSameIssuer } from "./model/metadata.js";
import { parseMcpUrl } from "./model/resource.js";
import { unionScopes } from "./model/scope.js";
import { isCurrent, verifyIdToken } from "./token/id-token.js";

/**
 * The login at the company's identity provider: a grant as every other, under the issuer of the provider, which is refreshed
 * under its lease.
 */
export class IdpLogin {
  readonly #agent: AgentContext;
  /** By issuer and client. */
  readonly #providers = new Map<string, TokenManager>();

  constructor(agent: AgentContext) {
    this.#agent = agent;
  }

  /** Logs the user in at the provider, even if a login is stored. */
  async logIn(profile: string, requested: LoginOptions): Promise<Grant> {
    const { context, issuer, options, stored } = await this.prepare(profile, requested);
    const manager = this.#managerAt(context, issuer);
    return manager.login(context.loginKey(issuer), { ...options, seen: stored, explicit: true });
  }

  /** What a login at the provider needs: a context whose target is the provider, its issuer, and options with `openid`. */
  async prepare<Options extends LoginOptions>(profile: string, requested: Options) {
    checkCall(requested);
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
    if (typeof idp === "object") return store.read(idpKeyOf(profile, idp.issuer));
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
    if (isValid(grant)) return { idToken: await verifyIdToken(grant, { http, now: clock.epoch(), signal: undefined }) };
    // Providers may leave out the id token of a refresh (OpenID Connect Core section 12.2).
    const { refreshToken } = grant.tokens;
    if (refreshToken === undefined) throw loginRequired(grant, "the identity provider issued no new id token");
    return { refreshToken };
  }

  /** The context of the login itself: that of an agent whose client and issuer are those of the provider. */
  #contextAt(
    profile: string,
    { issuer, clientId, clientSecret }: IdpOptions,
    before: ClientRecord | undefined,
  ): ProviderContext {
    const known = before?.source === "pre-registered" && isSameIssuer(before.issuer, issuer) && before;
    const id = clientId ?? (known ? known.clientId : undefined);
    const secret = clientSecret ?? (known && known.clientId === id ? known.clientSecret : undefined);
    const client = id === undefined ? undefined : { clientId: id, clientSecret: secret, issuer };
    const { options } = this.#agent;
    const own = { ...options, client, issuer, dpop: "off", resource: undefined, idp: undefined } as const;
    return new ProviderContext(own, profile, this.#agent);
  }

  /** The manager of the login itself. */
  #managerAt(context: ProviderContext, issuer: string): TokenManager {
    const { client } = context.options;
    const name = JSON.stringify([issuer, client?.clientId]);
    const before = this.#providers.get(name);
    if (before) return before;
    const manager = new TokenManager({
      ...context.managerContext(),
      requirements: { dpop: "off", expectedIssuer: issuer, preRegistered: client },
    });
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

/** The key of the login at an identity provider. */
export function idpKeyOf(profile: string, issuer: string): GrantKey {
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
