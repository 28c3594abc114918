import { base64url, type CryptoKey } from "jose";
import type { JsonObject } from "../http/strict-json.js";
import { type NodeCrypto, nodeCrypto } from "./node-crypto.js";

/** An algorithm of RFC 7518 section 3.1 or RFC 8037: what the key must be, and how `node:crypto` verifies with it. */
interface Algorithm {
  /** The name of the key's algorithm in Web Crypto. */
  name: string;
  curve?: string;
  hash: string | null;
  /** The length of a signature; that of an RSA signature is that of the modulus. */
  bytes?: number;
  saltLength?: number;
}

const ALGORITHMS = new Map<string, Algorithm>([
  ["ES256", { name: "ECDSA", curve: "P-256", hash: "SHA-256", bytes: 64 }],
  ["ES384", { name: "ECDSA", curve: "P-384", hash: "SHA-384", bytes: 96 }],
  ["ES512", { name: "ECDSA", curve: "P-521", hash: "SHA-512", bytes: 132 }],
  ["EdDSA", { name: "Ed25519", hash: null, bytes: 64 }],
  ["Ed25519", { name: "Ed25519", hash: null, bytes: 64 }],
  ["RS256", { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" }],
  ["RS384", { name: "RSASSA-PKCS1-v1_5", hash: "SHA-384" }],
  ["RS512", { name: "RSASSA-PKCS1-v1_5", hash: "SHA-512" }],
  ["PS256", { name: "RSA-PSS", hash: "SHA-256", saltLength: 32 }],
  ["PS384", { name: "RSA-PSS", hash: "SHA-384", saltLength: 48 }],
  ["PS512", { name: "RSA-PSS", hash: "SHA-512", saltLength: 64 }],
]);

/** What is shorter is no longer safe (RFC 7518 section 3.3). */
const MIN_MODULUS_BITS = 2048;
const PKCS1_PADDING = 1;
const PSS_PADDING = 6;
const encoder = new TextEncoder();
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** What Web Crypto says of the algorithm of a key. */
interface KeyAlgorithm {
  name: string;
  namedCurve?: string;
  modulusLength?: number;
  hash?: { name: string };
}

/** The key objects of keys, undefined for a key that `node:crypto` does not take. */
const objects = new WeakMap<CryptoKey, object | undefined>();

/**
 * Whether `node:crypto` verifies a token that jose would verify too. False says nothing: jose decides then, and names
 * the reason. So it may refuse too much, and must never accept more than jose.
 *
 * @param header the protected header, as the token has it
 * @param key the key that jose selected and imported for the header
 */
export function isSignedBy(
  token: string,
  { alg, crit, b64 }: JsonObject,
  key: CryptoKey,
  algorithms: readonly string[],
): boolean {
  const node = nodeCrypto();
  const algorithm = typeof alg === "string" && algorithms.includes(alg) ? ALGORITHMS.get(alg) : undefined;
  if (!node || !algorithm || crit !== undefined || b64 !== undefined) return false;
  if (!isFor(key, algorithm) || !COMPACT.test(token)) return false;
  const object = objectOf(key, node);
  if (!object) return false;
  const end = token.lastIndexOf(".");
  try {
    const signature = base64url.decode(token.slice(end + 1));
    if (signature.length !== bytesOf(key, algorithm)) return false;
    const hash = algorithm.hash?.replace("-", "") ?? null;
    return node.verify(hash, encoder.encode(token.slice(0, end)), { key: object, ...formOf(algorithm) }, signature);
  } catch {
    return false;
  }
}

/** Whether the key is a public one for this algorithm and no other. */
function isFor({ type, usages, algorithm }: CryptoKey, { name, curve, hash }: Algorithm): boolean {
  const has: KeyAlgorithm = algorithm;
  if (type !== "public" || !usages.includes("verify") || has.name !== name) return false;
  if (!name.startsWith("RSA")) return has.namedCurve === curve;
  return has.hash?.name === hash && (has.modulusLength ?? 0) >= MIN_MODULUS_BITS;
}

function bytesOf({ algorithm }: CryptoKey, { bytes }: Algorithm): number {
  const { modulusLength = 0 }: KeyAlgorithm = algorithm;
  return bytes ?? Math.ceil(modulusLength / 8);
}

function formOf({ name, saltLength }: Algorithm) {
  if (name === "ECDSA") return { dsaEncoding: "ieee-p1363" } as const;
  if (name === "RSA-PSS") return { padding: PSS_PADDING, saltLength: saltLength ?? 0 };
  return name === "Ed25519" ? {} : { padding: PKCS1_PADDING };
}

function objectOf(key: CryptoKey, { KeyObject }: NodeCrypto): object | undefined {
  if (objects.has(key)) return objects.get(key);
  let object: object | undefined;
  try {
    object = KeyObject.from(key);
  } catch {
    object = undefined;
  }
  objects.set(key, object);
  return object;
}
