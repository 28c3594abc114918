import { createHash, generateKeyPair, generateKeyPairSync, type JsonWebKey, type KeyObject } from "node:crypto";
import { promisify } from "node:util";

/** The key with which an authorization server signs. */
export interface SigningKey {
  kid: string;
  publicKey: KeyObject;
  /** With the private part. */
  jwk: JsonWebKey & { kid: string };
}

/** What access tokens are signed with. */
export const SIGNING_ALG = "ES256";

/** What ID tokens are signed with: clients expect no other unless they registered it (OpenID Connect Registration). */
export const ID_TOKEN_ALG = "RS256";

/** Makes a key for access tokens. */
export function createSigningKey(): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { crv, kty, x, y, d } = privateKey.export({ format: "jwk" }) as Record<"crv" | "kty" | "x" | "y" | "d", string>;
  // RFC 7638: these members, in this order.
  const kid = createHash("sha256").update(JSON.stringify({ crv, kty, x, y })).digest("base64url");
  return { kid, publicKey, jwk: { kid, use: "sig", alg: SIGNING_ALG, crv, kty, x, y, d } };
}

let idTokenJwk: Promise<JsonWebKey> | undefined;

/** The key for ID tokens: one for the whole process, since it takes long to make. */
export function idTokenKey(): Promise<JsonWebKey> {
  idTokenJwk ??= promisify(generateKeyPair)("rsa", { modulusLength: 2048 }).then(({ privateKey }) => {
    return { ...privateKey.export({ format: "jwk" }), kid: "id-token", use: "sig", alg: ID_TOKEN_ALG };
  });
  return idTokenJwk;
}
