import { createHash, generateKeyPairSync, type JsonWebKey, type KeyObject } from "node:crypto";

/** The key with which an authorization server signs. */
export interface SigningKey {
  kid: string;
  publicKey: KeyObject;
  /** With the private part. */
  jwk: JsonWebKey & { kid: string };
}

/**
 * What every token is signed with. It is not what OpenID clients expect of an ID token unless they registered it, but an
 * RSA key takes a second to make, and the service has no word about ID tokens.
 */
export const SIGNING_ALG = "ES256";

/** Makes a key. */
export function createSigningKey(): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { crv, kty, x, y, d } = privateKey.export({ format: "jwk" }) as Record<"crv" | "kty" | "x" | "y" | "d", string>;
  // RFC 7638: these members, in this order.
  const kid = createHash("sha256").update(JSON.stringify({ crv, kty, x, y })).digest("base64url");
  return { kid, publicKey, jwk: { kid, use: "sig", alg: SIGNING_ALG, crv, kty, x, y, d } };
}
