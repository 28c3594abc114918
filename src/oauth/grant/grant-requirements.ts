import { quote } from "../../redact.js";
import type { PreRegisteredClient } from "../client/pre-registered-client.js";
import { type DpopPolicy, fitsPolicy } from "../dpop/dpop.js";
import type { AuthorizationParams } from "../model/authorization-params.js";
import type { BearerChallenge } from "../model/challenge.js";
import type { Grant } from "../model/grant.js";
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

/** What the grant of a request must meet. */
export interface GrantOptions extends TokenOptions {
  /** The challenge of the response to the request without a token: the server requires a login. */
  challenge?: BearerChallenge | undefined;
}

/** What a stored grant must meet to be used. */
export interface GrantRequirements {
  /** Whether its tokens must be bound to a key. */
  dpop: DpopPolicy;
  /** The resource of its tokens, in place of the one that the server names. */
  resource?: string | undefined;
  /** The only issuer to accept. */
  expectedIssuer?: string | undefined;
  /** The client that the tokens must be issued to. */
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
