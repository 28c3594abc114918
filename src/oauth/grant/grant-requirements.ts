import { AgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import type { LoginRemedy } from "../../remedy.js";
import type { PreRegisteredClient } from "../client/client-auth.js";
import { type DpopPolicy, fitsPolicy } from "../dpop/dpop.js";
import { type AuthorizationParams, knownIssuer } from "../model/authorization-params.js";
import type { BearerChallenge } from "../model/challenge.js";
import type { Grant, GrantKey } from "../model/grant.js";
import { IDP_ACCOUNT, parseMachineAccount } from "../model/machine-grant.js";
import { isSameIssuer } from "../model/metadata.js";
import { NO_RESOURCE } from "../model/resource.js";

/** What a token must meet. */
export interface TokenOptions {
  /** Required scopes, separated by blanks. */
  scope?: string | undefined;
  /**
   * Minimum remaining lifetime in seconds, at most nine tenths of its lifetime. Default: 60, or half of its lifetime if
   * that is less.
   */
  minTtl?: number | undefined;
  /** Gets a new token even if the stored one is valid. */
  forceRefresh?: boolean | undefined;
  /** Whether to log in if needed. Default: true if the client has a `login` method. */
  login?: boolean | undefined;
  /** Aborts the call of this caller; shared work continues for others. */
  signal?: AbortSignal | undefined;
}

/** What a login requests. */
export interface LoginOptions extends Pick<TokenOptions, "scope" | "signal"> {
  /** Parameters of the authorization request for this login; each replaces that of the client of the same name. */
  authorizationParams?: AuthorizationParams | undefined;
}

export interface GrantOptions extends TokenOptions {
  /** The challenge of the response to the request without a token: the server requires a login. */
  challenge?: BearerChallenge | undefined;
}

export interface GrantRequirements {
  dpop: DpopPolicy;
  /** The resource of its tokens, in place of the one that the server names. */
  resource?: string | undefined;
  expectedIssuer?: string | undefined;
  preRegistered: PreRegisteredClient | undefined;
}

/** Why a grant does not meet the requirements; undefined if it does. */
export function findUnmetRequirement(
  grant: Grant,
  { dpop, resource, expectedIssuer, preRegistered }: GrantRequirements,
): string | undefined {
  if (!fitsPolicy(grant, dpop)) return `the token is ${grant.proofKey ? "" : "not "}bound to a key (DPoP)`;
  if (resource !== undefined && resource !== grant.resource) {
    return grant.resource === NO_RESOURCE
      ? "the token was requested without a resource"
      : `the token is for ${quote(grant.resource)}`;
  }
  if (expectedIssuer !== undefined && !isSameIssuer(expectedIssuer, grant.issuer))
    return `the token comes from the issuer ${quote(grant.issuer)}`;
  const { clientId } = grant.client;
  if (preRegistered !== undefined && preRegistered.clientId !== clientId)
    return `the token was issued to the client ${quote(clientId)}`;
  return undefined;
}

/** The hint of an error whose remedy is a login and nothing else. */
export const LOGIN_HINT = "call login() with the account and the scope of the remedy";

/** What a login must request so that its token meets the call that needs it. */
export interface LoginParameters {
  /** Scopes, separated by blanks. */
  scope?: string | undefined;
  dpop?: DpopPolicy | undefined;
  /** The address of the resource metadata, where a login cannot find it. */
  resourceMetadata?: string | undefined;
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
  const type = parseMachineAccount(account);
  const message = `the account ${quote(account)} belongs to a machine grant and has no interactive login`;
  const hint = "token() of a client with this grant gets a token";
  return new AgentAuthError("usage", message, { class: "usage", hint, remedy: { action: "token", grant: type } });
}
