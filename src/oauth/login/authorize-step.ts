import { isAgentAuthError, withHint } from "../../errors.js";
import { quote } from "../../redact.js";
import { refuseDocument } from "../client/metadata-document.js";
import { proverFor } from "../dpop/dpop.js";
import { asksForConsent, buildAuthorization, checkCallback, type PendingAuthorization } from "./authorization.js";
import type { LoginContext } from "./login-context.js";
import type { LoginSession } from "./login-method.js";
import type { AuthorizedLogin, PreparedLogin } from "./prepared-login.js";
import { REPLACES_DOCUMENT, withScopeHint } from "./token-step.js";

/** Builds the authorization request of a login. */
export async function authorizationOf(
  context: Pick<LoginContext, "loginHint" | "nonces" | "requiresIdToken">,
  login: Omit<PreparedLogin, "pending">,
  redirectUri: string,
): Promise<PendingAuthorization> {
  const { issuer: server, client, scope, resource, authorizationParams, needsConsent } = login;
  const proofKeyThumbprint = await proverFor(login, context.nonces)?.thumbprint();
  // The account of such a login is ours.
  const loginHint = context.requiresIdToken ? undefined : context.loginHint;
  const request = { server, client, redirectUri, scope, resource, loginHint, proofKeyThumbprint };
  return buildAuthorization({ ...request, authorizationParams, needsConsent });
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
    allowBareCode: !pending.promisesIss,
    tokenEndpoint: issuer.tokenEndpoint,
    promisesIss: pending.promisesIss,
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
    return { login, parameters: checkCallback(pending, callback) };
  } catch (error) {
    if (login.client.source === "metadata-document" && isAgentAuthError(error) && OF_CLIENT.includes(error.code)) {
      await refuseDocument(context.store, login.client, context.clock.epoch());
      throw withHint(error, REPLACES_DOCUMENT);
    }
    if (!isScopeRefusal(error, addedScope)) throw withScopeHint(error, context, login);
  }
  reportReducedScope(context, login);
  const reduced = { ...login, ...withoutAddedScope(login) };
  return { again: { ...reduced, pending: await authorizationOf(context, reduced, pending.redirectUri) } };
}

/** Whether an issuer rejected the scopes and some of them are optional. */
export function isScopeRefusal(error: unknown, addedScope: readonly string[]): boolean {
  return isAgentAuthError(error, "invalid_scope") && addedScope.length > 0;
}

/** The scopes of a login without those that the caller did not request. */
export function withoutAddedScope({ scope, addedScope }: Pick<PreparedLogin, "scope" | "addedScope">): {
  scope: readonly string[];
  addedScope: readonly string[];
} {
  return { scope: scope.filter((one) => !addedScope.includes(one)), addedScope: [] };
}

export function reportReducedScope(
  { onProgress }: Pick<LoginContext, "onProgress">,
  { issuer, addedScope }: Pick<PreparedLogin, "issuer" | "addedScope">,
): void {
  const text = `${quote(issuer.issuer)} lists ${quote(addedScope.join(" "))} but does not grant it with the other scopes; requesting without it`;
  onProgress?.({ about: "login", text });
}
