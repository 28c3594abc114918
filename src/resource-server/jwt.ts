import type { CryptoKey, errors, JSONWebKeySet, LocalJWKSet } from "jose";
import { AgentAuthError, errorMessage, orUndefined } from "../errors.js";
import { fromBase64url, isBase64url } from "../http/base64url.js";
import { type JsonObject, parseJsonObject } from "../http/strict-json.js";
import { escapeText, quote } from "../redact.js";
import { type Issuer, RefreshingCache } from "./issuer.js";
import type { ResourceServerSettings } from "./options.js";
import { TokenRefusal } from "./refusal.js";

/** A parsed key set; each read of an issuer's keys makes another. */
export interface KeySet {
  find: LocalJWKSet;
  isEmpty: boolean;
}

export interface Keys {
  cache: RefreshingCache<KeySet>;
  /** The key that the last refresh did not find; only one is stored, because anyone can name keys. */
  missing: string | undefined;
}

/** More keys than this fit no token without a `kid`: anyone could make the server try them all. */
const MAX_CANDIDATES = 8;

/** jose is loaded for the first signature, so that importing this module costs little. */
const importVerifier = () => import("jose/jws/compact/verify");
let verifier: ReturnType<typeof importVerifier> | undefined;

export function loadVerifier(): ReturnType<typeof importVerifier> {
  verifier ??= importVerifier();
  return verifier;
}

type KeySettings = Pick<ResourceServerSettings, "keyTtlSeconds" | "staleKeysSeconds" | "clock">;

/** The keys of an issuer, read when they are first needed. */
export function readKeys(issuer: Issuer, { keyTtlSeconds, staleKeysSeconds, clock }: KeySettings): Keys {
  const read = async (signal: AbortSignal) => {
    const [document, { createLocalJWKSet }] = await Promise.all([issuer.keys(signal), import("jose/jwks/local")]);
    try {
      const set = document as unknown as JSONWebKeySet;
      return { find: createLocalJWKSet(set), isEmpty: set.keys.length === 0 };
    } catch (cause) {
      const message = `the keys of ${quote(issuer.issuer)} are no key set (RFC 7517 section 5)`;
      throw unusableKeyError(message, cause);
    }
  };
  const [ttl, staleMs] = [keyTtlSeconds * 1000, staleKeysSeconds * 1000];
  return { cache: new RefreshingCache({ read, ttl, staleMs, clock }), missing: undefined };
}

/** Whether a token says of itself that it is a JWT, signed or encrypted. */
export function looksLikeJwt(token: string): boolean {
  const parts = token.split(".");
  if (parts.length !== 3 && parts.length !== 5) return false;
  return typeof decodePart(parts[0] ?? "")?.["alg"] === "string";
}

/**
 * Parses a JWT without trusting it, and refuses a wrong type, algorithm or extension, which no key could repair.
 *
 * @returns the header and claims, to be trusted only after {@link verifySignature}
 * @throws TokenRefusal
 */
export function readJwt(token: string, { algorithms, legacyTyp }: ResourceServerSettings) {
  const parts = token.split(".");
  if (parts.length === 5) throw new TokenRefusal("encrypted", "the token is encrypted (JWE), which is not supported");
  const [head = "", body = "", signature = ""] = parts;
  const header = decodePart(head);
  const claims = decodePart(body);
  if (parts.length !== 3 || !header || !claims) throw new TokenRefusal("not_a_jwt", "the token is no JWT");
  const { alg, typ, crit } = header;
  if (typeof alg !== "string" || !algorithms.includes(alg))
    throw new TokenRefusal("algorithm", `alg ${quote(alg)} is not among ${algorithms.join(", ")}`);
  // jose accepts other texts of the same bytes: whoever looks tokens up by their text would not find those. The other two
  // parts were decoded by the same rule.
  if (!isBase64url(signature))
    throw new TokenRefusal("not_a_jwt", "a part of the token is not base64url without padding (RFC 7515 section 2)");
  if (crit !== undefined) throw new TokenRefusal("critical", `crit ${quote(crit)} is not understood`);
  if (!isAccessTokenType(typ, legacyTyp))
    throw new TokenRefusal("typ", `typ ${quote(typ)} must be at+jwt (RFC 9068 section 2.1)`);
  // Claims that mark an ID token where the type does not: the hash of an access token, or of a code.
  const ofIdToken = ["at_hash", "c_hash"].find((name) => claims[name] !== undefined);
  if (ofIdToken !== undefined) throw new TokenRefusal("typ", `${ofIdToken} is a claim of ID tokens`);
  return { header, claims };
}

/**
 * Checks the signature with the issuer's keys; key locations in the token are ignored. A missing key may be new, and an
 * unusable one may have been repaired: the keys are read again, once a minute at most.
 * Until then a token of an unknown key may be valid. {@link readJwt} has accepted the algorithm.
 *
 * @param before the key set when the token came
 * @returns the key set that it was checked with
 * @throws TokenRefusal `key` or `signature`; `AgentAuthError` `unknown_key` where the keys were read before the token came
 * and must not be read again yet, `bad_envelope` where no key of the token can be used, or the error of
 * reading the keys: then the token may be valid
 */
export async function verifySignature(
  token: string,
  { alg, kid }: JsonObject,
  keys: Keys,
  signal: AbortSignal | undefined,
  before: KeySet | undefined = keys.cache.current,
): Promise<KeySet> {
  const set = await keys.cache.get(signal);
  const failure = await tryKeys(token, kid, set);
  if (!failure) return set;
  if (failure instanceof TokenRefusal && failure.reason === "signature") throw failure;
  const fresh = await keys.cache.refresh(signal);
  const again = fresh === set ? failure : await tryKeys(token, kid, fresh);
  if (!again) return fresh;
  if (!(again instanceof TokenRefusal) || again.reason !== "key") throw again;
  const key = JSON.stringify([alg, kid]);
  // Keys that were read after the token came lack its key: the next token of that key is refused at once.
  if (fresh !== before) keys.missing = key;
  if (keys.missing === key) throw again;
  const retryAfter = keys.cache.cooldown;
  throw new AgentAuthError("unknown_key", again.message, { class: "unavailable", retryAfter });
}

/**
 * Tries the key that a token names; where several have that name, or the token names none, each of them.
 *
 * @returns why none has signed the token; undefined where one has
 */
async function tryKeys(
  token: string,
  kid: unknown,
  { find, isEmpty }: KeySet,
): Promise<TokenRefusal | AgentAuthError | undefined> {
  if (isEmpty) return unusableKeyError("the key set has no keys");
  const { compactVerify } = await loadVerifier();
  try {
    const { key } = await compactVerify(token, find);
    return checkSignatureLength(token, key);
  } catch (error) {
    if (!isMultipleKeys(error)) return toFailure(error, kid);
    let failure: TokenRefusal | AgentAuthError = unusableKeyError(
      "none of the keys can be used that may have signed the token",
    );
    let tried = 0;
    for await (const key of error) {
      if (++tried > MAX_CANDIDATES) break;
      const found = await compactVerify(token, key).then(
        () => checkSignatureLength(token, key),
        (keyError: unknown) => toFailure(keyError, kid),
      );
      if (!found) return undefined;
      // A refusal by one key takes precedence over the failure of another.
      if (!(failure instanceof TokenRefusal)) failure = found;
    }
    return failure;
  }
}

/** OpenSSL verifies an RSASSA-PSS signature without the zeros that it begins with, too (against RFC 8017 section 8.1.2). */
function checkSignatureLength(token: string, key: CryptoKey | Uint8Array): TokenRefusal | undefined {
  const { modulusLength } = (key instanceof Uint8Array ? {} : key.algorithm) as { modulusLength?: number };
  const characters = token.length - token.lastIndexOf(".") - 1;
  if (modulusLength === undefined || characters === Math.ceil((Math.ceil(modulusLength / 8) * 4) / 3)) return undefined;
  return new TokenRefusal("signature", "the signature does not have the length of its key");
}

function isMultipleKeys(error: unknown): error is errors.JWKSMultipleMatchingKeys {
  return readCode(error) === "ERR_JWKS_MULTIPLE_MATCHING_KEYS";
}

/** The codes of jose's errors about a token; any other is about the key. */
const REASONS: Readonly<Record<string, "key" | "signature">> = {
  ERR_JWKS_NO_MATCHING_KEY: "key",
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: "signature",
  ERR_JWS_INVALID: "signature",
};

/** The refusal of a token, or the error of an unusable key, which says nothing about the token. */
function toFailure(error: unknown, kid: unknown): TokenRefusal | AgentAuthError {
  const detail = escapeText(errorMessage(error));
  const reason = REASONS[readCode(error)];
  if (reason) return new TokenRefusal(reason, detail);
  return unusableKeyError(`the key ${quote(kid ?? "")} cannot be used: ${detail}`, error);
}

function readCode(error: unknown): string {
  return String((error as { code?: unknown } | undefined)?.code);
}

function unusableKeyError(message: string, cause?: unknown): AgentAuthError {
  return new AgentAuthError("bad_envelope", message, { class: "refused", cause });
}

function isAccessTokenType(typ: unknown, legacy: boolean): boolean {
  if (typ === undefined) return legacy;
  const type = readMediaType(typ);
  return type === "at+jwt" || (legacy && type === "jwt");
}

/** The type of a JWT, normalised as a media type (RFC 7515 section 4.1.9). */
export function readMediaType(typ: unknown): string | undefined {
  return typeof typ === "string" ? typ.toLowerCase().replace(/^application\//, "") : undefined;
}

const UTF_8 = new TextDecoder("utf-8", { fatal: true });

/** One part of a JWT; undefined unless it is a JSON object in base64url without padding. */
export function decodePart(part: string): JsonObject | undefined {
  const bytes = fromBase64url(part);
  if (!bytes) return undefined;
  const text = orUndefined(() => UTF_8.decode(bytes));
  return text === undefined ? undefined : parseJsonObject(text);
}
