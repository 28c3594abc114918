import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { newProofKey } from "../dpop/dpop.js";
import { withResourceHint } from "../http/oauth-error.js";
import type { Grant, GrantKey } from "../model/grant.js";
import { type Reservation, withReservation } from "../model/grant-store.js";
import { authorize } from "./authorize-step.js";
import { noDeviceFlowError, pollDeviceLogin, secondsToPoll, startDeviceLogin } from "./device.js";
import type { LoginContext, LoginRequest } from "./login-context.js";
import { observeLogin } from "./login-event.js";
import type { LoginSession } from "./login-method.js";
import { type Preparation, planLogin } from "./login-plan.js";
import { preferredRedirect, prepareLogin } from "./login-preparation.js";
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

function internalError(cause: unknown): AgentAuthError {
  return new AgentAuthError("internal_error", "the login failed", { class: "internal", cause });
}
