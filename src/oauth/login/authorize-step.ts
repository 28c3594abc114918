import { isAgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import { proverFor } from "../dpop/dpop.js";
import { buildAuthorization, checkCallback, type PendingAuthorization } from "./authorization.js";
import type { LoginContext } from "./login-context.js";
import type { LoginSession } from "./login-method.js";
import type { AuthorizedLogin, PreparedLogin } from "./prepared-login.js";
import { withScopeHint } from "./token-step.js";

/** The request that a login sends the user off with. */
export async function authorizationOf(
  { loginHint, nonces }: Pick<LoginContext, "loginHint" | "nonces">,
  login: Omit<PreparedLogin, "pending">,
  redirectUri: string,
): Promise<PendingAuthorization> {
  const { issuer: server, client, scope, resource } = login;
  const proofKeyThumbprint = await proverFor(login, nonces)?.thumbprint();
  return buildAuthorization({ server, client, redirectUri, scope, resource, loginHint, proofKeyThumbprint });
}

/**
 * Sends the user off and judges the callback. Scopes that nobody asked for are left out in a second request where the
 * issuer, whatever it lists, does not like those of the first.
 */
export async function authorize(
  context: LoginContext,
  login: PreparedLogin,
  session: LoginSession,
  signal: AbortSignal,
): Promise<AuthorizedLogin> {
  const { issuer, pending, addedScope } = login;
  const answered = await session.authorize({
    url: pending.authorizationUrl,
    state: pending.state,
    allowBareCode: !pending.promisesIss,
    tokenEndpoint: issuer.tokenEndpoint,
    promisesIss: pending.promisesIss,
    signal,
  });
  try {
    return { login, parameters: checkCallback(pending, answered) };
  } catch (error) {
    if (!isScopeRefusal(error, addedScope)) throw withScopeHint(error, context, login);
  }
  reportReducedScope(context, login);
  const less = { ...login, ...withoutAddedScope(login) };
  const again = { ...less, pending: await authorizationOf(context, less, pending.redirectUri) };
  return authorize(context, again, session, signal);
}

/** Whether an issuer refused scopes of which we can do without some. */
export function isScopeRefusal(error: unknown, addedScope: readonly string[]): boolean {
  return isAgentAuthError(error) && error.code === "invalid_scope" && addedScope.length > 0;
}

/** The scopes of a login without those that nobody asked for. */
export function withoutAddedScope({ scope, addedScope }: Pick<PreparedLogin, "scope" | "addedScope">): {
  scope: readonly string[];
  addedScope: readonly string[];
} {
  return { scope: scope.filter((one) => !addedScope.includes(one)), addedScope: [] };
}

/** Says which scopes are left out. */
export function reportReducedScope(
  { onProgress }: Pick<LoginContext, "onProgress">,
  { issuer, addedScope }: Pick<PreparedLogin, "issuer" | "addedScope">,
): void {
  const text = `${quote(issuer.issuer)} does not give ${quote(addedScope.join(" "))} with the other scopes, though it lists it; asking without it`;
  onProgress?.({ about: "login", text });
}
