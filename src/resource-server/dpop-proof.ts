import type { JWK } from "jose";
import { messageOf } from "../errors.js";
import { parseUrl } from "../http/address.js";
import { fromBase64url, isBase64url } from "../http/base64url.js";
import { isJsonObject, type JsonObject } from "../http/strict-json.js";
import { escapeText, quote } from "../redact.js";
import { decodePart, loadVerifier, mediaTypeOf } from "./jwt.js";
import { TokenRefusal } from "./refusal.js";
import type { TokenCache } from "./token-cache.js";

export interface ProofRules {
  /** The SHA-256, in base64url, of the token that it comes with. */
  digest: string;
  /** The thumbprint of the key that the token is bound to. */
  boundTo: string;
  /** The HTTP method of the request. */
  method: string;
  /** The address of the request, as {@link requestAddress} returns it; undefined where it has none. */
  address: string | undefined;
  /** Unix seconds. */
  now: number;
  /** Seconds that `iat` may be away from it. */
  window: number;
  /** Seconds that clocks may differ. */
  skew: number;
}

/** The key in the header of a proof; jose imports it once, and not before it is known to be the key of the token. */
export interface ProofKey {
  jwk: JWK;
  /** The thumbprint of the key (RFC 7638). */
  thumbprint: string;
}

export interface ProofFacts {
  /** Its identifier among the proofs by the same key. */
  jti: string;
  /** The nonce, not checked. */
  nonce: unknown;
  /** Unix seconds at which it becomes too old. */
  endsAt: number;
}

/** The accepted algorithms of proofs, as metadata and challenges list them. */
export const PROOF_ALGORITHMS: readonly string[] = ["ES256", "Ed25519", "EdDSA", "PS256", "RS256"];

/** Room for an RSA key and its signature; what is longer is not decoded. */
const MAX_PROOF = 8 * 1024;
/** Bounds what is stored of each proof. */
const MAX_JTI = 256;
/** What is shorter is no longer safe (RFC 7518 section 3.3); what is longer only costs more. */
const MIN_MODULUS_BITS = 2048;
const MAX_MODULUS_BITS = 4096;
const MAX_EXPONENT_BITS = 32;
const PRIVATE_MEMBERS = ["d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"];

/**
 * Checks a proof of a verified token by the rules of RFC 9449 section 4.3. A replay, and its nonce, are
 * for the caller to check. The signature is verified last, and only with the key that the token is bound to: a key that
 * the sender chose costs no computation.
 *
 * @param values every `DPoP` header of the request
 * @param keys the keys of valid proofs, by the first part of those: a client signs all its proofs with one
 * @throws TokenRefusal `proof`, or `bound` for the proof of another key
 */
export async function readProof(
  values: readonly string[],
  rules: ProofRules,
  keys: TokenCache<ProofKey>,
): Promise<ProofFacts> {
  const [value, ...more] = values;
  if (value === undefined) throw invalidProof("no DPoP header");
  if (more.length > 0) throw invalidProof(`${values.length} DPoP headers`);
  if (value.length > MAX_PROOF)
    throw invalidProof(`${value.length} characters, and at most ${MAX_PROOF} are looked at`);
  const parts = value.split(".");
  const [head = "", body = ""] = parts;
  const claims = decodePart(body);
  if (parts.length !== 3 || !parts.every(isBase64url) || !claims) throw notOneJwt();
  const holder = keys.get(head, 0) ?? (await readHeader(head));
  const facts = readClaims(claims, rules);
  if (holder.thumbprint !== rules.boundTo) {
    throw new TokenRefusal("bound", "the proof is by another key than the token's");
  }
  const { compactVerify } = await loadVerifier();
  await compactVerify(value, holder.jwk, { algorithms: [...PROOF_ALGORITHMS] }).catch(throwUnusable);
  keys.put(head, holder, Number.POSITIVE_INFINITY);
  return facts;
}

async function readHeader(head: string): Promise<ProofKey> {
  const header = decodePart(head);
  if (!header) throw notOneJwt();
  const jwk = readKey(header);
  const { calculateJwkThumbprint } = await import("jose/jwk/thumbprint");
  return { jwk, thumbprint: await calculateJwkThumbprint(jwk, "sha256").catch(throwUnusable) };
}

function notOneJwt(): TokenRefusal {
  return invalidProof("the DPoP header is no JWT, or is several");
}

function throwUnusable(error: unknown): never {
  throw invalidProof(escapeText(messageOf(error)));
}

function readKey({ typ, alg, crit, jwk }: JsonObject): JWK {
  if (mediaTypeOf(typ) !== "dpop+jwt") throw invalidProof(`typ ${quote(typ)} must be dpop+jwt`);
  if (typeof alg !== "string" || !PROOF_ALGORITHMS.includes(alg)) {
    throw invalidProof(`alg ${quote(alg)} is not among ${PROOF_ALGORITHMS.join(", ")}`);
  }
  if (crit !== undefined) throw invalidProof(`crit ${quote(crit)} is not understood`);
  if (!isJsonObject(jwk)) throw invalidProof("jwk must be a key");
  // Named, never quoted: the log must not repeat a private key.
  const secret = PRIVATE_MEMBERS.find((name) => Object.hasOwn(jwk, name));
  if (secret !== undefined) throw invalidProof(`jwk has the private member ${secret}`);
  if (jwk["kty"] === "RSA") checkRsaKey(jwk);
  return jwk;
}

/** Bounds the work of a verification, which grows with the length of both numbers (RFC 7518 section 6.3.1). */
function checkRsaKey({ n, e }: JsonObject): void {
  const [modulus, exponent] = [bitsOf(n), bitsOf(e)];
  if (modulus < MIN_MODULUS_BITS || modulus > MAX_MODULUS_BITS) {
    throw invalidProof(`n of jwk has ${modulus} bits, not ${MIN_MODULUS_BITS} to ${MAX_MODULUS_BITS}`);
  }
  if (exponent > MAX_EXPONENT_BITS)
    throw invalidProof(`e of jwk has ${exponent} bits, and at most ${MAX_EXPONENT_BITS} are taken`);
}

/** The length of a number of a key in bits; 0 where it is none. */
function bitsOf(value: unknown): number {
  const bytes = (typeof value === "string" && fromBase64url(value)) || new Uint8Array();
  const first = bytes.findIndex((byte) => byte !== 0);
  return first < 0 ? 0 : (bytes.length - first) * 8 - (Math.clz32(bytes[first] ?? 0) - 24);
}

function readClaims(claims: JsonObject, rules: ProofRules): ProofFacts {
  const { htm, htu, iat, jti, ath, nonce } = claims;
  const { digest, method, address, now, window } = rules;
  if (htm !== method) throw invalidProof(`htm ${quote(htm)} must be ${quote(method)}`);
  if (address === undefined || normalAddress(htu) !== address) {
    throw invalidProof(`htu ${quote(htu)} must be ${quote(address ?? "")}`);
  }
  if (typeof jti !== "string" || jti === "" || jti.length > MAX_JTI) {
    throw invalidProof(`jti must be a text of 1 to ${MAX_JTI} characters`);
  }
  if (typeof iat !== "number") throw invalidProof(`iat ${quote(iat)} must be a number of seconds`);
  // Rounded up, because the client may have rounded up to whole seconds too.
  if (now >= iat + window || iat > Math.ceil(now) + window) {
    throw invalidProof(`iat ${iat} is more than ${window} seconds away, now is ${Math.floor(now)}`);
  }
  checkLifetime(claims, rules);
  if (ath !== digest) throw invalidProof("ath is not the SHA-256 of the token");
  return { jti, nonce, endsAt: iat + window };
}

/** A proof needs neither claim, and where it has one, it is bound to it as any JWT is (RFC 7519 sections 4.1.4 and 4.1.5). */
function checkLifetime({ exp, nbf }: JsonObject, { now, skew }: ProofRules): void {
  if (exp !== undefined && !(typeof exp === "number" && now < exp + skew)) {
    throw invalidProof(`exp ${quote(exp)} must be in the future, now is ${Math.floor(now)}`);
  }
  if (nbf !== undefined && !(typeof nbf === "number" && nbf <= Math.ceil(now) + skew)) {
    throw invalidProof(`nbf ${quote(nbf)} must be in the past, now is ${Math.floor(now)}`);
  }
}

/**
 * The address that clients know a request by: the origin of the resource, since a proxy may have changed the one in the
 * request, with the path of the request. Undefined where the request has none.
 *
 * @param url path and query, or a whole address
 */
export function requestAddress(resource: string, url: string): string | undefined {
  const { origin } = new URL(resource);
  if (url.startsWith("/")) return normalAddress(origin + url);
  const path = parseUrl(url)?.pathname ?? "";
  return path.startsWith("/") ? normalAddress(origin + path) : undefined;
}

/** An address as RFC 3986 section 6.2.2 and 6.2.3 normalise it, without query and fragment. */
function normalAddress(value: unknown): string | undefined {
  const url = parseUrl(value);
  if (url === undefined) return undefined;
  url.search = "";
  url.hash = "";
  return url.href.replace(/%[\da-f]{2}/gi, (escaped) => {
    const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
    return /[\w\-.~]/.test(character) ? character : escaped.toUpperCase();
  });
}

function invalidProof(detail: string): TokenRefusal {
  return new TokenRefusal("proof", detail);
}
