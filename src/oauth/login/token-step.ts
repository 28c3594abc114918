import { type AgentAuthError, isAgentAuthError, withHint } from "../../errors.js";
import { refuseDocument } from "../client/metadata-document.js";
import { redirectForm, refuseClient } from "../client/registration.js";
import { adviseWithoutRegistration } from "../client/registration-refusal.js";
import { proverFor } from "../dpop/dpop.js";
import { LOGIN_HINT, loginRemedy } from "../grant/grant-requirements.js";
import type { ClientRecord, TokenResponse } from "../model/grant.js";
import { exchangeCode } from "../token/token.js";
import type { LoginContext } from "./login-context.js";
import type { AuthorizedLogin, PreparedLogin } from "./prepared-login.js";

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
  const { issuer, client, pending, acceptedTokenType } = login;
  const { redirectUri, verifier, resource, nonce } = pending;
  const prover = proverFor(login, context.nonces);
  const { tokenEndpoint } = issuer;
  const party = { issuer: issuer.issuer, tokenEndpoint, client, acceptedTokenType };
  const call = { ...context, ...party, prover, signal };
  const loginClient = { client, form: redirectForm(redirectUri), signal };
  return withClientRefusal(context, loginClient, () =>
    rememberMethod(context, loginClient, (onClient) =>
      exchangeCode({ ...call, onClient }, { parameters, redirectUri, verifier, resource, nonce }),
    ),
  );
}

/**
 * Runs work with a client, and stores the method of its secret that the issuer accepted in place of the registered one. Also if
 * the work then fails: where the first request has used up a code, the next login does not repeat that.
 */
export async function rememberMethod<T>(
  { store }: Pick<LoginContext, "store">,
  { client, form }: Pick<LoginClient, "client" | "form">,
  work: (onClient: (accepted: ClientRecord) => void) => Promise<T>,
): Promise<ClientResponse<T>> {
  let used = client;
  try {
    const response = await work((accepted) => {
      used = accepted;
    });
    return { client: used, response };
  } finally {
    if (used !== client && client.source === "dynamic") await store.saveClient(used, form);
  }
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
