import { Secret } from "../redact.js";
import type { TokenClaims, TokenFacts } from "./claim-checks.js";

/** A verified token. It does not print the token itself. */
export interface VerifiedToken {
  /** The subject; undefined where the token has none. */
  readonly subject: string | undefined;
  /** The client that it was issued to; undefined where the token has none. */
  readonly clientId: string | undefined;
  /** The granted scopes. */
  readonly scopes: readonly string[];
  /** When it expires. */
  readonly expiresAt: Date;
  /** Who issued it: one of the configured issuers. */
  readonly issuer: string;
  /** The audience: this server, and perhaps others. */
  readonly audience: readonly string[];
  /** All its claims, or those of the introspection response. */
  readonly claims: Readonly<TokenClaims>;
  /** The token, which does not print: for exchanging it (RFC 8693). Do not send it to another server. */
  readonly token: Secret;
}

/** A token in the form in which the official MCP SDK hands it to tools as `authInfo`. */
export interface AuthInfo {
  /** The token; inspecting and serialising leave it out. */
  token: string;
  /** Empty where the token has none. */
  clientId: string;
  /** The scopes that were granted. */
  scopes: string[];
  /** Unix seconds. */
  expiresAt: number;
  /** The resource that the token is for. */
  resource: URL;
  /** Facts that the SDK has no member for. */
  extra: { subject: string | undefined; issuer: string; claims: Readonly<TokenClaims> };
}

/** Builds a verified token. */
export function verifiedToken(token: string, issuer: string, facts: TokenFacts, claims: TokenClaims): VerifiedToken {
  const { subject, clientId, scopes, audience, expiresAt } = facts;
  return Object.freeze({
    subject,
    clientId,
    scopes,
    expiresAt: new Date(expiresAt * 1000),
    issuer,
    audience,
    claims,
    token: new Secret(token),
  });
}

/**
 * A verified token in the form of the official MCP SDK: `handler.fetch(request, { authInfo })`, `req.auth`.
 *
 * @param resource the address of the protected server
 */
export function authInfoOf(verified: VerifiedToken, resource: string): AuthInfo {
  const { subject, clientId = "", scopes, expiresAt, issuer, claims, token } = verified;
  const info = {
    clientId,
    scopes: [...scopes],
    expiresAt: Math.floor(expiresAt.getTime() / 1000),
    resource: new URL(resource),
    extra: { subject, issuer, claims },
  };
  return Object.defineProperty(info, "token", { get: () => token.reveal() }) as AuthInfo;
}
