import type { JWK } from "jose";
import { errorMessage } from "../errors.js";
import { parseUrl } from "../http/address.js";
import { fromBase64url, isBase64url, toBase64url } from "../http/base64url.js";
import { Lru } from "../http/lru.js";
import { isJsonObject, type JsonObject } from "../http/strict-json.js";
import { escapeText, quote } from "../redact.js";
import { decodePart, loadVerifier, readMediaType } from "./jwt.js";
import type { ResourceServerSettings } from "./options.js";
import { type Scheme, TokenRefusal } from "./refusal.js";

/** Results about tokens, by their digests, each until a time: it holds no token. */
export class TokenCache<T> {
  readonly #entries: Lru<{ value: T; until: number }>;

  constructor(max: number) {
    this.#entries = new Lru(max);
  }

  /** The entry of a digest while it is valid. @param now milliseconds on the same clock as `until` of `put` */
  get(digest: string, now: number): T | undefined {
    const entry = this.#entries.get(digest);
    return entry && now < entry.until ? entry.value : undefined;
  }

  put(digest: string, value: T, until: number): void {
    this.#entries.set(digest, { value, until });
  }
}

/** `node:crypto`, whose hash costs a fortieth of that of Web Crypto, where there is one. */
interface WithNodeCrypto {
  process?: { getBuiltinModule?: (name: "node:crypto") => { hash?: Hash } | undefined };
}
type Hash = (algorithm: "sha256", text: string, encoding: "base64url") => string;

/** The SHA-256 of a token in base64url: the `ath` of its proofs (RFC 9449 section 4.2). */
export async function digestToken(token: string): Promise<string> {
  const node = (globalThis as WithNodeCrypto).process?.getBuiltinModule?.("node:crypto");
  if (node?.hash) return node.hash("sha256", token, "base64url");
  return toBase64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token))));
}

export interface ProofRules {
  /** The SHA-256, in base64url, of the token that it comes with. */
  digest: string;
  /** The thumbprint of the key that the token is bound to. */
  boundTo: string;
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
async function readProof(
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
  if (holder.thumbprint !== rules.boundTo)
    throw new TokenRefusal("bound", "the proof is by another key than the token's");
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
  throw invalidProof(escapeText(errorMessage(error)));
}

function readKey({ typ, alg, crit, jwk }: JsonObject): JWK {
  if (readMediaType(typ) !== "dpop+jwt") throw invalidProof(`typ ${quote(typ)} must be dpop+jwt`);
  if (typeof alg !== "string" || !PROOF_ALGORITHMS.includes(alg))
    throw invalidProof(`alg ${quote(alg)} is not among ${PROOF_ALGORITHMS.join(", ")}`);
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
  const [modulus, exponent] = [countBits(n), countBits(e)];
  if (modulus < MIN_MODULUS_BITS || modulus > MAX_MODULUS_BITS)
    throw invalidProof(`n of jwk has ${modulus} bits, not ${MIN_MODULUS_BITS} to ${MAX_MODULUS_BITS}`);
  if (exponent > MAX_EXPONENT_BITS)
    throw invalidProof(`e of jwk has ${exponent} bits, and at most ${MAX_EXPONENT_BITS} are taken`);
}

/** The length of a number of a key in bits; 0 where it is none. */
function countBits(value: unknown): number {
  const bytes = (typeof value === "string" && fromBase64url(value)) || new Uint8Array();
  const first = bytes.findIndex((byte) => byte !== 0);
  return first < 0 ? 0 : (bytes.length - first) * 8 - (Math.clz32(bytes[first] ?? 0) - 24);
}

function readClaims(claims: JsonObject, rules: ProofRules): ProofFacts {
  const { htm, htu, iat, jti, ath, nonce } = claims;
  const { digest, method, address, now, window } = rules;
  if (htm !== method) throw invalidProof(`htm ${quote(htm)} must be ${quote(method)}`);
  if (address === undefined || normalAddress(htu) !== address)
    throw invalidProof(`htu ${quote(htu)} must be ${quote(address ?? "")}`);
  if (typeof jti !== "string" || jti === "" || jti.length > MAX_JTI)
    throw invalidProof(`jti must be a text of 1 to ${MAX_JTI} characters`);
  if (typeof iat !== "number") throw invalidProof(`iat ${quote(iat)} must be a number of seconds`);
  // Rounded up, because the client may have rounded up to whole seconds too.
  if (now >= iat + window || iat > Math.ceil(now) + window)
    throw invalidProof(`iat ${iat} is more than ${window} seconds away, now is ${Math.floor(now)}`);
  checkLifetime(claims, rules);
  if (ath !== digest) throw invalidProof("ath is not the SHA-256 of the token");
  return { jti, nonce, endsAt: iat + window };
}

/** A proof needs neither claim, and where it has one, it is bound to it as any JWT is (RFC 7519 sections 4.1.4 and 4.1.5). */
function checkLifetime({ exp, nbf }: JsonObject, { now, skew }: ProofRules): void {
  if (exp !== undefined && !(typeof exp === "number" && now < exp + skew))
    throw invalidProof(`exp ${quote(exp)} must be in the future, now is ${Math.floor(now)}`);
  if (nbf !== undefined && !(typeof nbf === "number" && nbf <= Math.ceil(now) + skew))
    throw invalidProof(`nbf ${quote(nbf)} must be in the past, now is ${Math.floor(now)}`);
}

/**
 * The address that clients know a request by: the origin of the resource, since a proxy may have changed the one in the
 * request, with the path of the request. Undefined where the request has none.
 *
 * @param url path and query, or a whole address
 */
function requestAddress(resource: string, url: string): string | undefined {
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

/** How a token was presented, for `verify`. */
export interface Presentation {
  /** The scheme of the `Authorization` header. */
  scheme: Scheme;
  /** Every value of the `DPoP` header (RFC 9449 section 4). */
  proof?: string | readonly string[] | undefined;
  /** The HTTP method of the request. */
  method: string;
  /** The path of the request, or its whole address. Its origin is ignored: clients use that of `resource`. */
  url: string;
}

/** The schemes that a resource server accepts; the one that more clients support comes first. */
const ACCEPTED_SCHEMES: Readonly<Record<ResourceServerSettings["dpop"], readonly Scheme[]>> = {
  off: ["Bearer"],
  supported: ["Bearer", "DPoP"],
  required: ["DPoP"],
};
/**
 * How many used proofs are remembered, at least the last half of them. When there are more, the oldest go, and could be used
 * a second time until they are too old anyway. Only a client with a valid token and its key adds any, and it takes 400
 * requests a second to fill half of this.
 */
const MAX_USED = 100_000;
/** How many keys of proofs are remembered, by the headers that hold them. */
const MAX_KEYS = 1000;
/** Seconds: the minimum age that is accepted, whatever the clock skew. */
const MIN_WINDOW = 60;
const NONCE_STEP_MS = 300_000;

/** Checks tokens against the keys that they are bound to (RFC 9449 section 7). */
export class Dpop {
  readonly acceptedSchemes: readonly Scheme[];
  readonly #settings: ResourceServerSettings;
  readonly #used = new TokenCache<true>(MAX_USED);
  readonly #keys = new TokenCache<ProofKey>(MAX_KEYS);
  #nonceSecret: Uint8Array<ArrayBuffer> | undefined;

  constructor(settings: ResourceServerSettings) {
    this.#settings = settings;
    this.acceptedSchemes = ACCEPTED_SCHEMES[settings.dpop];
  }

  /** Checks that the scheme is accepted, before the token is verified. @throws TokenRefusal */
  checkScheme(scheme: Scheme): void {
    if (!this.acceptedSchemes.includes(scheme)) throw new TokenRefusal("scheme", `${scheme} is not accepted`);
  }

  /**
   * Checks the proof of a verified token, and records it as used. Not before the token is verified: anyone could cause
   * that work.
   *
   * @param digest the SHA-256 of the token in base64url
   * @param boundTo the thumbprint of the key that the token is bound to
   * @returns whether the nonce of the proof expires soon
   * @throws TokenRefusal
   */
  async check(
    digest: string,
    { scheme, proof = [], method, url }: Presentation,
    boundTo: string | undefined,
  ): Promise<boolean> {
    if (scheme === "Bearer") {
      if (boundTo !== undefined) throw new TokenRefusal("bound", "the token is bound to a key, no bearer token");
      return false;
    }
    if (boundTo === undefined) throw new TokenRefusal("unbound", "a bearer token, presented as bound to a key");
    const { resource, proofClock, clockSkewSeconds: skew } = this.#settings;
    const [address, now] = [requestAddress(resource, url), proofClock.epoch() / 1000];
    const rules = { digest, boundTo, method, address, now, window: Math.max(MIN_WINDOW, skew), skew };
    const { jti, nonce, endsAt } = await readProof([proof].flat(), rules, this.#keys);
    const isNonceOld = await this.#isOld(nonce);
    const id = `${boundTo} ${jti}`;
    if (this.#used.get(id, proofClock.epoch())) throw new TokenRefusal("replayed", "the proof was used before");
    this.#used.put(id, true, endsAt * 1000);
    return isNonceOld;
  }

  /** The nonce that proofs need from now on (RFC 9449 section 9); undefined where they need none. */
  async nonce(): Promise<string | undefined> {
    return this.#settings.dpopNonces ? this.#nonceOf(this.#nonceStep()) : undefined;
  }

  /** Whether the nonce of a proof is accepted for the last time. @throws TokenRefusal */
  async #isOld(nonce: unknown): Promise<boolean> {
    const step = this.#nonceStep();
    if (!this.#settings.dpopNonces || nonce === (await this.#nonceOf(step))) return false;
    if (nonce === (await this.#nonceOf(step - 1))) return true;
    throw new TokenRefusal("nonce", "the nonce of the proof is missing, or none of ours");
  }

  #nonceStep(): number {
    return Math.floor(this.#settings.clock.epoch() / NONCE_STEP_MS);
  }

  /**
   * Derives a nonce from the time and a random key, so that no state is stored about clients. It is valid for the
   * five-minute step in which it was made, and for the next one.
   */
  async #nonceOf(step: number): Promise<string> {
    // Not before the first request: workers have no randomness while they are being loaded.
    this.#nonceSecret ??= crypto.getRandomValues(new Uint8Array(32));
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    const key = await crypto.subtle.importKey("raw", this.#nonceSecret, algorithm, false, ["sign"]);
    const mac = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(String(step)));
    return toBase64url(new Uint8Array(mac));
  }
}
