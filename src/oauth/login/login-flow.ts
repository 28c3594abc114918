import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import { credentialOf, holdToIssuer } from "../client/issuer-binding.js";
import { FIRST_DOCUMENT_REDIRECT, refuseDocument, usesDocument } from "../client/metadata-document.js";
import { clientIssuer, obtainClient, redirectForm, refuseClient } from "../client/registration.js";
import { isForgotten } from "../client/registration-refusal.js";
import { discover, discoverProvider } from "../discovery/discovery.js";
import { acceptedTypeFor, overridesFor, requestParamsFor, resourceFor } from "../discovery/overrides.js";
import { newProofKey } from "../dpop/dpop.js";
import { withResourceHint } from "../http/oauth-error.js";
import type { Grant, GrantKey } from "../model/grant.js";
import { type Reservation, withReservation } from "../model/grant-store.js";
import { type Discovered, type IssuerMetadata, isSameIssuer, type ServerMetadata } from "../model/metadata.js";
import { scopeFor } from "../model/scope.js";
import { authorizationOf, authorize } from "./authorize-step.js";
import { noDeviceFlowError, pollDeviceLogin, secondsToPoll, startDeviceLogin } from "./device.js";
import { checkEndpointOrigins } from "./endpoint-origins.js";
import type { LoginContext, LoginRequest } from "./login-context.js";
import { observeLogin } from "./login-event.js";
import type { LoginSession } from "./login-method.js";
import {
  type AuthorizedLogin,
  type PreparedDeviceLogin,
  type PreparedLogin,
  requireSecrets,
} from "./prepared-login.js";
import { grantOf, saveGrant } from "./save-grant.js";
import { tokensOfLogin } from "./token-step.js";

/** Logs the user in and stores the grant, which is read back before the caller gets it. */
export async function loginWith(requested: LoginContext, request: LoginRequest): Promise<Grant> {
  const { signal, method } = request;
  const found = await discoverForLogin(requested, request);
  const context = await checkEndpointOrigins(requested, found, { flow: requested.flow, method, signal });
  await checkClientIssuer(context, found, signal);
  const wanted = scopeFor(found, request);
  const resource = resourceFor(found, context);
  return withReservation(context.store, grantKeyFor(context, found.server), async (reservation) => {
    if (context.flow === "device") {
      if (method.showDeviceCode === undefined) throw noDeviceFlowError(found.issuer.issuer);
      const login = await beginDevice(context, { found, ...wanted, resource, signal });
      const { verificationUri, verificationUriComplete, userCode } = login.device;
      const expiresInSeconds = secondsToPoll(context, login);
      await method.showDeviceCode({ verificationUri, verificationUriComplete, userCode, expiresInSeconds });
      return completeDevice(context, login, { reservation, signal });
    }
    const { issuer } = found.issuer;
    const preferredRedirectUri = await preferredRedirect(context, found.issuer);
    const session = await method.open({ resource: found.server, issuer, preferredRedirectUri, signal });
    return runInSession(session, async () => {
      const { redirectUri } = session;
      const login = await prepareLogin(context, { found, ...wanted, resource, redirectUri, signal });
      return completeLogin(context, login, { session, reservation, signal });
    });
  });
}

/** Finds the issuer of a login: that of a server, or the identity provider itself. Reports what changed. */
export async function discoverForLogin(
  context: LoginContext,
  { mcpUrl, challenge, signal }: Pick<LoginRequest, "mcpUrl" | "challenge" | "signal">,
): Promise<Discovered> {
  const found = context.requiresIdToken
    ? await discoverProvider(context, mcpUrl, signal)
    : await discover(context, mcpUrl, challenge, signal);
  reportChanges(context, found);
  return found;
}

/** Waits in an open session for the callback of a prepared login, and stores the grant. */
export function finishInSession(
  contextOf: () => LoginContext,
  login: PreparedLogin,
  session: LoginSession,
  signal: AbortSignal,
): Promise<Grant> {
  return runInSession(session, async () => {
    requireSecrets(login);
    // The login determines the account, not the options of this client.
    const context = { ...contextOf(), loginHint: login.account };
    const key = grantKeyFor(context, login.server);
    const about = { server: login.server, flow: "browser", issuer: login.issuer.issuer } as const;
    return observeLogin(context.events, about, () =>
      withReservation(context.store, key, (reservation) =>
        completeLogin(context, login, { session, reservation, signal }),
      ),
    );
  });
}

/** Requests the code of a device login, for tokens that are bound to a key where the server requires it. */
export async function beginDevice(context: LoginContext, login: Preparation): Promise<PreparedDeviceLogin> {
  const proofKey = await newProofKey(context.dpop, login.found);
  return startDeviceLogin(context, { ...login, proofKey }).catch(rethrowWithResourceHint(login.resource));
}

/** Polls until the user has entered the code, and stores the grant for the account that the login began with. */
export function finishDevice(requested: LoginContext, login: PreparedDeviceLogin, signal: AbortSignal): Promise<Grant> {
  const context = { ...requested, loginHint: login.account };
  const about = { server: login.server, flow: "device", issuer: login.issuer.issuer } as const;
  return observeLogin(context.events, about, () =>
    withReservation(context.store, grantKeyFor(context, login.server), (reservation) =>
      completeDevice(context, login, { reservation, signal }),
    ),
  );
}

async function completeDevice(
  context: LoginContext,
  login: PreparedDeviceLogin,
  { reservation, signal }: Omit<Completion, "session">,
): Promise<Grant> {
  const answer = await pollDeviceLogin(context, login, signal).catch(rethrowWithResourceHint(login.resource));
  return saveGrant(context, reservation, grantOf(context, login, answer));
}

/** Checks that the pre-registered client of a login belongs to the issuer, before any of its data is sent. */
export async function checkClientIssuer(
  context: LoginContext,
  { server, issuer: { issuer } }: Discovered,
  signal: AbortSignal,
): Promise<void> {
  const { preRegistered: client } = context;
  if (client === undefined) return;
  await holdToIssuer(context, {
    client,
    issuer,
    server,
    credential: credentialOf(client),
    isInteractive: true,
    signal,
  });
}

/** Runs work in a session and closes it exactly once with the outcome, whatever the failure. */
async function runInSession(session: LoginSession, work: () => Promise<Grant>): Promise<Grant> {
  const grant = await work().catch(async (error: unknown) => {
    await session.close({ ok: false, error: isAgentAuthError(error) ? error : internalError(error) });
    throw error;
  });
  const { server, issuer, account } = grant;
  await session.close({ ok: true, login: { server, issuer, account } });
  return grant;
}

/** The grant key of a login. */
export function grantKeyFor({ profile, loginHint }: LoginContext, server: string): GrantKey {
  return { profile, server, account: loginHint };
}

/** What finishes a login. */
export interface Completion {
  session: LoginSession;
  reservation: Reservation;
  signal: AbortSignal;
}

/** Sends the user to the issuer, validates the callback, exchanges its code, and stores the grant. */
async function completeLogin(
  context: LoginContext,
  login: PreparedLogin,
  { session, reservation, signal }: Completion,
): Promise<Grant> {
  const authorized = await authorize(context, login, session, signal).catch(rethrowWithResourceHint(login.resource));
  return exchangeLogin(context, authorized, { reservation, signal });
}

/** Exchanges the code of a validated callback, and stores the grant. */
export async function exchangeLogin(
  context: LoginContext,
  authorized: AuthorizedLogin,
  { reservation, signal }: Omit<Completion, "session">,
): Promise<Grant> {
  const rethrow = rethrowWithResourceHint(authorized.login.resource);
  const { client, answer } = await tokensOfLogin(context, authorized, signal).catch(rethrow);
  return saveGrant(context, reservation, grantOf(context, { ...authorized.login, client }, answer));
}

/** Adds the hint about the `resource` parameter to an error of the issuer. */
export function rethrowWithResourceHint(resource: string): (error: unknown) => never {
  return (error) => {
    throw withResourceHint(error, resource);
  };
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
    onProgress?.({ about: "login", text });
  }
  const was = remembered?.namedIssuer ?? remembered?.issuer;
  const is = issuer.namedIssuer ?? issuer.issuer;
  if (was === undefined || isSameIssuer(was, is)) return;
  const names = `${quote(server)} names another authorization server than before: ${quote(is)}, not ${quote(was)}`;
  onProgress?.({ about: "login", text: `${names}; clients and tokens of the old one are not sent to the new one` });
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

/** What a login is prepared from. */
export interface Preparation {
  /** The result of discovery. */
  found: Discovered;
  /** The scopes to request. */
  scope: readonly string[];
  /** Those of them that the caller did not request. */
  addedScope: readonly string[];
  /** The `resource` parameter; `none` if none is sent. */
  resource: string;
  /** Aborts the requests. */
  signal: AbortSignal;
}

/**
 * Obtains a client and builds its authorization request. A client that the issuer has forgotten is replaced once, and a
 * metadata document that it refuses by a registration.
 */
export async function prepareLogin(
  context: LoginContext,
  preparation: Preparation & { redirectUri: string },
): Promise<PreparedLogin> {
  const { found, scope, addedScope, resource, redirectUri, signal } = preparation;
  const form = redirectForm(redirectUri);
  const { issuer } = found.issuer;
  const known = await context.store.readClient(clientIssuer(found.issuer), form);
  const proofKey = await newProofKey(context.dpop, found);
  const prepare = async (): Promise<PreparedLogin> => {
    const now = context.clock.epoch();
    const client = await obtainClient({ ...context, server: found.issuer, redirectUri, scope, now, signal });
    const login = {
      server: found.server,
      account: context.loginHint,
      issuer: found.issuer,
      client,
      scope,
      addedScope,
      resource,
      overrides: overridesFor(found.issuer, context),
      acceptedTokenType: acceptedTypeFor(found.issuer, context),
      ...requestParamsFor(found.issuer, context),
      proofKey,
    };
    return { ...login, pending: await authorizationOf(context, login, redirectUri) };
  };
  const login = await prepare();
  if (login.client.source === "metadata-document") return withAcceptedClient(context, preparation, login);
  if (login.client.source !== "dynamic" || login.client.clientId !== known?.clientId) return login;
  if (!(await isForgotten(context.http, login.pending.authorizationUrl, signal))) return login;
  await refuseClient({ ...context, signal }, login.client, form);
  const again = await prepare();
  const isSame = again.client.clientId === login.client.clientId;
  const what = isSame
    ? "three were registered within a day, so that it is used once more; a client that the issuer knows beforehand avoids this"
    : "another one is registered";
  const why = `the issuer no longer knows this client; ${what}`;
  const url = found.issuer.authorizationEndpoint;
  context.trace({ step: "authorization", method: "GET", url, used: false, why });
  if (isSame) context.onProgress?.({ about: "login", text: `${quote(issuer)}: ${why}` });
  return again;
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
  if (!(await isForgotten(context.http, pending.authorizationUrl, preparation.signal))) return login;
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
  context.onProgress?.({ about: "login", text });
  return registered;
}

function internalError(cause: unknown): AgentAuthError {
  return new AgentAuthError("internal_error", "the login failed", { class: "internal", cause });
}
