import { createHash, generateKeyPairSync, type KeyObject, sign, verify } from "node:crypto";
import { isJsonObject, type JsonObject } from "../../http/strict-json.js";

/** The signing key of an authorization server. */
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

/** Generates a key. */
export function createSigningKey(): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { crv, kty, x, y, d } = privateKey.export({ format: "jwk" }) as Record<"crv" | "kty" | "x" | "y" | "d", string>;
  // RFC 7638: these members, in this order.
  const kid = createHash("sha256").update(JSON.stringify({ crv, kty, x, y })).digest("base64url");
  return { kid, publicKey, privateKey, jwk: { kid, use: "sig", alg: SIGNING_ALG, crv, kty, x, y, d } };
}

/** A JWT signed with a key. */
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

function decodePart(part: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString("utf8"));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
