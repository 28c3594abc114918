import { verify } from "node:crypto";
import { SIGNING_ALG, type SigningKey } from "./keys.js";

/** What an access token says. */
export interface TokenFacts {
  subject: string;
  clientId: string;
  scopes: string[];
  audience: string;
  /** Unix seconds by the sandbox's clock. */
  issuedAt: number;
  /** Unix seconds by the sandbox's clock. */
  expiresAt: number;
  id?: string;
  /** The grant behind it, as far as it is still known. */
  grantId?: string;
}

/** What a token is held against. */
export interface JwtRules {
  issuer: string;
  key: SigningKey;
  /** Unix seconds. */
  now: number;
}

type Json = Record<string, unknown>;

/** The facts of a JWT access token (RFC 9068); `undefined` where it is not one of this issuer, or not current. */
export function readJwt(token: string, { issuer, key, now }: JwtRules): TokenFacts | undefined {
  const [head = "", body = "", signature = "", ...rest] = token.split(".");
  const header = parse(head);
  if (rest.length > 0 || header?.["alg"] !== SIGNING_ALG || header["kid"] !== key.kid) return undefined;
  if (header["typ"] !== "at+jwt" || !hasSigned(key, `${head}.${body}`, signature)) return undefined;
  const claims = parse(body);
  const { iss, sub, aud, exp, iat, jti, client_id, scope } = claims ?? {};
  if (iss !== issuer || typeof exp !== "number" || exp <= now || typeof iat !== "number") return undefined;
  if (typeof sub !== "string" || typeof aud !== "string" || typeof client_id !== "string") return undefined;
  return {
    subject: sub,
    clientId: client_id,
    scopes: typeof scope === "string" && scope !== "" ? scope.split(" ") : [],
    audience: aud,
    issuedAt: iat,
    expiresAt: exp,
    ...(typeof jti === "string" && { id: jti }),
  };
}

function hasSigned({ publicKey }: SigningKey, text: string, signature: string): boolean {
  const bytes = Buffer.from(signature, "base64url");
  return verify("sha256", Buffer.from(text), { key: publicKey, dsaEncoding: "ieee-p1363" }, bytes);
}

function parse(part: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString("utf8"));
    return typeof value === "object" && value !== null ? (value as Json) : undefined;
  } catch {
    return undefined;
  }
}
