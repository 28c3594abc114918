import { SECRET_MASK, Secret } from "../../redact.js";
import type { AuthorizationParams } from "./authorization-params.js";
import { grantedScope, splitScope } from "./scope.js";

/** How a client authenticates at the token endpoint (RFC 7591 section 2). */
export type AuthMethod = "none" | "client_secret_basic" | "client_secret_post" | "private_key_jwt";

/** A client of one issuer: identifies the agent, not the user. */
export interface ClientRecord {
  /** The issuer that knows it. */
  readonly issuer: string;
  /** Its `client_id`. */
  readonly clientId: string;
  /** Its secret; undefined for a public client. */
  readonly clientSecret: Secret | undefined;
  /** Unix milliseconds at which the secret expires; undefined for never. */
  readonly secretExpiresAt: number | undefined;
  /** How it authenticates. */
  readonly authMethod: AuthMethod;
  /** The other method for its secret, for one more try where an endpoint rejects the first; absent once it is in use. */
  readonly alternateMethod?: "client_secret_basic" | "client_secret_post" | undefined;
  /** Whether Basic has the id and the secret as they are: the issuer does not decode them (RFC 6749 section 2.3.1). */
  readonly isRawBasic?: true | undefined;
  /** How it was registered. */
  readonly source: "pre-registered" | "metadata-document" | "dynamic";
  /** The redirect address it was registered with, or last used. */
  readonly redirectUri: string | undefined;
  /** The name that it was registered under; undefined if it was not registered by us. */
  readonly clientName?: string | undefined;
  /** Unix milliseconds of this and earlier registrations within the last day, for a client registered by us. */
  readonly registeredAt?: readonly number[] | undefined;
  /** Whether the issuer rejects it: another client is to be registered in its place. */
  readonly isRefused?: boolean | undefined;
}

/** Addresses of the issuer that later requests need. */
export interface GrantEndpoints {
  /** The token endpoint. */
  readonly token: string;
  /** Where tokens are introspected (RFC 7662). */
  readonly introspection: string | undefined;
  /** Where tokens are revoked (RFC 7009). */
  readonly revocation: string | undefined;
  /** Where sessions are ended (OpenID Connect RP-Initiated Logout). */
  readonly endSession: string | undefined;
  /** The issuer's keys. */
  readonly jwks: string | undefined;
}

/** The tokens of a grant. */
export interface GrantTokens {
  /** The token that the MCP server takes. */
  readonly accessToken: Secret;
  /** The refresh token, if the issuer returned one. */
  readonly refreshToken: Secret | undefined;
  /** The OpenID Connect id token, if the issuer returned one. */
  readonly idToken: Secret | undefined;
  /** Unix milliseconds at which the access token expires; undefined if the issuer did not say. */
  readonly expiresAt: number | undefined;
  /** Unix milliseconds at which the access token was received. */
  readonly obtainedAt: number;
  /** The scopes granted; undefined if neither requested nor returned. */
  readonly scope: string | undefined;
}

/** A refresh whose response was lost: the issuer may consider the refresh token used. */
export interface LostRefresh {
  /** Unix milliseconds at which the loss was noticed. */
  readonly at: number;
  /** The code of the error that the refresh failed with. */
  readonly code: string;
  /** The generation of the tokens, which the marked grant still has. */
  readonly generation: number;
}

/**
 * The result of a finished login. It is immutable, and every later request is built from it, so that none can omit the
 * resource, the client or its authentication method.
 */
export interface Grant {
  /** The profile that the login belongs to. */
  readonly profile: string;
  /** The MCP server, canonical. */
  readonly server: string;
  /** The account that the login requested, if one was named. */
  readonly account: string | undefined;
  /** The `resource` parameter, byte for byte as in the metadata; `none` if none is sent. */
  readonly resource: string;
  /** The authorization server that issued the tokens. */
  readonly issuer: string;
  /** The issuer that the server named, if the user named another one in its place. */
  readonly namedIssuer?: string | undefined;
  /** Addresses of the issuer. */
  readonly endpoints: GrantEndpoints;
  /** The client that the tokens were issued to. */
  readonly client: ClientRecord;
  /** The scopes that were requested. */
  readonly requestedScope: string | undefined;
  /**
   * What the user chose for this issuer, by the names of the client's options: the checks that are disabled, and
   * `resource` if the resource is the user's.
   */
  readonly overrides: readonly string[];
  /** The token type beside `Bearer` that the user accepts from this issuer as one of bearer tokens. */
  readonly acceptedTokenType?: string | undefined;
  /** The user's parameters of the authorization request, which the next login sends as well. */
  readonly authorizationParams?: AuthorizationParams | undefined;
  /**
   * Whether the issuer returns a refresh token for `offline_access` after a forced consent alone, as the last login
   * without one showed; undefined if none did.
   */
  readonly needsConsent?: boolean | undefined;
  /** Whether a refresh names the scopes, as the issuer required at an earlier one. */
  readonly refreshesWithScope?: boolean | undefined;
  /** Whether a refresh has no `resource`, which the issuer refused at an earlier one. */
  readonly refreshesWithoutResource?: boolean | undefined;
  /** Whether the last refresh left the refresh token as it was, so that a second use of it does no harm. */
  readonly reusesRefreshToken?: boolean | undefined;
  /** Whether the issuer listed token exchange at the login; undefined if it listed no grant types. */
  readonly exchanges?: boolean | undefined;
  /** The private key, as the text of a JWK, that the tokens are bound to (RFC 9449); undefined for bearer tokens. */
  readonly proofKey?: Secret | undefined;
  /**
   * How the program that stored a machine grant gets its proof again, in words of its own: a client without a machine
   * grant uses this one. Its client's secret is stored then.
   */
  readonly recipe?: Secret | undefined;
  /** The tokens of the last token response. */
  readonly tokens: GrantTokens;
  /** Unix milliseconds of the login; the same in every generation of it. */
  readonly signedInAt: number;
  /**
   * Unix milliseconds of the newest token response that a use requested, where a later one was requested to keep the login
   * alive; undefined if the last token response was requested by a use.
   */
  readonly usedAt?: number | undefined;
  /** Unix milliseconds of the last refreshes after a server rejected the token, oldest first. */
  readonly refusals: readonly number[];
  /** Incremented with every stored change: a token response, a mark. */
  readonly generation: number;
  /** Set if the response to a refresh was lost; the next response removes it. */
  readonly lostRefresh?: LostRefresh | undefined;
  /** Set if the issuer rejected the grant. Nothing is deleted: a later login replaces it. */
  readonly retired: { readonly at: number; readonly reason: string } | undefined;
}

/** A token response whose form has been checked. */
export interface TokenResponse {
  readonly accessToken: string;
  readonly refreshToken: string | undefined;
  readonly idToken: string | undefined;
  /** Seconds, those of a JWT where the response omits them; undefined if neither says. */
  readonly expiresIn: number | undefined;
  readonly scope: string | undefined;
  /** Unix milliseconds: the `Date` of the response, else our clock. */
  readonly at: number;
}

const YEAR_MS = 365 * 24 * 3600 * 1000;

/** The tokens of the first token response. */
export function toGrantTokens(response: TokenResponse, requestedScope: string | undefined): GrantTokens {
  return {
    accessToken: new Secret(response.accessToken),
    refreshToken: response.refreshToken === undefined ? undefined : new Secret(response.refreshToken),
    idToken: response.idToken === undefined ? undefined : new Secret(response.idToken),
    expiresAt:
      response.expiresIn === undefined ? undefined : response.at + Math.min(response.expiresIn * 1000, YEAR_MS),
    obtainedAt: response.at,
    scope: grantedScope(response.scope, requestedScope),
  };
}

/**
 * Merges the response to a refresh into a grant: the only place that decides how a token response changes one. A
 * refresh token, an id token or a scope that the response omits stays as it was (RFC 6749 section 6).
 */
export function mergeResponse(grant: Grant, response: TokenResponse): Grant {
  const { tokens } = grant;
  const fresh = toGrantTokens(response, tokens.scope);
  const { refreshToken = tokens.refreshToken } = fresh;
  return {
    ...grant,
    reusesRefreshToken: (refreshToken && refreshToken.reveal() === tokens.refreshToken?.reveal()) || undefined,
    tokens: { ...fresh, refreshToken, idToken: fresh.idToken ?? tokens.idToken },
    usedAt: undefined,
    generation: grant.generation + 1,
    lostRefresh: undefined,
    retired: undefined,
  };
}

/** The grant, marked as rejected by its issuer. */
export function retire(grant: Grant, reason: string, at: number): Grant {
  return { ...grant, generation: grant.generation + 1, lostRefresh: undefined, retired: { at, reason } };
}

/** The generation of a grant's tokens; a mark on them increments only the generation of the grant. */
export function tokenGeneration({ lostRefresh, generation }: Grant): number {
  return lostRefresh?.generation ?? generation;
}

/** Whether two grants hold the same tokens. A login after a logout restarts the generations. */
export function hasSameTokens(one: Grant, other: Grant): boolean {
  return tokenGeneration(one) === tokenGeneration(other) && one.signedInAt === other.signedInAt;
}

/** How far the clock of this machine may go back before its earlier times count as wrong. */
const CLOCK_SLACK_MS = 60_000;

/**
 * Whether the access token has expired. If it was received in what is now the future, the clock was wrong and its
 * expiry is unknown: it counts as expired.
 */
export function hasExpired({ expiresAt, obtainedAt }: Pick<GrantTokens, "expiresAt" | "obtainedAt">, now: number) {
  return expiresAt !== undefined && (expiresAt <= now || now < obtainedAt - CLOCK_SLACK_MS);
}

/** Default minimum remaining lifetime in seconds. */
const DEFAULT_MIN_TTL_S = 60;

/**
 * Whether the access token is valid for `minTtl` more seconds. So that a short-lived token can be fresh at all,
 * `minTtl` counts up to nine tenths of its lifetime, and the default up to half of it. A token without a known expiry
 * is fresh until the server rejects it.
 */
export function isFresh(grant: Grant, now: number, minTtl: number | undefined): boolean {
  if (grant.retired || hasExpired(grant.tokens, now)) return false;
  const { expiresAt, obtainedAt } = grant.tokens;
  if (expiresAt === undefined) return true;
  const share = minTtl === undefined ? 0.5 : 0.9;
  const wanted = Math.min((minTtl ?? DEFAULT_MIN_TTL_S) * 1000, (expiresAt - obtainedAt) * share);
  return expiresAt - now > wanted;
}

export function coversScope(grant: Grant, requestedScopes: readonly string[] | undefined): boolean {
  if (!requestedScopes || requestedScopes.length === 0) return true;
  const granted = new Set(splitScope(grant.tokens.scope));
  return requestedScopes.every((scope) => granted.has(scope));
}

/** Identifies a grant: the login of one profile, and of one account if several are in use, at one MCP server. */
export interface GrantKey {
  /** The profile that the login belongs to. */
  readonly profile: string;
  /** The MCP server, canonical. */
  readonly server: string;
  /** The account that the login requested; undefined if none was named. */
  readonly account?: string | undefined;
}

/** A token for one MCP server. Printing it shows a mask: only {@link AccessToken.value} returns the token. */
export class AccessToken {
  readonly #value: string;
  /** The MCP server that it is for, canonical. */
  readonly server: string;
  /** The account that the login requested; undefined if none was named. */
  readonly account: string | undefined;
  /**
   * The token type: a `DPoP` token is valid only with a proof of its key in every request, which `agent.fetch` sends.
   */
  readonly tokenType: "Bearer" | "DPoP";
  /** The `resource` that was sent to the issuer (RFC 8707); `none` if none was sent, by the choice of the user. */
  readonly resource: string;
  /** Who issued it. */
  readonly issuer: string;
  /** When it expires; undefined if the issuer did not say. */
  readonly expiresAt: Date | undefined;
  /** The scopes granted; undefined if neither requested nor returned. */
  readonly scope: string | undefined;

  constructor(grant: Grant) {
    this.#value = grant.tokens.accessToken.reveal();
    this.server = grant.server;
    this.account = grant.account;
    this.tokenType = grant.proofKey === undefined ? "Bearer" : "DPoP";
    this.resource = grant.resource;
    this.issuer = grant.issuer;
    this.expiresAt = grant.tokens.expiresAt === undefined ? undefined : new Date(grant.tokens.expiresAt);
    this.scope = grant.tokens.scope;
  }

  /** The token itself. */
  get value(): string {
    return this.#value;
  }

  /** A mask, so that a token in a text is not shown. */
  toString(): string {
    return SECRET_MASK;
  }
}
