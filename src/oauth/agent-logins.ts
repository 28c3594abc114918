import { AgentAuthError, isAgentAuthError } from "../errors.js";
import type { LoginRemedy } from "../remedy.js";
import type { AgentContext } from "./agent-context.js";
import { describeLogin, type LoginStatus } from "./agent-inspection.js";
import { checkCall, checkCallNames } from "./agent-options.js";
import type { AgentTokens, AgentUserView } from "./agent-tokens.js";
import { challengeOfRemedy } from "./discovery/resource-metadata.js";
import type { GrantOptions, LoginOptions, TokenOptions } from "./grant/grant-requirements.js";
import { type LoginContext, withParams } from "./login/login-context.js";
import { beginDevice, finishDevice, finishInSession, grantKeyFor } from "./login/login-flow.js";
import type { LoginSession } from "./login/login-method.js";
import { type Preparation, planLogin, preferredRedirect, prepareLogin } from "./login/login-plan.js";
import type { PreparedDeviceLogin, PreparedLogin } from "./login/prepared-login.js";
import {
  type CallbackOptions,
  type CallbackResult,
  checkRedirectUri,
  checkReturnTo,
  type LoginStart,
  readQueryParameters,
  type StartedLogin,
  type StartLoginOptions,
} from "./login/web-app.js";
import { finishWithCallback, storeWebLogin, takeWebLogin } from "./login/web-login.js";
import { AccessToken, type GrantKey } from "./model/grant.js";
import { withReservation } from "./model/grant-store.js";
import { IDP_ACCOUNT } from "./model/machine-grant.js";

type BeginOptions = LoginOptions & Pick<GrantOptions, "challenge">;

/** The logins of an agent client: at a server or at the company's identity provider, in one step, in two, or in a web app. */
export class AgentLogins {
  readonly #context: AgentContext;
  readonly #tokens: AgentTokens;

  /**
   * Begins the login that is the remedy of an error, if the client has a way to: adds `start` to the remedy.
   *
   * @internal
   */
  static offerLogin<T>(client: AgentLogins, work: Promise<T>): Promise<T> {
    return client.#offerLogin(work);
  }

  /** @internal */
  constructor({ context, tokens }: AgentUserView) {
    this.#context = context;
    this.#tokens = tokens;
  }

  /** Logs the user in, even if a valid token is stored. */
  async login(mcpUrl: string, options: LoginOptions = {}): Promise<AccessToken> {
    checkCallNames(options, "login");
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
    checkCallNames(options, "login");
    const { clock, profile, options: own } = this.#context;
    return describeLogin(await this.#tokens.ofIdp.login.logIn(profile, options), clock.epoch(), own.store.location);
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
    const { context, issuer, options: wanted } = await this.#tokens.ofIdp.login.prepare(this.#context.profile, options);
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
    const { context, issuer, options: wanted } = await this.#tokens.ofIdp.login.prepare(this.#context.profile, options);
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
    checkCallNames(options, "startLogin");
    return startLogin(this.#context, mcpUrl, options);
  }

  /**
   * As {@link AgentClient.startLogin}, at the company's identity provider: {@link AgentClient.loginIdp} in a web app.
   * {@link AgentClient.handleCallback} finishes it.
   */
  async startIdpLogin(options: StartLoginOptions): Promise<StartedLogin> {
    checkCallNames(options, "startLogin");
    const { context, issuer, options: wanted } = await this.#tokens.ofIdp.login.prepare(this.#context.profile, options);
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
    const { saved, signal = new AbortController().signal } = options;
    const cookie = options.cookie ?? (callback instanceof Request ? (callback.headers.get("cookie") ?? "") : "");
    const parameters = readQueryParameters(callback);
    const webLogins = this.#context.webLogins();
    const { login, returnTo } = await takeWebLogin(webLogins, parameters, { saved, cookie });
    const { server } = login;
    const result = await finishWithCallback(this.#contextOf(login), login, parameters, signal);
    if (!("again" in result)) return { done: { server, returnTo, token: new AccessToken(result) } };
    // The issuer refused scopes that were added: once more without them.
    const { url: redirect, ...again } = await storeWebLogin(webLogins, { login: result.again, returnTo });
    return { redirect, ...again };
  }

  /** The context that finishes a login, at a server or at the identity provider. */
  #contextOf(login: PreparedLogin | PreparedDeviceLogin): LoginContext {
    const { account } = login;
    return account === IDP_ACCOUNT
      ? this.#tokens.ofIdp.login.contextOf(this.#context.profile, login)
      : this.#context.contextOf(login);
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

/** Prepares a login in a browser; its redirect address may depend on that of an earlier registration. */
async function beginBrowserLogin(
  agent: AgentContext,
  mcpUrl: string,
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

/** Prepares a login on another device. */
async function beginDeviceLogin(
  agent: AgentContext,
  mcpUrl: string,
  options: BeginOptions,
): Promise<PreparedDeviceLogin> {
  const { context, preparation } = await prepareTwoStepLogin(agent, mcpUrl, "device", options);
  return withReservation(context.store, grantKeyFor(context, preparation.found.server), () =>
    beginDevice(context, preparation),
  );
}

/** Prepares a login in a web app, and stores it until its callback. */
async function startLogin(
  agent: AgentContext,
  mcpUrl: string,
  options: StartLoginOptions & Pick<BeginOptions, "challenge">,
): Promise<StartedLogin> {
  const redirectUri = checkRedirectUri(options.redirectUri);
  const returnTo = checkReturnTo(options.returnTo, redirectUri);
  const login = await beginBrowserLogin(agent, mcpUrl, redirectUri.href, options);
  return storeWebLogin(agent.webLogins(), { login, returnTo });
}

function redirectRequiredError(): AgentAuthError {
  const message = "redirectUri is required: a client without a login method can only start logins in a web app";
  const hint = "call start({ redirectUri }), or set the option login of the client";
  return new AgentAuthError("usage", message, { class: "usage", hint });
}

/** Everything of a login in two steps before the user is needed. */
async function prepareTwoStepLogin(
  agent: AgentContext,
  mcpUrl: string,
  flow: LoginContext["flow"],
  options: BeginOptions,
): Promise<{ context: LoginContext; preparation: Preparation }> {
  checkCall(options);
  const { store, login: method } = agent.options;
  const key = agent.loginKey(mcpUrl);
  const requested = withParams(agent.loginContext(key, await store.read(key)), options);
  const signal = options.signal ?? new AbortController().signal;
  const { challenge, scope } = options;
  return planLogin(requested, { mcpUrl, challenge, scope, flow, method, signal });
}
