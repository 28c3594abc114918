import { createHash, generateKeyPairSync, type KeyObject, sign, verify } from "node:crypto";
import type { JsonObject } from "../../http/strict-json.js";
import { decodePart } from "../../resource-server/jwt.js";

export interface SigningKey {
  publicKey: KeyObject;
  privateKey: KeyObject;
  /** The JWK with the private part. */
  jwk: Record<"kid" | "use" | "alg" | "kty" | "crv" | "x" | "y" | "d", string>;
}

/**
 * The algorithm of every signature. OpenID clients expect RS256 for ID tokens unless they registered another algorithm,
 * but generating an RSA key takes a second, and the service does not document ID tokens.
 */
export const SIGNING_ALG = "ES256";

export function createSigningKey(): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { crv, kty, x, y, d } = privateKey.export({ format: "jwk" }) as Record<"crv" | "kty" | "x" | "y" | "d", string>;
  // RFC 7638: these members, in this order.
  const kid = createHash("sha256").update(JSON.stringify({ crv, kty, x, y })).digest("base64url");
  return { publicKey, privateKey, jwk: { kid, use: "sig", alg: SIGNING_ALG, crv, kty, x, y, d } };
}

export function signJwt({ jwk: { kid }, privateKey }: SigningKey, typ: string, claims: JsonObject): string {
  const text = [{ alg: SIGNING_ALG, kid, typ }, claims].map(encodePart).join(".");
  const signature = sign("sha256", Buffer.from(text), { key: privateKey, dsaEncoding: "ieee-p1363" });
  return `${text}.${signature.toString("base64url")}`;
}

/** The header and claims of a JWT that the key signed; `undefined` for any other text. */
export function openJwt(
  token: string,
  { jwk: { kid }, publicKey }: SigningKey,
): { header: JsonObject; claims: JsonObject } | undefined {
  const [head = "", body = "", signature = "", ...rest] = token.split(".");
  const [header, claims] = [decodePart(head), decodePart(body)];
  if (rest.length > 0 || !claims || header?.["alg"] !== SIGNING_ALG || header["kid"] !== kid) return undefined;
  const bytes = Buffer.from(signature, "base64url");
  const isSigned = verify(
    "sha256",
    Buffer.from(`${head}.${body}`),
    { key: publicKey, dsaEncoding: "ieee-p1363" },
    bytes,
  );
  return isSigned ? { header, claims } : undefined;
}

const encodePart = (value: JsonObject) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A valid access token (RFC 9068), or what one says that is opaque; the times by the sandbox's clock. */
export interface IssuedToken {
  claims: {
    iss: string;
    sub: string;
    client_id: string;
    aud: string;
    exp: number;
    iat: number;
    jti: string;
    scope?: string;
    /** The key that it is bound to (RFC 9449 section 6). */
    cnf?: { jkt: string };
  };
  /** The grant behind it, where it is still known. */
  grantId: string | undefined;
}

/** The introspection of a valid token (RFC 7662), with its binding (RFC 9449 section 6.2). */
export function readIntrospection({ claims }: IssuedToken): Record<string, unknown> {
  return { active: true, ...claims, token_type: claims.cnf === undefined ? "Bearer" : "DPoP" };
}

/** Whether a token is a client's own, without the grant of a user. */
export function isMachine({ claims }: IssuedToken): boolean {
  return claims.sub === claims.client_id;
}

/**
 * The claims of a JWT access token (RFC 9068), which only the key's owner can have written; `undefined` where it is not of this
 * issuer, or expired.
 *
 * @param now Unix seconds
 */
export function readAccessToken(
  token: string,
  issuer: string,
  key: SigningKey,
  now: number,
): IssuedToken["claims"] | undefined {
  const { header, claims } = openJwt(token, key) ?? {};
  if (header?.["typ"] !== "at+jwt" || claims?.["iss"] !== issuer || Number(claims["exp"]) <= now) return undefined;
  return claims as unknown as IssuedToken["claims"];
}
