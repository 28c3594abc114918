import * as oauth from "oauth4webapi";
import { AgentAuthError, isAgentAuthError, usageError, withHint } from "../../errors.js";
import type { Clock } from "../../http/deadline.js";
import { refusalError } from "../../http/refuse.js";
import { quote, Secret } from "../../redact.js";
import type { Events } from "../../telemetry/emit.js";
import type { ClientKey, PreRegisteredClient } from "../client/client-auth.js";
import type { IssuerTrust } from "../client/issuer-binding.js";
import { refuseDocument } from "../client/metadata-document.js";
import { adviseWithoutRegistration, redirectForm, refuseClient } from "../client/registration.js";
import type { DiscoveryContext } from "../discovery/discovery.js";
import { type DpopPolicy, proverFor } from "../dpop/dpop.js";
import { LOGIN_HINT, type LoginOptions, loginRemedy } from "../grant/grant-requirements.js";
import type { Nonces, Progress } from "../http/http.js";
import { oauthError } from "../http/oauth-error.js";
import { FLOW_PARAMETERS, knownIssuer } from "../model/authorization-params.js";
import type { BearerChallenge } from "../model/challenge.js";
import type { ClientRecord, Grant, TokenResponse } from "../model/grant.js";
import type { GrantStore } from "../model/grant-store.js";
import type { ServerMetadata } from "../model/metadata.js";
import { resourceParameter } from "../model/resource.js";
import { exchangeCode } from "../token/token.js";
import type { DevicePrompt, LoginMethod, LoginSession } from "./login-method.js";

/** A login before its callback: everything that is needed to make a grant of it. */
export interface PreparedLogin
  extends Pick<
    Grant,
    | ("server" | "account" | "client" | "resource" | "overrides")
    | ("acceptedTokenType" | "authorizationParams" | "needsConsent")
  > {
  /** The authorization server. */
  readonly issuer: ServerMetadata;
  /** The requested scopes. */
  readonly scope: readonly string[];
  /** Those of them that the caller did not request: omitted if the issuer rejects them. */
  readonly addedScope: readonly string[];
  /** The key that the tokens are bound to. */
  readonly proofKey: Secret | undefined;
  /** The authorization request, with the secrets that the callback is validated with. */
  readonly pending: PendingAuthorization;
}

/** A device login before the user has entered its code (RFC 8628): everything that is needed to make a grant of it. */
export interface PreparedDeviceLogin extends Omit<PreparedLogin, "pending" | "addedScope"> {
  /** The issuer's answer, with the secret to poll with. */
  readonly device: DeviceAuthorization;
  /**
   * Called with the seconds between two polls when the issuer demands more of them (RFC 8628 section 3.5): store them as
   * `device.intervalSeconds`, so that another process that finishes this login does not poll too fast.
   */
  readonly onSlowDown?: ((intervalSeconds: number) => void) | undefined;
}

/** The answer of a device authorization endpoint (RFC 8628 section 3.2), checked. */
export interface DeviceAuthorization extends Readonly<Omit<DevicePrompt, "expiresInSeconds">> {
  /** The secret to poll with. */
  readonly deviceCode: Secret;
  /** Seconds between two polls. */
  readonly intervalSeconds: number;
  /** Unix milliseconds when the code expires. */
  readonly expiresAt: number;
}

export interface AuthorizedLogin {
  login: PreparedLogin;
  /** The callback's parameters, as returned by `checkCallback`. */
  parameters: URLSearchParams;
}

/** Rejects a login that was stored as JSON, in which a mask replaces each secret. */
export function requireSecrets({ pending }: PreparedLogin): void {
  if (pending?.verifier instanceof Secret) return;
  const message = "the prepared login has lost its secrets: JSON and logs contain a mask in their place";
  const hint =
    "pass the object of beginLogin itself, or use startLogin and handleCallback, which save a login between processes";
  throw usageError(message, hint);
}

export interface LoginContext extends DiscoveryContext {
  store: GrantStore;
  events: Events;
  clock: Pick<Clock, "now" | "epoch" | "sleep">;
  profile: string;
  /** The name that a registration says; undefined for the default one, or that of a stored client. */
  clientName: string | undefined;
  preRegistered: PreRegisteredClient | undefined;
  /** How the issuer of that client is determined. */
  trust: IssuerTrust;
  /** Whether the login is one at an identity provider, whose id token is verified before the login is stored. */
  requiresIdToken?: boolean | undefined;
  privateKey?: ClientKey | undefined;
  dpop: DpopPolicy;
  nonces: Nonces;
  clientMetadataUrl: string | undefined;
  flow: "browser" | "device";
  loginTimeoutMs: number;
  loginHint: string | undefined;
  /** Unix milliseconds of recent rejections by servers, if they led to this login. */
  refusals: readonly number[];
  onProgress?: ((progress: Progress) => void) | undefined;
}

export interface LoginRequest {
  mcpUrl: string;
  method: LoginMethod;
  scope: string | undefined;
  /** The scopes requested before, in a step-up. */
  previousScope?: string | undefined;
  challenge?: BearerChallenge | undefined;
  signal: AbortSignal;
}

/** The context of a login with parameters of its own; each replaces that of the client of the same name. */
export function withParams(context: LoginContext, { authorizationParams }: Pick<LoginOptions, "authorizationParams">) {
  return { ...context, authorizationParams: { ...context.authorizationParams, ...authorizationParams } };
}

/** The response to a request, and the client with the authentication method that worked. */
export interface ClientResponse<T> {
  client: ClientRecord;
  response: T;
}

/** Exchanges the code of a login for tokens, and stores which method of the client's secret the issuer accepted. */
export async function tokensOfLogin(
  context: LoginContext,
  { login, parameters }: AuthorizedLogin,
  signal: AbortSignal,
): Promise<ClientResponse<TokenResponse>> {
  const { issuer, client, pending, resource, acceptedTokenType } = login;
  const { redirectUri, verifier, nonce } = pending;
  const prover = proverFor(login, context.nonces);
  const { tokenEndpoint } = issuer;
  const party = { issuer: issuer.issuer, tokenEndpoint, client, acceptedTokenType };
  const call = { ...context, ...party, prover, signal };
  const loginClient = { client, form: redirectForm(redirectUri), signal };
  return withLoginClient(context, loginClient, (onClient) =>
    exchangeCode({ ...call, onClient }, { parameters, redirectUri, verifier, resource, nonce }),
  );
}

export interface LoginClient {
  client: ClientRecord;
  /** The redirect form that its registration is stored under. */
  form: string;
  signal: AbortSignal;
}

const REGISTERS_AGAIN = "log in again: another client is registered for that";
/** What helps where an issuer refuses our metadata document. */
export const REPLACES_DOCUMENT =
  "log in again: a client is registered if the issuer does that; check what the client metadata document says";
/** A login takes less time than that. */
const NEW_CLIENT_MS = 600_000;

/**
 * Runs work with a client, and stores the method of its secret that the issuer accepted in place of the registered one. Also if
 * the work then fails: where the first request has used up a code, the next login does not repeat that. A client that we
 * registered, or our metadata document, is not used again if the issuer rejects it.
 */
export async function withLoginClient<T>(
  { store, clock }: Pick<LoginContext, "store" | "clock">,
  { client, form, signal }: LoginClient,
  work: (onClient: (accepted: ClientRecord) => void) => Promise<T>,
): Promise<ClientResponse<T>> {
  let used = client;
  const onClient = (accepted: ClientRecord) => {
    used = accepted;
  };
  try {
    const response = await work(onClient).finally(async () => {
      if (used !== client && client.source === "dynamic") await store.saveClient(used, form);
    });
    return { client: used, response };
  } catch (error) {
    if (isInvalidClient(error) && client.source === "metadata-document") {
      await refuseDocument(store, client, clock.epoch());
      throw withHint(error, REPLACES_DOCUMENT);
    }
    if (!isInvalidClient(error) || client.source !== "dynamic") throw error;
    await refuseClient({ store, signal }, client, form);
    const { registeredAt = [] } = client;
    // This client replaces one that was rejected: another would lead in a circle, unless the issuer forgets its clients.
    const isRejectedAgain = registeredAt.length > 1 && clock.epoch() - (registeredAt.at(-1) ?? 0) < NEW_CLIENT_MS;
    const issuer = { issuer: client.issuer, takesClientIdDocuments: false };
    const { hint, remedy } = isRejectedAgain ? adviseWithoutRegistration(issuer) : { hint: REGISTERS_AGAIN };
    throw withHint(error, hint, remedy);
  }
}

/** Whether an issuer rejects a client or its authentication (RFC 6749 section 5.2). */
export function isInvalidClient(error: unknown): error is AgentAuthError {
  return isAgentAuthError(error, "invalid_client");
}

/** Adds the login that requests fewer scopes to the error of a login whose scopes the issuer rejected. */
export function withScopeHint(
  error: unknown,
  { profile }: Pick<LoginContext, "profile">,
  { server, account, scope }: Pick<PreparedLogin, "server" | "account" | "scope">,
): unknown {
  if (!isAgentAuthError(error) || error.code !== "invalid_scope" || error.hint !== undefined) return error;
  const reducedScope = scope.filter((one) => one !== "offline_access");
  const key = { profile, server, account };
  return reducedScope.length < scope.length
    ? withHint(error, LOGIN_HINT, loginRemedy(key, { scope: reducedScope.join(" ") }))
    : withHint(error, "ask for other scopes", { ...loginRemedy(key), option: "scope" });
}

/**
 * Sends the user to the issuer and validates the callback. If the issuer rejects the scopes, although it lists them, a
 * second request omits those that the caller did not request.
 */
export async function authorize(
  context: LoginContext,
  login: PreparedLogin,
  session: LoginSession,
  signal: AbortSignal,
): Promise<AuthorizedLogin> {
  const { issuer, pending } = login;
  const callback = await session.authorize({
    url: pending.authorizationUrl,
    state: pending.state,
    allowBareCode: !issuer.promisesIss,
    tokenEndpoint: issuer.tokenEndpoint,
    promisesIss: issuer.promisesIss,
    forcesConsent: forcesConsent(login),
    hasDeviceFlow: issuer.deviceAuthorizationEndpoint !== undefined,
    signal,
  });
  const judged = await judgeCallback(context, login, callback);
  return "again" in judged ? authorize(context, judged.again, session, signal) : judged;
}

/** Whether a login forces the user to consent, and no parameter of the user says so. */
export function forcesConsent({ pending, authorizationParams }: PreparedLogin): boolean {
  return asksForConsent(pending) && authorizationParams?.["prompt"] === undefined;
}

/** Errors of a callback that refuse the client. */
const OF_CLIENT: readonly string[] = ["invalid_client", "unauthorized_client", "invalid_client_metadata"];

/** Validates a callback. If the issuer rejected optional scopes, the result is the login to send the user with again. */
export async function judgeCallback(
  context: LoginContext,
  login: PreparedLogin,
  callback: URLSearchParams,
): Promise<AuthorizedLogin | { again: PreparedLogin }> {
  const { addedScope, pending } = login;
  try {
    return { login, parameters: checkCallback(login, callback) };
  } catch (error) {
    if (login.client.source === "metadata-document" && isAgentAuthError(error) && OF_CLIENT.includes(error.code)) {
      await refuseDocument(context.store, login.client, context.clock.epoch());
      throw withHint(error, REPLACES_DOCUMENT);
    }
    if (!isScopeRefusal(error, addedScope)) throw withScopeHint(error, context, login);
  }
  reportReducedScope(context, login);
  const reduced = { ...login, ...withoutAddedScope(login) };
  return { again: { ...reduced, pending: await buildAuthorization(context, reduced, pending.redirectUri) } };
}

/** Whether an issuer rejected the scopes and some of them are optional. */
export function isScopeRefusal(error: unknown, addedScope: readonly string[]): boolean {
  return isAgentAuthError(error, "invalid_scope") && addedScope.length > 0;
}

/** The scopes of a login without those that the caller did not request. */
export function withoutAddedScope({ scope, addedScope }: Pick<PreparedLogin, "scope" | "addedScope">) {
  return { scope: scope.filter((one) => !addedScope.includes(one)), addedScope: [] };
}

export function reportReducedScope(
  { onProgress }: Pick<LoginContext, "onProgress">,
  { issuer, addedScope }: Pick<PreparedLogin, "issuer" | "addedScope">,
): void {
  const text = `${quote(issuer.issuer)} lists ${quote(addedScope.join(" "))} but does not grant it with the other scopes; requesting without it`;
  onProgress?.({ subject: "login", text });
}

/**
 * The authorization request of a login, and the secrets that its callback is validated with. A login has them in one record
 * with its issuer (RFC 9207, MCP Authorization Response Validation).
 */
export interface PendingAuthorization {
  readonly authorizationUrl: string;
  readonly redirectUri: string;
  readonly state: string;
  readonly verifier: Secret;
  /** What the id token must repeat, if one was requested (OpenID Connect Core section 3.1.2.1). */
  readonly nonce?: string | undefined;
}

const MAX_URL = 8192;

/** Builds the authorization request (RFC 6749 section 4.1.1) with PKCE S256 (RFC 7636) and `resource` (RFC 8707). */
export async function buildAuthorization(
  context: Pick<LoginContext, "loginHint" | "nonces" | "requiresIdToken">,
  login: Omit<PreparedLogin, "pending">,
  redirectUri: string,
): Promise<PendingAuthorization> {
  const { issuer: server, client, scope, authorizationParams, needsConsent = true } = login;
  // The account of a login at an identity provider is ours.
  const loginHint = context.requiresIdToken ? undefined : context.loginHint;
  // The code is then bound to the key of the tokens as well (RFC 9449 section 10).
  const proofKeyThumbprint = await proverFor(login, context.nonces)?.thumbprint();
  const needsNone = [server.issuer, server.authorizationEndpoint].some((url) => knownIssuer(url).needsNoConsent);
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  // Optional in this flow (OpenID Connect Core section 3.1.2.1), and some servers require it.
  const nonce = scope.includes("openid") ? oauth.generateRandomNonce() : undefined;
  const url = new URL(server.authorizationEndpoint);
  const parameters = {
    // OpenID Connect issues a refresh token for offline_access only after consent (Core section 11), unless "other
    // conditions" are met, such as the consent of an administrator.
    ...(scope.includes("offline_access") && needsConsent && !needsNone && { prompt: "consent" }),
    ...authorizationParams,
    response_type: "code",
    client_id: client.clientId,
    redirect_uri: redirectUri,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    state,
    ...(scope.length > 0 && { scope: scope.join(" ") }),
    ...resourceParameter(login.resource),
    ...(nonce !== undefined && { nonce }),
    ...(loginHint !== undefined && { login_hint: loginHint }),
    ...(proofKeyThumbprint !== undefined && { dpop_jkt: proofKeyThumbprint }),
  };
  // Servers differ in which of two values they use: ours replace those that the endpoint brings (RFC 6749 section 3.1).
  for (const name of FLOW_PARAMETERS) url.searchParams.delete(name);
  for (const [name, value] of Object.entries(parameters)) {
    if (value === "") url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  if (url.href.length > MAX_URL) {
    throw refusalError("bad_address", {
      field: "authorization_endpoint",
      value: server.authorizationEndpoint,
      from: server.url,
      rule: `results in an address longer than ${MAX_URL} characters, which some browsers do not open`,
    });
  }
  return { authorizationUrl: url.href, redirectUri, state, verifier: new Secret(verifier), nonce };
}

export function asksForConsent({ authorizationUrl }: PendingAuthorization): boolean {
  return new URL(authorizationUrl).searchParams.get("prompt")?.split(" ").includes("consent") === true;
}

/**
 * Validates a callback before any of its values are used: `state`, and `iss` by the four-row table of RFC 9207,
 * compared character by character. This applies to errors too, whose texts are not shown if `iss` does not match.
 *
 * @returns the parameters in the form that `exchangeCode` takes
 * @throws `AgentAuthError` `iss_mismatch`, `state_mismatch`, `bad_callback`, or the server's own error such as
 * `access_denied`
 */
export function checkCallback(
  { issuer: { issuer, promisesIss }, client, pending: { state } }: Pick<PreparedLogin, "issuer" | "client" | "pending">,
  parameters: URLSearchParams,
): URLSearchParams {
  const from = "the callback of the login";
  for (const name of ["state", "iss", "code", "error"]) {
    if (parameters.getAll(name).length > 1)
      throw refusalError("bad_callback", { field: name, value: "(several)", from, rule: "must come once" });
  }
  if (parameters.get("state") !== state) throw stateMismatchError();
  const iss = parameters.get("iss");
  if (iss === null && promisesIss) throw missingIssError(issuer);
  if (iss !== null && iss !== issuer) {
    const rule = `must be exactly ${quote(issuer)} (RFC 9207 section 2.4); the response is not used`;
    throw refusalError("iss_mismatch", { field: "iss", value: iss, from, rule });
  }
  // An `error` without a value counts as missing, so a code is still required.
  if (!parameters.get("error") && !parameters.get("code")) {
    const rule = "is required (RFC 6749 section 4.1.2)";
    throw refusalError("bad_callback", { field: "code", value: undefined, from, rule });
  }
  try {
    const as: oauth.AuthorizationServer = { issuer, authorization_response_iss_parameter_supported: promisesIss };
    return oauth.validateAuthResponse(as, { client_id: client.clientId }, parameters, state);
  } catch (thrown) {
    throw oauthError(thrown, issuer);
  }
}

export function stateMismatchError(): AgentAuthError {
  const message = "the callback does not belong to this login: its state differs";
  return new AgentAuthError("state_mismatch", message, { class: "refused" });
}

/** The error for a response without the issuer that the metadata announce: it may be that of another issuer. */
function missingIssError(issuer: string): AgentAuthError {
  const announced = "authorization_response_iss_parameter_supported";
  const message = `iss is missing from the callback of the login, although the metadata of ${quote(issuer)} announce it (${announced}): such a response may come from another issuer and is not used (RFC 9207 section 2.4)`;
  const hint = `no option accepts that; the operator of ${quote(issuer)} has to send iss, or no longer announce it`;
  return new AgentAuthError("iss_mismatch", message, { class: "refused", hint });
}
