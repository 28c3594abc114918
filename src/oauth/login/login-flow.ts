import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import { type Events, observe, readKnownCode, readOrigin, readReason } from "../../telemetry/emit.js";
import type { EventFields } from "../../telemetry/events.js";
import { bindUsedClient } from "../client/issuer-binding.js";
import { grantEndpoints } from "../discovery/overrides.js";
import { newProofKey } from "../dpop/dpop.js";
import { withResourceHint } from "../http/oauth-error.js";
import { type Grant, type GrantKey, type TokenResponse, toGrantTokens } from "../model/grant.js";
import { type Reservation, withReservation } from "../model/grant-store.js";
import { listsExchange } from "../model/metadata.js";
import { scopesBeyond } from "../model/scope.js";
import { verifyIdToken } from "../token/token.js";
import type {
  AuthorizedLogin,
  LoginContext,
  LoginRequest,
  PreparedDeviceLogin,
  PreparedLogin,
} from "./authorization.js";
import { asksForConsent, authorize, requireSecrets, tokensOfLogin } from "./authorization.js";
import { noDeviceFlowError, pollDeviceLogin, secondsToPoll, startDeviceLogin } from "./device.js";
import type { LoginSession } from "./login-method.js";
import { type Preparation, planLogin, preferredRedirect, prepareLogin } from "./login-plan.js";

/** Logs the user in and stores the grant, which is read back before the caller gets it. */
export async function loginWith(requested: LoginContext, request: LoginRequest): Promise<Grant> {
  const { signal, method } = request;
  const { context, preparation } = await planLogin(requested, { ...request, flow: requested.flow });
  const { found } = preparation;
  return withReservation(context.store, grantKeyFor(context, found.server), async (reservation) => {
    if (context.flow === "device") {
      if (method.showDeviceCode === undefined) throw noDeviceFlowError(found.issuer.issuer);
      const login = await beginDevice(context, preparation);
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
      const login = await prepareLogin(context, { ...preparation, redirectUri });
      return completeLogin(context, login, { session, reservation, signal });
    });
  });
}

/** Waits in an open session for the callback of a prepared login, and stores the grant. */
export function finishInSession(
  contextOf: () => Promise<LoginContext>,
  login: PreparedLogin,
  session: LoginSession,
  signal: AbortSignal,
): Promise<Grant> {
  return runInSession(session, async () => {
    requireSecrets(login);
    // The login determines the account, not the options of this client.
    const context = { ...(await contextOf()), loginHint: login.account };
    return finishLogin(context, login, "browser", (reservation) =>
      completeLogin(context, login, { session, reservation, signal }),
    );
  });
}

/** Runs the second half of a login, with space for its grant, as one event. */
export function finishLogin<T extends Grant | { again: PreparedLogin }>(
  context: LoginContext,
  { server, issuer }: Pick<PreparedLogin, "server" | "issuer">,
  flow: LoginFields["flow"],
  work: (reservation: Reservation) => Promise<T>,
): Promise<T> {
  return observeLogin(context.events, { server, flow, issuer: issuer.issuer }, () =>
    withReservation(context.store, grantKeyFor(context, server), work),
  );
}

/** Requests the code of a device login, for tokens that are bound to a key where the server requires it. */
export async function beginDevice(context: LoginContext, login: Preparation): Promise<PreparedDeviceLogin> {
  const proofKey = await newProofKey(context.dpop, login.found);
  return startDeviceLogin(context, { ...login, proofKey }).catch(rethrowWithResourceHint(login.resource));
}

/** Polls until the user has entered the code, and stores the grant for the account that the login began with. */
export function finishDevice(requested: LoginContext, login: PreparedDeviceLogin, signal: AbortSignal): Promise<Grant> {
  const context = { ...requested, loginHint: login.account };
  return finishLogin(context, login, "device", (reservation) =>
    completeDevice(context, login, { reservation, signal }),
  );
}

async function completeDevice(
  context: LoginContext,
  login: PreparedDeviceLogin,
  { reservation, signal }: Omit<Completion, "session">,
): Promise<Grant> {
  const rethrow = rethrowWithResourceHint(login.resource);
  const { client, response } = await pollDeviceLogin(context, login, signal).catch(rethrow);
  return saveGrant(context, reservation, buildGrant(context, { ...login, client }, response));
}

/** Runs work in a session and closes it exactly once with the outcome, whatever the failure. */
async function runInSession(session: LoginSession, work: () => Promise<Grant>): Promise<Grant> {
  const grant = await work().catch(async (error: unknown) => {
    const other = { class: "internal", cause: error } as const;
    const shown = isAgentAuthError(error) ? error : new AgentAuthError("internal_error", "the login failed", other);
    await session.close({ ok: false, error: shown });
    throw error;
  });
  const { server, issuer, account } = grant;
  await session.close({ ok: true, login: { server, issuer, account } });
  return grant;
}

export function grantKeyFor({ profile, loginHint }: LoginContext, server: string): GrantKey {
  return { profile, server, account: loginHint };
}

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

export async function exchangeLogin(
  context: LoginContext,
  authorized: AuthorizedLogin,
  { reservation, signal }: Omit<Completion, "session">,
): Promise<Grant> {
  const rethrow = rethrowWithResourceHint(authorized.login.resource);
  const { client, response } = await tokensOfLogin(context, authorized, signal).catch(rethrow);
  return saveGrant(context, reservation, buildGrant(context, { ...authorized.login, client }, response));
}

export function rethrowWithResourceHint(resource: string): (error: unknown) => never {
  return (error) => {
    throw withResourceHint(error, resource);
  };
}

type LoginFields = Omit<EventFields<"login">, "durationMs">;

/**
 * Runs a login and emits one event for it; none for one that the user is to begin once more.
 *
 * @param login its server, how the user logs in, and the issuer if it is known
 */
export function observeLogin<T extends Grant | { again: unknown }>(
  events: Events,
  { server, flow, issuer }: { server: string; flow: LoginFields["flow"]; issuer?: string },
  work: () => Promise<T>,
): Promise<T> {
  return observe(events, "login", work, (ended): LoginFields | undefined => {
    const details = { flow, issuer, server: readOrigin(server) };
    if ("result" in ended)
      return "again" in ended.result ? undefined : { outcome: "completed", ...details, issuer: ended.result.issuer };
    const { error } = ended;
    const outcome = isAgentAuthError(error) && error.class === "aborted" ? "aborted" : "failed";
    return { outcome, reason: readReason(error), code: readKnownCode(error), ...details };
  });
}

function buildGrant(
  context: LoginContext,
  login: Omit<PreparedLogin, "pending" | "account" | "addedScope"> & Partial<Pick<PreparedLogin, "pending">>,
  response: TokenResponse,
): Grant {
  const { server, issuer, client, scope, resource, overrides, acceptedTokenType, proofKey, pending } = login;
  const isTrial = pending !== undefined && scope.includes("offline_access") && !asksForConsent(pending);
  const requestedScope = scope.length > 0 ? scope.join(" ") : undefined;
  return {
    profile: context.profile,
    server,
    account: context.loginHint,
    resource,
    issuer: issuer.issuer,
    namedIssuer: issuer.namedIssuer,
    endpoints: grantEndpoints(issuer),
    client,
    requestedScope,
    overrides,
    acceptedTokenType,
    authorizationParams: login.authorizationParams,
    needsConsent: isTrial ? response.refreshToken === undefined : login.needsConsent,
    exchanges: listsExchange(issuer),
    proofKey,
    tokens: toGrantTokens(response, requestedScope),
    signedInAt: response.at,
    refusals: context.refusals,
    generation: 0,
    retired: undefined,
  };
}

const SAVE_TRIES = 5;

/** Stores a new grant in place of any other, and reads it back: a login counts only if its grant is stored. */
async function saveGrant(context: LoginContext, reservation: Reservation, grant: Grant): Promise<Grant> {
  const { store, onProgress } = context;
  if (context.requiresIdToken) await verifyIdToken(grant, { ...context, now: context.clock.epoch() });
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
      if (extra.length > 0) onProgress?.({ subject: "login", text: widerScopeWarning(grant, extra) });
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
  const what = `the token has more scopes than requested: ${quote(issuer)} granted ${quote(extra.join(" "))}`;
  return `warning: ${what} beside ${quote(requestedScope)} (RFC 6749 section 3.3)`;
}
