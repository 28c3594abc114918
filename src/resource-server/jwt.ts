import { base64url, compactVerify, createLocalJWKSet, errors, type JSONWebKeySet, type LocalJWKSet } from "jose";
import { AgentAuthError } from "../errors.js";
import { isBase64url } from "../http/base64url.js";
import { isJsonObject, type JsonObject, parseStrictJson } from "../http/strict-json.js";
import { escapeText, quote } from "../redact.js";
import { TokenRefusal } from "./events.js";
import type { Issuer } from "./issuer.js";
import { RefreshingCache } from "./refreshing-cache.js";
import type { Settings } from "./resolved-options.js";

/** A parsed key set; each read of an issuer's keys makes another. */
export interface KeySet {
  find: LocalJWKSet;
  isEmpty: boolean;
}

/** The cached keys of an issuer. */
export interface Keys {
  cache: RefreshingCache<KeySet>;
  /** The key that the last refresh did not find; only one is stored, because anyone can name keys. */
  missing: string | undefined;
}

/** More keys than this fit no token without a `kid`: anyone could make the server try them all. */
const MAX_CANDIDATES = 8;

/** The keys of an issuer, read when they are first needed. */
export function keysOf(issuer: Issuer, { keyTtlSeconds, clock }: Pick<Settings, "keyTtlSeconds" | "clock">): Keys {
  const read = async (signal: AbortSignal) => {
    const document = await issuer.keys(signal);
    try {
      const set = document as unknown as JSONWebKeySet;
      return { find: createLocalJWKSet(set), isEmpty: set.keys.length === 0 };
    } catch (cause) {
      const message = `the keys of ${quote(issuer.issuer)} are no key set (RFC 7517 section 5)`;
      throw unusable(message, cause);
    }
  };
  return { cache: new RefreshingCache({ read, ttl: keyTtlSeconds * 1000, clock }), missing: undefined };
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
 * @returns its claims, to be trusted only after {@link verifySignature}
 * @throws TokenRefusal
 */
export function readJwt(token: string, { algorithms, legacyTyp }: Settings): JsonObject {
  const parts = token.split(".");
  if (parts.length === 5) throw new TokenRefusal("encrypted", "the token is encrypted (JWE), which is not supported");
  const [head = "", body = ""] = parts;
  const header = decodePart(head);
  const claims = decodePart(body);
  if (parts.length !== 3 || !header || !claims) throw new TokenRefusal("not_a_jwt", "the token is no JWT");
  const { alg, typ, crit } = header;
  if (typeof alg !== "string" || !algorithms.includes(alg)) {
    throw new TokenRefusal("algorithm", `alg ${quote(alg)} is not among ${algorithms.join(", ")}`);
  }
  // jose accepts other texts of the same bytes: whoever looks tokens up by their text would not find those.
  if (!parts.every(isBase64url)) {
    throw new TokenRefusal("not_a_jwt", "a part of the token is not base64url without padding (RFC 7515 section 2)");
  }
  if (crit !== undefined) throw new TokenRefusal("critical", `crit ${quote(crit)} is not understood`);
  if (!isAccessTokenType(typ, legacyTyp)) {
    throw new TokenRefusal("typ", `typ ${quote(typ)} must be at+jwt (RFC 9068 section 2.1)`);
  }
  // Claims that mark an ID token where the type does not: the hash of an access token, or of a code.
  const ofIdToken = ["at_hash", "c_hash"].find((name) => claims[name] !== undefined);
  if (ofIdToken !== undefined) throw new TokenRefusal("typ", `${ofIdToken} is a claim of ID tokens`);
  return claims;
}

/**
 * Checks the signature with the issuer's keys; key locations in the token are ignored. A missing key may be new, and an
 * unusable one may have been repaired: the keys are read again, once a minute at most.
 * Until then a token of an unknown key may be valid.
 *
 * @param before the key set when the token came
 * @returns the key set that it was checked with
 * @throws TokenRefusal `key` or `signature`; `AgentAuthError` `unknown_key` where the keys were read before the token came
 * and must not be read again yet, `bad_envelope` where no key of the token can be used, or the error of
 * reading the keys: then the token may be valid
 */
export async function verifySignature(
  token: string,
  keys: Keys,
  { algorithms }: Settings,
  signal: AbortSignal | undefined,
  before: KeySet | undefined = keys.cache.current,
): Promise<KeySet> {
  const set = await keys.cache.get(signal);
  return tryKeys(token, set, algorithms).catch(async (error: unknown) => {
    if (error instanceof TokenRefusal && error.reason === "signature") throw error;
    const fresh = await keys.cache.refresh(signal);
    if (fresh !== set) return tryKeys(token, fresh, algorithms).catch(noteMissing(token, keys));
    if (set !== before) return noteMissing(token, keys)(error);
    throw error instanceof TokenRefusal && keys.missing !== keyOf(token) ? unknownKey(error, keys) : error;
  });
}

/** Records a key that is missing from a fresh key set: the next token of that key is refused at once. */
function noteMissing(token: string, keys: Keys): (error: unknown) => never {
  return (error) => {
    if (error instanceof TokenRefusal && error.reason === "key") keys.missing = keyOf(token);
    throw error;
  };
}

/** The algorithm and key id of a token. */
function keyOf(token: string): string {
  const { alg, kid } = decodePart(token.split(".")[0] ?? "") ?? {};
  return JSON.stringify([alg, kid]);
}

function unknownKey({ message }: TokenRefusal, { cache }: Keys): AgentAuthError {
  return new AgentAuthError("unknown_key", message, { class: "unavailable", retryAfter: cache.cooldown });
}

/** Tries the key that a token names; where several have that name, or the token names none, each of them. */
async function tryKeys(token: string, set: KeySet, algorithms: readonly string[]): Promise<KeySet> {
  if (set.isEmpty) throw unusable("the key set has no keys");
  const options = { algorithms: [...algorithms] };
  try {
    await compactVerify(token, set.find, options);
    return set;
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw toError(token, error);
    let failure: unknown = unusable("none of the keys can be used that the token may have been signed with");
    let tried = 0;
    for await (const key of error) {
      if (++tried > MAX_CANDIDATES) break;
      const found = await compactVerify(token, key, options).then(
        () => undefined,
        (keyError: unknown) => toError(token, keyError),
      );
      if (!found) return set;
      // A refusal by one key takes precedence over the failure of another.
      if (!(failure instanceof TokenRefusal)) failure = found;
    }
    throw failure;
  }
}

/** The refusal of a token, or the error of an unusable key, which says nothing about the token. */
function toError(token: string, error: unknown): TokenRefusal | AgentAuthError {
  const detail = escapeText(error instanceof Error ? error.message : "the signature is not good");
  if (error instanceof errors.JWKSNoMatchingKey) return new TokenRefusal("key", detail);
  if (ABOUT_TOKENS.some((kind) => error instanceof kind)) return new TokenRefusal("signature", detail);
  const kid = decodePart(token.split(".")[0] ?? "")?.["kid"] ?? "";
  return unusable(`the key ${quote(kid)} cannot be used: ${detail}`, error);
}

const ABOUT_TOKENS = [errors.JWSSignatureVerificationFailed, errors.JWSInvalid, errors.JOSEAlgNotAllowed];

function unusable(message: string, cause?: unknown): AgentAuthError {
  return new AgentAuthError("bad_envelope", message, { class: "refused", cause });
}

function isAccessTokenType(typ: unknown, legacy: boolean): boolean {
  if (typ === undefined) return legacy;
  const type = mediaTypeOf(typ);
  return type === "at+jwt" || (legacy && type === "jwt");
}

/** The type of a JWT, normalised as a media type (RFC 7515 section 4.1.9). */
export function mediaTypeOf(typ: unknown): string | undefined {
  return typeof typ === "string" ? typ.toLowerCase().replace(/^application\//, "") : undefined;
}

/** One part of a JWT; undefined unless it is a JSON object. */
export function decodePart(part: string): JsonObject | undefined {
  try {
    const value = parseStrictJson(new TextDecoder("utf-8", { fatal: true }).decode(base64url.decode(part)));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
