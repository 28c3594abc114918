import { type AgentAuthError, isAgentAuthError, withHint } from "../../errors.js";
import { alternateAuthMethod } from "../client/client-auth.js";
import { refuseDocument } from "../client/metadata-document.js";
import { redirectForm, refuseClient } from "../client/registration.js";
import { adviseWithoutRegistration } from "../client/registration-refusal.js";
import { proverFor } from "../dpop/dpop.js";
import { LOGIN_HINT, loginRemedy } from "../grant/grant-requirements.js";
import type { ClientRecord, TokenAnswer } from "../model/grant.js";
import { exchangeCode } from "../token/token.js";
import type { LoginContext } from "./login-context.js";
import type { AuthorizedLogin, PreparedLogin } from "./prepared-login.js";

/** The tokens of a login, and the client with the authentication method that worked. */
export interface LoginTokens {
  client: ClientRecord;
  answer: TokenAnswer;
}

/**
 * Exchanges the code of a login for tokens. If the issuer rejects the authentication method of the registration, tries
 * the other method for client secrets once, if the issuer lists it, and stores it for later requests.
 */
export async function tokensOfLogin(
  context: LoginContext,
  { login, parameters }: AuthorizedLogin,
  signal: AbortSignal,
): Promise<LoginTokens> {
  const { issuer, client, pending, acceptedTokenType } = login;
  const { redirectUri, verifier, resource, nonce } = pending;
  const prover = proverFor(login, context.nonces);
  const { tokenEndpoint } = issuer;
  const exchangeWith = async (by: ClientRecord): Promise<LoginTokens> => {
    const party = { issuer: issuer.issuer, tokenEndpoint, client: by, acceptedTokenType };
    const call = { ...context, ...party, prover, signal };
    return { client: by, answer: await exchangeCode(call, { parameters, redirectUri, verifier, resource, nonce }) };
  };
  const form = redirectForm(redirectUri);
  return withClientRefusal(context, { client, form, signal }, async () => {
    try {
      return await exchangeWith(client);
    } catch (error) {
      const alternate = isInvalidClient(error) ? alternateAuthMethod(client, issuer, context.preRegistered) : undefined;
      if (alternate === undefined) throw error;
      const tokens = await exchangeWith(alternate);
      if (client.source === "dynamic") await context.store.saveClient(alternate, form);
      return tokens;
    }
  });
}

/** The client of a login. */
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

/** Runs work with a client; one that we registered, or our metadata document, is not used again if the issuer rejects it. */
export async function withClientRefusal<T>(
  { store, clock }: Pick<LoginContext, "store" | "clock">,
  { client, form, signal }: LoginClient,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
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
    const { hint, remedy } = isRejectedAgain ? adviseWithoutRegistration(false) : { hint: REGISTERS_AGAIN };
    throw withHint(error, hint, remedy);
  }
}

/** Whether an issuer rejects a client or its authentication (RFC 6749 section 5.2). */
export function isInvalidClient(error: unknown): error is AgentAuthError {
  return isAgentAuthError(error) && error.code === "invalid_client";
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
