import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";
import type { ClientKey, SigningAlgorithm } from "../../src/oauth/client/client-auth.js";

/** A key pair of a client: what it signs with, and what its issuer knows. */
export async function clientKey(algorithm: SigningAlgorithm = "ES256", keyId?: string) {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
  const key: ClientKey = { key: privateKey, algorithm, ...(keyId !== undefined && { keyId }) };
  return { key, publicKey, jwk: (): Promise<JWK> => exportJWK(privateKey) };
}

/** A JWT whose signature is not checked. */
export function unsignedJwt(claims: Record<string, unknown>, header: Record<string, unknown> = {}): Promise<string> {
  const secret = new TextEncoder().encode("a secret that only this test knows");
  return new SignJWT(claims).setProtectedHeader({ alg: "HS256", ...header }).sign(secret);
}
