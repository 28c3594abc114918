import { type AgentAuthError, isAgentAuthError, withHint } from "../../errors.js";
import { alternateAuthMethod } from "../client/pre-registered-client.js";
import { redirectForm, refuseClient } from "../client/registration.js";
import { proverFor } from "../dpop/dpop.js";
import type { ClientRecord, TokenAnswer } from "../grant/grant.js";
import { exchangeCode } from "../token/token.js";
import { loginCommand } from "./login-command.js";
import type { LoginContext } from "./login-context.js";
import type { AuthorizedLogin, PreparedLogin } from "./prepared-login.js";

/** The tokens of a login, and the client as it proved itself. */
export interface LoginTokens {
  client: ClientRecord;
  answer: TokenAnswer;
}

/**
 * Trades the code of a login for tokens. A client whose secret is not taken in the way that the registration named sends
 * it once in the other way, where the issuer lists that as well, and does so from then on.
 */
export async function tokensOfLogin(
  context: LoginContext,
  { login, parameters }: AuthorizedLogin,
  signal: AbortSignal,
): Promise<LoginTokens> {
  const { issuer, client, pending } = login;
  const { redirectUri, verifier, resource } = pending;
  const prover = proverFor(login, context.nonces);
  const { tokenEndpoint } = issuer;
  const exchange = async (by: ClientRecord): Promise<LoginTokens> => {
    const call = { ...context, issuer: issuer.issuer, tokenEndpoint, client: by, prover, signal };
    return { client: by, answer: await exchangeCode(call, { parameters, redirectUri, verifier, resource }) };
  };
  const form = redirectForm(redirectUri);
  return withClientRefusal(context, { client, form, signal }, async () => {
    try {
      return await exchange(client);
    } catch (error) {
      const other = isInvalidClient(error) ? alternateAuthMethod(client, issuer, context.preRegistered) : undefined;
      if (other === undefined) throw error;
      const tokens = await exchange(other);
      if (client.source === "dynamic") await context.store.saveClient(other, form);
      return tokens;
    }
  });
}

/** A client that was got for a login. */
export interface LoginClient {
  client: ClientRecord;
  /** Which registrations can serve the login. */
  form: string;
  signal: AbortSignal;
}

/** Does what a client is needed for; one that we registered and the issuer does not take is not used again. */
export async function withClientRefusal<T>(
  { store }: Pick<LoginContext, "store">,
  { client, form, signal }: LoginClient,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isInvalidClient(error) || client.source !== "dynamic") throw error;
    await refuseClient({ store, signal }, client, form);
    throw withHint(error, "sign in again: another client is registered for that");
  }
}

/** Whether an issuer says that it does not know a client, or not with this proof (RFC 6749 section 5.2). */
export function isInvalidClient(error: unknown): error is AgentAuthError {
  return isAgentAuthError(error) && error.code === "invalid_client";
}

/**
 * A failed login with the command that asks for fewer scopes, where the issuer did not like those that were asked for.
 */
export function withScopeHint(
  error: unknown,
  { profile }: Pick<LoginContext, "profile">,
  { server, account, scope }: Pick<PreparedLogin, "server" | "account" | "scope">,
): unknown {
  if (!isAgentAuthError(error) || error.code !== "invalid_scope" || error.hint !== undefined) return error;
  const rest = scope.filter((one) => one !== "offline_access");
  const command = loginCommand(
    { profile, server, account },
    rest.length < scope.length ? { scope: rest.join(" ") } : {},
  );
  return withHint(error, rest.length < scope.length ? command : `${command} --scope "<scopes>" asks for others`);
}
