import { AgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import type { LoginRemedy } from "../../remedy.js";
import type { DpopPolicy } from "../dpop/dpop.js";
import { type AuthorizationParams, knownIssuer } from "../model/authorization-params.js";
import type { Grant, GrantKey } from "../model/grant.js";
import { IDP_ACCOUNT, machineGrantOf } from "../model/machine-grant.js";

/** The hint of an error whose remedy is a login and nothing else. */
export const LOGIN_HINT = "call login() with the account and the scope of the remedy";

/** What a login must request so that its token meets the call that needs it. */
export interface LoginParameters {
  /** Scopes, separated by blanks. */
  scope?: string | undefined;
  /** Whether its tokens are bound to a key. */
  dpop?: DpopPolicy | undefined;
  /** The address of the resource metadata, where a login cannot find it. */
  resourceMetadata?: string | undefined;
  /** Parameters of the authorization request. */
  authorizationParams?: AuthorizationParams | undefined;
}

/** The error for a server that needs a login of the user: it names the profile, and its remedy the login. */
export function loginRequired(
  key: GrantKey,
  reason: string,
  { cause, ...parameters }: LoginParameters & { cause?: unknown } = {},
): AgentAuthError {
  const { profile, server } = key;
  const account = key.account === IDP_ACCOUNT ? undefined : key.account;
  const whose = account === undefined ? `profile ${profile}` : `profile ${profile}, account ${quote(account)}`;
  const message = `a login is required for ${quote(server)} (${whose}): ${reason}`;
  const remedy = loginRemedy(key, parameters);
  return new AgentAuthError("login_required", message, { class: "auth", hint: LOGIN_HINT, remedy, cause });
}

/** The login that helps, without defaults. */
export function loginRemedy(
  { profile, server, account }: GrantKey,
  { scope = "", dpop = "auto", resourceMetadata, authorizationParams }: LoginParameters = {},
): LoginRemedy {
  return {
    action: "login",
    server,
    ...(account === IDP_ACCOUNT && { idp: true as const }),
    ...(profile !== "default" && { profile }),
    ...(account !== undefined && account !== IDP_ACCOUNT && { account }),
    ...(scope !== "" && { scope }),
    ...(dpop !== "auto" && { dpop }),
    ...(resourceMetadata !== undefined && { resourceMetadata }),
    ...(authorizationParams !== undefined && { authorizationParams }),
  };
}

/** The parameters with which the issuer of a login without a refresh token is known to return one, if it did not get them. */
export function missingParams({ issuer, tokens, authorizationParams }: Grant): AuthorizationParams | undefined {
  const { offlineParams } = knownIssuer(issuer);
  if (offlineParams === undefined || tokens.refreshToken !== undefined) return undefined;
  const isSent = Object.entries(offlineParams).every(([name, value]) => authorizationParams?.[name] === value);
  return isSent ? undefined : offlineParams;
}

/** The error for an interactive login with the account of a machine grant. */
export function machineAccountError(account: string): AgentAuthError {
  const type = machineGrantOf(account);
  const message = `the account ${quote(account)} belongs to a machine grant and has no interactive login`;
  const hint = "token() of a client with this grant gets a token";
  return new AgentAuthError("usage", message, { class: "usage", hint, remedy: { action: "token", grant: type } });
}
