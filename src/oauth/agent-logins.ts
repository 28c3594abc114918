import { AgentAuthError, isAgentAuthError } from "../errors.js";
import type { LoginRemedy } from "../remedy.js";
import type { AgentContext } from "./agent-context.js";
import { checkCall } from "./agent-options.js";
import { challengeOfRemedy } from "./discovery/unseen-by-login.js";
import { AccessToken } from "./grant/access-token.js";
import type { GrantOptions, LoginOptions } from "./grant/grant-requirements.js";
import { type LoginContext, withParams } from "./login/login-context.js";
import { beginDevice, grantKeyFor } from "./login/login-flow.js";
import { type Preparation, planLogin } from "./login/login-plan.js";
import { preferredRedirect, prepareLogin } from "./login/login-preparation.js";
import type { PreparedDeviceLogin, PreparedLogin } from "./login/prepared-login.js";
import { checkRedirectUri, checkReturnTo, readQueryParameters } from "./login/web-app.js";
import { finishWithCallback, storeWebLogin, takeWebLogin } from "./login/web-login.js";
import type {
  CallbackOptions,
  CallbackResult,
  LoginStart,
  StartedLogin,
  StartLoginOptions,
} from "./login/web-types.js";
import type { GrantKey } from "./model/grant.js";
import { withReservation } from "./model/grant-store.js";

type BeginOptions = LoginOptions & Pick<GrantOptions, "challenge">;

/** Prepares a login in a browser; its redirect address may depend on that of an earlier registration. */
export async function beginBrowserLogin(
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
export async function beginDeviceLogin(
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
export async function startLogin(
  agent: AgentContext,
  mcpUrl: string,
  options: StartLoginOptions & Pick<BeginOptions, "challenge">,
): Promise<StartedLogin> {
  const redirectUri = checkRedirectUri(options.redirectUri);
  const returnTo = checkReturnTo(options.returnTo, redirectUri);
  const login = await beginBrowserLogin(agent, mcpUrl, redirectUri.href, options);
  return storeWebLogin(agent.webLogins(), { login, returnTo });
}

/** Finishes a login in a web app, or begins it once more where the issuer refused scopes that were added. */
export async function handleCallback(
  agent: AgentContext,
  callback: Request | URL | string,
  { contextOf, ...options }: CallbackOptions & { contextOf(login: PreparedLogin): LoginContext },
): Promise<CallbackResult> {
  const { saved, signal = new AbortController().signal } = options;
  const cookie = options.cookie ?? (callback instanceof Request ? (callback.headers.get("cookie") ?? "") : "");
  const parameters = readQueryParameters(callback);
  const { login, returnTo } = await takeWebLogin(agent.webLogins(), parameters, { saved, cookie });
  const { server } = login;
  const result = await finishWithCallback(contextOf(login), login, parameters, signal);
  if (!("again" in result)) return { done: { server, returnTo, token: new AccessToken(result) } };
  const { url: redirect, ...again } = await storeWebLogin(agent.webLogins(), { login: result.again, returnTo });
  return { redirect, ...again };
}

/** What begins the logins of a client. */
interface LoginStarts {
  /** With its `login` method, at a server. */
  atServer(key: GrantKey, options: BeginOptions): Promise<unknown>;
  /** With its `login` method, at the identity provider. */
  atIdp(options: LoginOptions): Promise<unknown>;
  /** In a web app, at the identity provider. */
  webAtIdp(options: StartLoginOptions): Promise<StartedLogin>;
}

/** Adds to an error whose remedy is a login the function that begins it, if the client has a way to. */
export function offerStart(agent: AgentContext, error: unknown, starts: LoginStarts): void {
  const { login: method, grant, store, loginSecret } = agent.options;
  const mayStart = method !== undefined || loginSecret !== undefined || store.shortLived !== undefined;
  const remedy = isAgentAuthError(error) ? error.remedy : undefined;
  if (grant !== undefined || !mayStart || remedy?.action !== "login" || remedy.start !== undefined) return;
  // Not enumerable: the remedy stays data for logs, copies and comparisons.
  Object.defineProperty(remedy, "start", { value: starterOf(agent, remedy, starts) });
}

function starterOf(agent: AgentContext, remedy: LoginRemedy, starts: LoginStarts): LoginStart {
  const { server, account, idp } = remedy;
  const challenge = challengeOfRemedy(remedy);
  async function start(options: StartLoginOptions): Promise<StartedLogin>;
  async function start(options?: Pick<StartLoginOptions, "signal" | "authorizationParams">): Promise<unknown>;
  async function start(options: Partial<StartLoginOptions> = {}): Promise<unknown> {
    const { redirectUri, signal, scope = remedy.scope } = options;
    const authorizationParams = { ...remedy.authorizationParams, ...options.authorizationParams };
    if (redirectUri !== undefined) {
      const wanted = { ...options, redirectUri, scope, authorizationParams };
      return idp ? starts.webAtIdp(wanted) : startLogin(agent, server, { ...wanted, challenge });
    }
    if (agent.options.login === undefined) throw redirectRequiredError();
    const wanted = { scope, signal, authorizationParams };
    return idp
      ? starts.atIdp(wanted)
      : starts.atServer({ profile: agent.profile, server, account }, { ...wanted, challenge });
  }
  return start;
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
