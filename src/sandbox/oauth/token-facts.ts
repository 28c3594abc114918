import { splitScope } from "../../oauth/model/scope.js";
import { openJwt, type SigningKey } from "./keys.js";

/** The facts of an access token. */
export interface AccessTokenFacts {
  subject: string;
  clientId: string;
  scopes: string[];
  audience: string;
  /** Unix seconds by the sandbox's clock. */
  issuedAt: number;
  /** Unix seconds by the sandbox's clock. */
  expiresAt: number;
  id?: string;
  /** The grant behind it, where it is still known. */
  grantId?: string;
  /** The thumbprint of the key that it is bound to. */
  boundTo?: string;
}

/** The introspection of a valid token (RFC 7662), with its binding (RFC 9449 section 6.2). */
export function introspectionOf(
  issuer: string,
  { scopes, boundTo, ...facts }: AccessTokenFacts,
): Record<string, unknown> {
  return {
    active: true,
    iss: issuer,
    sub: facts.subject,
    client_id: facts.clientId,
    aud: facts.audience,
    exp: facts.expiresAt,
    iat: facts.issuedAt,
    jti: facts.id,
    ...(scopes.length > 0 && { scope: scopes.join(" ") }),
    ...(boundTo === undefined ? { token_type: "Bearer" } : { token_type: "DPoP", cnf: { jkt: boundTo } }),
  };
}

/** Whether a token is a client's own, without the grant of a user. */
export function isMachine({ subject, clientId }: AccessTokenFacts): boolean {
  return subject === clientId;
}

/**
 * The facts of a JWT access token (RFC 9068); `undefined` where it is not of this issuer, or expired.
 *
 * @param now Unix seconds
 */
export function readAccessToken(
  token: string,
  issuer: string,
  key: SigningKey,
  now: number,
): AccessTokenFacts | undefined {
  const { header, claims } = openJwt(token, key) ?? {};
  const { iss, sub, aud, exp, iat, jti, client_id, scope, cnf } = claims ?? {};
  const boundTo = (cnf as { jkt?: unknown } | undefined)?.jkt;
  if (header?.["typ"] !== "at+jwt" || iss !== issuer) return undefined;
  if (typeof exp !== "number" || exp <= now || typeof iat !== "number") return undefined;
  if (typeof sub !== "string" || typeof aud !== "string" || typeof client_id !== "string") return undefined;
  return {
    subject: sub,
    clientId: client_id,
    scopes: typeof scope === "string" ? splitScope(scope) : [],
    audience: aud,
    issuedAt: iat,
    expiresAt: exp,
    ...(typeof jti === "string" && { id: jti }),
    ...(typeof boundTo === "string" && { boundTo }),
  };
}
