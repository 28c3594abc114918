/** What the log says of each reason, once: `…` is what a token, a proof or an issuer had, or the time. */
const DETAILS: Readonly<Record<string, readonly string[]>> = {
  algorithm: [
    'alg "…" is not among ES256, ES384, ES512, EdDSA, Ed25519, PS256, PS384, PS512, RS256, RS384, RS512',
    'alg "RS256" is not among PS256, ES256',
  ],
  audience: ['aud "…" must be a text or a list of texts', 'aud "…" must have "…" exactly (RFC 8707)'],
  bad_address: [
    'jwks_uri (from "…") is missing, and must be an absolute URL',
    'jwks_uri "…" (from "…") must be an https address',
    'jwks_uri "…" (from "…") must be an https address (OAuth 2.1 section 1.5)',
    'jwks_uri "https://********@as.example/jwks" (from "…") must not contain a user name or password',
    'jwks_uri "…" (from "…") leads to a link-local, metadata or reserved address, where nothing is ever sent (RFC 9728 section 7.7)',
    'jwks_uri "…" (from "…") leads into a private network, which a server outside of it must not name (RFC 9728 section 7.7)',
  ],
  bad_envelope: ['the keys of "…" are no key set (RFC 7517 section 5)'],
  bound: [
    'cnf "…" must have jkt alone, a thumbprint (RFC 9449 section 6)',
    "the proof is by another key than the token's",
    "the token is bound to a key, no bearer token",
  ],
  claims: [
    "exp is missing (RFC 9068 section 2.2)",
    'exp "…" must be a number of seconds',
    'nbf "0" must be a number of seconds',
    'iat "true" must be a number of seconds',
    'sub "5" must be a text',
    'client_id "["agent"]" must be a text',
  ],
  critical: ['crit "…" is not understood'],
  dns_failed: ["as.example: the host name could not be resolved (ENOTFOUND: unknown host)"],
  encrypted: ["the token is encrypted (JWE), which is not supported"],
  expired: ["exp … has passed, now is …"],
  inactive: ['active is "…"'],
  issuer: ['iss "…" is not an accepted issuer', 'iss "…" must be "…"'],
  issuer_mismatch: ['issuer "…" (from "…") must be exactly "…" (RFC 8414 section 3.3)'],
  key: ["no applicable key found in the JSON Web Key Set"],
  malformed: ["no token68 after Bearer (RFC 6750 section 2.1)"],
  missing: ["no Authorization header", "another scheme than Bearer", "another scheme than DPoP"],
  nonce: ["the nonce of the proof is missing, or none of ours"],
  not_a_jwt: ["the token is no JWT", "a part of the token is not base64url without padding (RFC 7515 section 2)"],
  not_yet: ["nbf … is in the future, now is …", "iat … is in the future, now is …"],
  proof: [
    "no DPoP header",
    "… characters, and at most 8192 are looked at",
    "the DPoP header is no JWT, or is several",
    'typ "…" must be dpop+jwt',
    'alg "…" is not among ES256, Ed25519, EdDSA, PS256, RS256',
    'crit "…" is not understood',
    "jwk must be a key",
    "jwk has the private member …",
    "n of jwk has … bits, not 2048 to 4096",
    "e of jwk has … bits, and at most 32 are taken",
    "signature verification failed",
    'htm "…" must be "POST"',
    'htu "…" must be "https://mcp.example/mcp"',
    'iat "…" must be a number of seconds',
    "iat … is more than 60 seconds away, now is …",
    'exp "…" must be in the future, now is …',
    'nbf "…" must be in the past, now is …',
    "jti must be a text of 1 to 256 characters",
    "ath is not the SHA-256 of the token",
  ],
  replayed: ["the proof was used before"],
  scheme: ["Bearer is not accepted", "DPoP is not accepted"],
  signature: ["signature verification failed", "the signature does not have the length of its key"],
  too_large: ["… characters, and at most 16384 are looked at"],
  typ: [
    'typ "…" must be at+jwt (RFC 9068 section 2.1)',
    'token_type "…" is no access token',
    'token_use "…" is no access token',
    "at_hash is a claim of ID tokens",
    "c_hash is a claim of ID tokens",
  ],
  unbound: ["a bearer token, presented as bound to a key"],
  unknown_key: ["no applicable key found in the JSON Web Key Set"],
};

/** Whether the log may say this of a reason. */
export const isDetailOf = (reason: string, detail: string): boolean =>
  (DETAILS[reason] ?? []).some((known) => {
    const parts = known.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    return new RegExp(`^${parts.join(".*")}$`, "s").test(detail);
  });
