import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import { bindUsedClient, credentialOf, holdToIssuer } from "../client/issuer-binding.js";
import { isForgotten, obtainClient, redirectForm, refuseClient } from "../client/registration.js";
import { discover, overridesFor } from "../discovery/discovery.js";
import type { Discovered, IssuerMetadata } from "../discovery/types.js";
import { newProofKey, proverFor } from "../dpop/dpop.js";
import { type Grant, type TokenAnswer, tokensOf } from "../grant/grant.js";
import type { GrantKey, GrantStore, Reservation } from "../grant/grant-store.js";
import { withReservation } from "../grant/reservation.js";
import { chooseScope, parseScope, scopesBeyond } from "../token/scope.js";
import { authorizationOf, authorize } from "./authorize-step.js";
import { deviceLogin } from "./device.js";
import { checkEndpointOrigins } from "./endpoint-origins.js";
import type { LoginContext, LoginRequest } from "./login-context.js";
import type { LoginSession } from "./login-method.js";
import type { PreparedLogin } from "./prepared-login.js";
import { tokensOfLogin } from "./token-step.js";

/** Logs the user in and stores the grant, which is read back before the caller gets it. */
export async function loginWith(asked: LoginContext, request: LoginRequest): Promise<Grant> {
  const { signal, method } = request;
  const found = await discover(asked, request.mcpUrl, request.challenge, signal);
  reportNewIssuer(asked, found);
  const context = await checkEndpointOrigins(asked, found, { flow: asked.flow, method, signal });
  await checkClientIssuer(context, found, signal);
  const wanted = scopeFor(found, request);
  const resource = context.resource ?? found.resource?.resource ?? found.server;
  return withReservation(context.store, grantKeyFor(context, found.server), async (reservation) => {
    if (context.flow === "device") {
      const proofKey = await newProofKey(context.dpop, found);
      const prover = proverFor({ proofKey }, context.nonces);
      const { client, answer, scope } = await deviceLogin(context, { found, ...wanted, resource, request, prover });
      const overrides = overridesFor(found.issuer.issuer, context);
      const login = { server: found.server, issuer: found.issuer, client, scope, resource, overrides, proofKey };
      return saveGrant(context, reservation, grantOf(context, login, answer));
    }
    const { issuer } = found.issuer;
    const preferredRedirectUri = await knownRedirect(context.store, issuer);
    const session = await method.open({ resource: found.server, issuer, preferredRedirectUri, signal });
    return inSession(session, async () => {
      const { redirectUri } = session;
      const login = await prepareLogin(context, { found, ...wanted, resource, redirectUri, signal });
      return completeLogin(context, login, { session, reservation, signal });
    });
  });
}

/** Waits in an open session for the callback of a prepared login, and stores the grant. */
export function finishInSession(
  contextOf: () => LoginContext,
  login: PreparedLogin,
  session: LoginSession,
  signal: AbortSignal,
): Promise<Grant> {
  return inSession(session, async () => {
    // The login determines the account, not the options of this client.
    const context = { ...contextOf(), loginHint: login.account };
    const key = grantKeyFor(context, login.server);
    return withReservation(context.store, key, (reservation) =>
      completeLogin(context, login, { session, reservation, signal }),
    );
  });
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
async function inSession(session: LoginSession, work: () => Promise<Grant>): Promise<Grant> {
  const grant = await work().catch(async (error: unknown) => {
    await session.close({ ok: false, error: isAgentAuthError(error) ? error : internalError(error) });
    throw error;
  });
  await session.close({ ok: true });
  return grant;
}

/** The grant key of a login. */
export function grantKeyFor({ profile, loginHint }: LoginContext, server: string): GrantKey {
  return { profile, server, account: loginHint };
}

interface Completion {
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
  const authorized = await authorize(context, login, session, signal);
  const { client, answer } = await tokensOfLogin(context, authorized, signal);
  return saveGrant(context, reservation, grantOf(context, { ...authorized.login, client }, answer));
}

/** Reports that a server names another authorization server than at the earlier login (MCP Authorization, SEP-2352). */
export function reportNewIssuer(
  { remembered, onProgress }: LoginContext,
  { server, issuer }: Discovered<IssuerMetadata>,
): void {
  const before = remembered?.issuer;
  if (before === undefined || before === issuer.issuer) return;
  const names = `${quote(server)} names another authorization server than before: ${quote(issuer.issuer)}, not ${quote(before)}`;
  onProgress?.({ about: "login", text: `${names}; clients and tokens of the old one are not sent to the new one` });
}

/** The scopes of a login, by the order of `chooseScope`, and those of them that the caller did not request. */
export function scopeFor(
  found: Discovered<IssuerMetadata>,
  request: Pick<LoginRequest, "scope" | "previousScope">,
): Pick<PreparedLogin, "scope" | "addedScope"> {
  const from = found.server;
  const scope = chooseScope({
    explicit: request.scope === undefined ? undefined : parseScope(request.scope, "scope", "the caller"),
    challenged: found.challenge?.scope === undefined ? undefined : parseScope(found.challenge.scope, "scope", from),
    resource: found.resource?.scopesSupported,
    server: found.issuer.scopesSupported,
    previous: request.previousScope === undefined ? undefined : parseScope(request.previousScope, "scope", from),
  });
  return { scope, addedScope: request.scope === undefined ? scope.filter((one) => one === "offline_access") : [] };
}

/** The redirect address that our client at an issuer is registered with. */
export async function knownRedirect(store: GrantStore, issuer: string): Promise<string | undefined> {
  for (const form of ["http://127.0.0.1/callback", "http://localhost/callback"]) {
    const client = await store.readClient(issuer, form);
    if (client?.redirectUri) return client.redirectUri;
  }
  return undefined;
}

interface Preparation {
  found: Discovered;
  scope: readonly string[];
  addedScope: readonly string[];
  resource: string;
  redirectUri: string;
  signal: AbortSignal;
}

/** Obtains a client and builds its authorization request; a client that the issuer has forgotten is replaced once. */
export async function prepareLogin(context: LoginContext, preparation: Preparation): Promise<PreparedLogin> {
  const { found, scope, addedScope, resource, redirectUri, signal } = preparation;
  const form = redirectForm(redirectUri);
  const { issuer } = found.issuer;
  const known = await context.store.readClient(issuer, form);
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
      overrides: overridesFor(issuer, context),
      proofKey,
    };
    return { ...login, pending: await authorizationOf(context, login, redirectUri) };
  };
  const login = await prepare();
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

function grantOf(
  context: LoginContext,
  login: Omit<PreparedLogin, "pending" | "account" | "addedScope">,
  answer: TokenAnswer,
): Grant {
  const { server, issuer, client, scope, resource, overrides, proofKey } = login;
  const requestedScope = scope.length > 0 ? scope.join(" ") : undefined;
  return {
    profile: context.profile,
    server,
    account: context.loginHint,
    resource,
    issuer: issuer.issuer,
    endpoints: {
      token: issuer.tokenEndpoint,
      introspection: issuer.introspectionEndpoint,
      revocation: issuer.revocationEndpoint,
      endSession: issuer.endSessionEndpoint,
      jwks: issuer.jwksUri,
    },
    client,
    requestedScope,
    overrides,
    proofKey,
    tokens: tokensOf(answer, requestedScope),
    signedInAt: answer.at,
    refusals: context.refusals,
    generation: 0,
    retired: undefined,
  };
}

const SAVE_TRIES = 5;

/** Stores a new grant in place of any other, and reads it back: a login counts only if its grant is stored. */
async function saveGrant(context: LoginContext, reservation: Reservation, grant: Grant): Promise<Grant> {
  const { store, onProgress } = context;
  for (let tries = 0; tries < SAVE_TRIES; tries++) {
    const stored = await store.read(grant);
    const next = { ...grant, generation: (stored?.generation ?? 0) + 1 };
    const target = tries === 0 ? reservation : store;
    if (!(await target.save(next, stored?.generation))) {
      // Another process changed the stored grant, and a plain save needs the reserved disk space.
      await reservation.release();
      continue;
    }
    const saved = await store.read(grant);
    if (saved && saved.generation >= next.generation) {
      await bindUsedClient(context, next);
      const extra = scopesBeyond(grant.requestedScope, grant.tokens.scope);
      if (extra.length > 0) onProgress?.({ about: "login", text: widerScopeWarning(grant, extra) });
      return saved;
    }
    break;
  }
  const message = `the login succeeded, but its tokens could not be stored in ${quote(store.location)}`;
  const hint = "status() lists the stored logins";
  const remedy = { action: "inspect", subject: "logins" } as const;
  throw new AgentAuthError("store_failed", message, { class: "store", hint, remedy });
}

function widerScopeWarning({ issuer, requestedScope }: Grant, extra: readonly string[]): string {
  const asked = `the token has more scopes than requested: ${quote(issuer)} granted ${quote(extra.join(" "))}`;
  return `warning: ${asked} beside ${quote(requestedScope)} (RFC 6749 section 3.3)`;
}

function internalError(cause: unknown): AgentAuthError {
  return new AgentAuthError("internal_error", "the login failed", { class: "internal", cause });
}
