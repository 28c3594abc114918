import { createHash, generateKeyPairSync, type KeyObject, sign, verify } from "node:crypto";
import type { JsonObject } from "../../http/strict-json.js";
import { splitScope } from "../../oauth/model/scope.js";
import { parseJsonObject } from "../http/requests.js";

export interface SigningKey {
  kid: string;
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
  return { kid, publicKey, privateKey, jwk: { kid, use: "sig", alg: SIGNING_ALG, crv, kty, x, y, d } };
}

export function signJwt({ kid, privateKey }: SigningKey, typ: string, claims: JsonObject): string {
  const text = [{ alg: SIGNING_ALG, kid, typ }, claims].map(encodePart).join(".");
  const signature = sign("sha256", Buffer.from(text), { key: privateKey, dsaEncoding: "ieee-p1363" });
  return `${text}.${signature.toString("base64url")}`;
}

/** The header and claims of a JWT that the key signed; `undefined` for any other text. */
export function openJwt(
  token: string,
  { kid, publicKey }: SigningKey,
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
const decodePart = (part: string) => parseJsonObject(Buffer.from(part, "base64url").toString("utf8"));

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
  boundTo?: string;
}

/** The introspection of a valid token (RFC 7662), with its binding (RFC 9449 section 6.2). */
export function readIntrospection(
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
