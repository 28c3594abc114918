import { isAgentAuthError } from "../../errors.js";
import { followSignal, untilAborted } from "../../http/deadline.js";
import { refusalError } from "../../http/refuse.js";
import { quote, type Secret } from "../../redact.js";
import { fingerprintCredential, holdToIssuer } from "../client/issuer-binding.js";
import { FIRST_DOCUMENT_REDIRECT, refuseDocument, usesDocument } from "../client/metadata-document.js";
import { clientIssuer, isForgotten, obtainClient, redirectForm, refuseClient } from "../client/registration.js";
import { discover, discoverProvider } from "../discovery/discovery.js";
import {
  acceptedTypeFor,
  foreignFirstEndpoint,
  overridesFor,
  requestParamsFor,
  resourceFor,
} from "../discovery/overrides.js";
import { newProofKey } from "../dpop/dpop.js";
import { type Discovered, type IssuerMetadata, isSameIssuer, type ServerMetadata } from "../model/metadata.js";
import { scopeFor } from "../model/scope.js";
import { buildAuthorization, type LoginContext, type LoginRequest, type PreparedLogin } from "./authorization.js";
import { type LoginMethod, timeoutError } from "./login-method.js";

export interface LoginPlan extends Pick<LoginRequest, "mcpUrl" | "challenge" | "scope" | "previousScope" | "signal"> {
  flow: LoginContext["flow"];
  /** Asks the user; undefined if no user can be asked. */
  method: Pick<LoginMethod, "confirmEndpoints"> | undefined;
}

export interface Preparation {
  found: Discovered;
  scope: readonly string[];
  /** Those of them that the caller did not request. */
  addedScope: readonly string[];
  resource: string;
  signal: AbortSignal;
}

/** Finds the issuer of a login, and checks its endpoints and the client: all that comes before the client's requests. */
export async function planLogin(
  requested: LoginContext,
  plan: LoginPlan,
): Promise<{ context: LoginContext; preparation: Preparation }> {
  const { signal } = plan;
  const found = await discoverForLogin(requested, plan);
  const context = await checkEndpointOrigins(requested, found, plan);
  await checkClientIssuer(context, found, signal);
  const wanted = scopeFor(found, plan);
  return { context, preparation: { found, ...wanted, resource: resourceFor(found, context), signal } };
}

/** Finds the issuer of a login: that of a server, or the identity provider itself. Reports what changed. */
async function discoverForLogin(context: LoginContext, { mcpUrl, challenge, signal }: LoginPlan): Promise<Discovered> {
  const found = context.requiresIdToken
    ? await discoverProvider(context, mcpUrl, signal)
    : await discover(context, mcpUrl, challenge, signal);
  reportChanges(context, found);
  return found;
}

/**
 * Reports that a server names another authorization server than at the earlier login (MCP Authorization, SEP-2352), or
 * asks for no login any more.
 */
function reportChanges(
  { remembered, onProgress }: LoginContext,
  { server, issuer, isUnprotected }: Discovered<IssuerMetadata>,
): void {
  if (isUnprotected) {
    const text = `${quote(server)} answers without a token now; this login replaces the stored one, and a logout removes it`;
    onProgress?.({ subject: "login", text });
  }
  const was = remembered?.namedIssuer ?? remembered?.issuer;
  const is = issuer.namedIssuer ?? issuer.issuer;
  if (was === undefined || isSameIssuer(was, is)) return;
  const names = `${quote(server)} names another authorization server than before: ${quote(is)}, not ${quote(was)}`;
  onProgress?.({ subject: "login", text: `${names}; clients and tokens of the old one are not sent to the new one` });
}

/**
 * Rejects an issuer that may steal the logins of another one (mix-up, RFC 9700 section 4.4): its metadata name the
 * authorization endpoint of an honest issuer, and its own token endpoint gets the code and the verifier. A browser
 * login is safe if both endpoints have one origin, or if the callback names its issuer (RFC 9207). A device login has
 * no callback, so both endpoints must have one origin. Everything else needs the user's consent.
 *
 * @returns the context of the login, in which a consent of the user is one of the overrides
 * @throws `AgentAuthError` `bad_server_metadata` without consent, `timeout` if the user does not answer
 */
async function checkEndpointOrigins(
  context: LoginContext,
  { server, issuer }: Discovered,
  { flow, method, signal }: LoginPlan,
): Promise<LoginContext> {
  const first = foreignFirstEndpoint(issuer, flow);
  if (first === undefined) return context;
  if (overridesFor(issuer, context).includes("allowCrossOriginEndpoints")) return context;
  const prompt = {
    resource: server,
    issuer: issuer.issuer,
    authorizationEndpoint: first.address,
    tokenEndpoint: issuer.tokenEndpoint,
  };
  const { loginTimeoutMs: timeout } = context;
  const deadline = followSignal(signal, timeout, () => timeoutError(server, timeout / 1000));
  try {
    const confirming = method?.confirmEndpoints?.({ ...prompt, signal: deadline.signal });
    if (confirming && (await untilAborted(confirming, deadline.signal)) === true)
      return { ...context, overrides: { ...context.overrides, allowCrossOriginEndpoints: true } };
  } finally {
    deadline.release();
  }
  const value = issuer.tokenEndpoint;
  const rule = `must be at ${new URL(first.address).origin}, the origin of its ${first.field}${first.unless} (RFC 9700 section 4.4)`;
  const override = "allowCrossOriginEndpoints";
  throw refusalError("bad_server_metadata", { field: "token_endpoint", value, from: issuer.url, rule, override });
}

/** Checks that the pre-registered client of a login belongs to the issuer, before any of its data is sent. */
async function checkClientIssuer(
  context: LoginContext,
  { server, issuer: { issuer } }: Discovered,
  signal: AbortSignal,
): Promise<void> {
  const { preRegistered: client } = context;
  if (client === undefined) return;
  const credential = fingerprintCredential(client);
  await holdToIssuer(context, { client, issuer, server, credential, isInteractive: true, signal });
}

/** The redirect address that our client at an issuer is registered with, or that our metadata document has. */
export async function preferredRedirect(context: LoginContext, server: ServerMetadata): Promise<string | undefined> {
  const { store, clock } = context;
  const issuer = clientIssuer(server);
  if (await usesDocument({ ...context, server, now: clock.epoch() }, issuer)) return FIRST_DOCUMENT_REDIRECT;
  for (const form of ["http://127.0.0.1/callback", "http://localhost/callback"]) {
    const client = await store.readClient(issuer, form);
    if (client?.redirectUri) return client.redirectUri;
  }
  return undefined;
}

/**
 * Obtains a client and builds its authorization request.
 *
 * | client of the login | what the issuer says to its request | result |
 * |---|---|---|
 * | registered before the login by the user, or by this login | | this login |
 * | our metadata document | refuses it, and registers clients | a login with a registered client |
 * | registered by an earlier login | no longer knows it | a login with another registered client, once |
 */
export async function prepareLogin(context: LoginContext, preparation: Preparation & { redirectUri: string }) {
  const { found, redirectUri, signal } = preparation;
  const form = redirectForm(redirectUri);
  const known = await context.store.readClient(clientIssuer(found.issuer), form);
  const proofKey = await newProofKey(context.dpop, found);
  const login = await prepareRequest(context, preparation, proofKey);
  if (login.client.source === "metadata-document") return withAcceptedClient(context, preparation, login);
  if (login.client.source !== "dynamic" || login.client.clientId !== known?.clientId) return login;
  if (!(await isForgotten(context.http, login.pending, signal))) return login;
  await refuseClient({ ...context, signal }, login.client, form);
  const again = await prepareRequest(context, preparation, proofKey);
  const isSame = again.client.clientId === login.client.clientId;
  const what = isSame
    ? "three were registered within a day, so that it is used once more; a client that the issuer knows beforehand avoids this"
    : "another one is registered";
  const why = `the issuer no longer knows this client; ${what}`;
  const { issuer, authorizationEndpoint: url } = found.issuer;
  context.trace({ step: "authorization", method: "GET", url, used: false, why });
  if (isSame) context.onProgress?.({ subject: "login", text: `${quote(issuer)}: ${why}` });
  return again;
}

/** A login whose client is the one that the issuer knows at this moment, or registers. */
async function prepareRequest(
  context: LoginContext,
  { found, scope, addedScope, resource, redirectUri, signal }: Preparation & { redirectUri: string },
  proofKey: Secret | undefined,
): Promise<PreparedLogin> {
  const { server, issuer } = found;
  const now = context.clock.epoch();
  const client = await obtainClient({ ...context, server: issuer, redirectUri, scope, now, signal });
  const target = { server, account: context.loginHint, issuer, client, scope, addedScope, resource };
  const overrides = overridesFor(issuer, context);
  const acceptedTokenType = acceptedTypeFor(issuer, context);
  const login = { ...target, overrides, acceptedTokenType, ...requestParamsFor(issuer, context), proofKey };
  return { ...login, pending: await buildAuthorization(context, login, redirectUri) };
}

/**
 * The login with our metadata document; if the issuer refuses that, with a client that it registers. Some issuers say so
 * in the browser only, and show a page there that does not lead back.
 */
async function withAcceptedClient(
  context: LoginContext,
  preparation: Preparation & { redirectUri: string },
  login: PreparedLogin,
): Promise<PreparedLogin> {
  const { issuer, client, pending } = login;
  if (issuer.registrationEndpoint === undefined) return login;
  if (!(await isForgotten(context.http, pending, preparation.signal))) return login;
  const registered = await prepareLogin({ ...context, clientMetadataUrl: undefined }, preparation).catch(
    (error: unknown) => {
      // The page may be readable in a browser only, and the document is the only client left.
      if (isAgentAuthError(error) && (error.class === "auth" || error.class === "remote")) return undefined;
      throw error;
    },
  );
  if (registered === undefined) return login;
  await refuseDocument(context.store, client, context.clock.epoch());
  const text = `${quote(issuer.issuer)} refuses the client metadata document ${quote(client.clientId)}; a registered client is used instead`;
  context.onProgress?.({ subject: "login", text });
  return registered;
}
