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

/** Logs the user in and keeps what comes of it. The grant is stored and read back before anybody is told. */
export async function loginWith(asked: LoginContext, request: LoginRequest): Promise<Grant> {
  const { signal, method } = request;
  const found = await discover(asked, request.mcpUrl, request.challenge, signal);
  reportNewIssuer(asked, found);
  const context = await checkEndpointOrigins(asked, found, { flow: asked.flow, method, signal });
  await checkClientIssuer(context, found, signal);
  const wanted = scopeFor(found, request);
  const resource = context.resource ?? found.resource?.resource ?? found.server;
  return withReservation(context.store, grantKeyFor(context, found.server), async (room) => {
    if (context.flow === "device") {
      const proofKey = await newProofKey(context.dpop, found);
      const prover = proverFor({ proofKey }, context.nonces);
      const { client, answer, scope } = await deviceLogin(context, { found, ...wanted, resource, request, prover });
      const overrides = overridesFor(found.issuer.issuer, context);
      const login = { server: found.server, issuer: found.issuer, client, scope, resource, overrides, proofKey };
      return saveGrant(context, room, grantOf(context, login, answer));
    }
    const { issuer } = found.issuer;
    const preferredRedirectUri = await knownRedirect(context.store, issuer);
    const session = await method.open({ resource: found.server, issuer, preferredRedirectUri, signal });
    return inSession(session, async () => {
      const { redirectUri } = session;
      const login = await prepareLogin(context, { found, ...wanted, resource, redirectUri, signal });
      return completeLogin(context, login, { session, room, signal });
    });
  });
}

/** Waits in an open session for the callback of a login that was prepared before, and keeps the grant. */
export function finishInSession(
  contextOf: () => LoginContext,
  login: PreparedLogin,
  session: LoginSession,
  signal: AbortSignal,
): Promise<Grant> {
  return inSession(session, async () => {
    // The account was settled when the login began, whatever this client would ask for.
    const context = { ...contextOf(), loginHint: login.account };
    const key = grantKeyFor(context, login.server);
    return withReservation(context.store, key, (room) => completeLogin(context, login, { session, room, signal }));
  });
}

/** Holds the pre-registered client of a login to its issuer, before anything of it is sent. */
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

/** Tells a session exactly once how the work in it has ended, of a failure of whatever kind as well. */
async function inSession(session: LoginSession, work: () => Promise<Grant>): Promise<Grant> {
  const grant = await work().catch(async (error: unknown) => {
    await session.close({ ok: false, error: isAgentAuthError(error) ? error : internalError(error) });
    throw error;
  });
  await session.close({ ok: true });
  return grant;
}

/** The login that a context is about. */
export function grantKeyFor({ profile, loginHint }: LoginContext, server: string): GrantKey {
  return { profile, server, account: loginHint };
}

interface Completion {
  session: LoginSession;
  room: Reservation;
  signal: AbortSignal;
}

/** Sends the user off, judges the callback, trades its code, and keeps the grant. */
async function completeLogin(
  context: LoginContext,
  login: PreparedLogin,
  { session, room, signal }: Completion,
): Promise<Grant> {
  const authorized = await authorize(context, login, session, signal);
  const { client, answer } = await tokensOfLogin(context, authorized, signal);
  return saveGrant(context, room, grantOf(context, { ...authorized.login, client }, answer));
}

/**
 * Says that a server has changed the authorization server that somebody was logged in at (MCP Authorization, SEP-2352).
 */
export function reportNewIssuer(
  { remembered, onProgress }: LoginContext,
  { server, issuer }: Discovered<IssuerMetadata>,
): void {
  const before = remembered?.issuer;
  if (before === undefined || before === issuer.issuer) return;
  const names = `${quote(server)} names another authorization server than before: ${quote(issuer.issuer)}, not ${quote(before)}`;
  onProgress?.({ about: "login", text: `${names}; no client or token of the old one is sent to the new one` });
}

/** The scopes of a login, by the order of `chooseScope`, and those among them that nobody asked for. */
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

/** A client and the request to log in with it; a client that the issuer has forgotten is replaced once. */
export async function prepareLogin(context: LoginContext, preparation: Preparation): Promise<PreparedLogin> {
  const { found, scope, addedScope, resource, redirectUri, signal } = preparation;
  const form = redirectForm(redirectUri);
  const { issuer } = found.issuer;
  const known = await context.store.readClient(issuer, form);
  const proofKey = await newProofKey(context.dpop, found);
  const prepare = async (): Promise<PreparedLogin> => {
    const client = await obtainClient({
      ...context,
      server: found.issuer,
      redirectUri,
      scope,
      now: context.clock.epoch(),
      signal,
    });
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
    ? "three were registered within a day, so that it is used once more; --client-id gives another one"
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

/** Stores a new grant over whatever is there, and reads it back: a login that was not kept is not a login. */
async function saveGrant(context: LoginContext, room: Reservation, grant: Grant): Promise<Grant> {
  const { store, onProgress } = context;
  for (let tries = 0; tries < SAVE_TRIES; tries++) {
    const stored = await store.read(grant);
    const next = { ...grant, generation: (stored?.generation ?? 0) + 1 };
    const saver = tries === 0 ? room : store;
    if (!(await saver.save(next, stored?.generation))) {
      // What was stored when the room was taken is not there any more. A save of its own needs the room on the disk.
      await room.release();
      continue;
    }
    const back = await store.read(grant);
    if (back && back.generation >= next.generation) {
      await bindUsedClient(context, next);
      const more = scopesBeyond(grant.requestedScope, grant.tokens.scope);
      if (more.length > 0) onProgress?.({ about: "login", text: widerScopeWarning(grant, more) });
      return back;
    }
    break;
  }
  throw new AgentAuthError(
    "store_failed",
    `the sign-in succeeded, but its tokens could not be kept in ${quote(store.location)}`,
    {
      class: "store",
      hint: "agentauth status tells where they should be",
    },
  );
}

function widerScopeWarning({ issuer, requestedScope }: Grant, more: readonly string[]): string {
  const asked = `the token may do more than was asked for: ${quote(issuer)} granted ${quote(more.join(" "))}`;
  return `warning: ${asked} beside ${quote(requestedScope)} (RFC 6749 section 3.3)`;
}

function internalError(cause: unknown): AgentAuthError {
  return new AgentAuthError("internal_error", "the sign-in failed", { class: "internal", cause });
}
