import { base64url, compactVerify, createLocalJWKSet, errors, type JSONWebKeySet, type LocalJWKSet } from "jose";
import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { isJsonObject, parseStrictJson } from "../http/strict-json.js";
import { quote } from "../redact.js";
import { TokenRefusal } from "./events.js";
import type { Issuer } from "./issuer.js";
import { Kept } from "./kept.js";
import type { Settings } from "./settings.js";

type Json = Record<string, unknown>;

/** The keys of an issuer, ready for use. */
export type Keys = Kept<LocalJWKSet>;

/** More keys than this fit no token without a `kid`: trying them all would be work that anybody could order. */
const MAX_CANDIDATES = 8;

/** The keys of an issuer, read when they are first needed. */
export function keysOf(issuer: Issuer, { keyTtl, clock }: Pick<Settings, "keyTtl" | "clock">): Keys {
  const read = async (signal: AbortSignal) => {
    const document = await issuer.keys(signal);
    try {
      return createLocalJWKSet(document as unknown as JSONWebKeySet);
    } catch (cause) {
      const message = `the keys of ${quote(issuer.issuer)} are no key set (RFC 7517 section 5)`;
      throw new AgentAuthError("bad_envelope", message, { class: "refused", cause });
    }
  };
  return new Kept({ read, ttl: keyTtl * 1000, clock });
}

/** Whether a token says of itself that it is a JWT, signed or encrypted. */
export function looksLikeJwt(token: string): boolean {
  const parts = token.split(".");
  if (parts.length !== 3 && parts.length !== 5) return false;
  return typeof decodePart(parts[0] ?? "")?.["alg"] === "string";
}

/**
 * Reads a JWT without trusting it, and refuses what no key could make good: its type, its algorithm, extensions.
 *
 * @returns its claims, which are to be believed once {@link verifySignature} has found the signature good
 * @throws TokenRefusal
 */
export function readJwt(token: string, { algorithms, legacyTyp }: Settings): Json {
  const parts = token.split(".");
  if (parts.length === 5) throw new TokenRefusal("encrypted", "the token is encrypted (JWE), which is not taken");
  const [head = "", body = ""] = parts;
  const header = decodePart(head);
  const claims = decodePart(body);
  if (parts.length !== 3 || !header || !claims) throw new TokenRefusal("not_a_jwt", "the token is no JWT");
  const { alg, typ, crit } = header;
  if (typeof alg !== "string" || !algorithms.includes(alg)) {
    throw new TokenRefusal("algorithm", `alg ${quote(alg)} is not among ${algorithms.join(", ")}`);
  }
  if (crit !== undefined) throw new TokenRefusal("critical", `crit ${quote(crit)} is not understood`);
  if (!isAccessTokenType(typ, legacyTyp)) {
    throw new TokenRefusal("typ", `typ ${quote(typ)} must be at+jwt (RFC 9068 section 2.1)`);
  }
  // Where the type does not tell them apart, these do: they are about an access token, or a code, that came beside it.
  const ofIdToken = ["at_hash", "c_hash"].find((name) => claims[name] !== undefined);
  if (ofIdToken !== undefined) throw new TokenRefusal("typ", `${ofIdToken} is a claim of ID tokens`);
  return claims;
}

/**
 * Checks the signature with the issuer's own keys; whatever the token says of where keys are is not heeded. A key that is
 * not there may be new: the keys are read again, once a minute at most.
 *
 * @throws TokenRefusal `key` or `signature`, or what reading the keys threw
 */
export async function verifySignature(
  token: string,
  keys: Keys,
  { algorithms }: Settings,
  signal: AbortSignal | undefined,
): Promise<void> {
  const attempt = (set: LocalJWKSet): Promise<unknown> => compactVerify(token, set, { algorithms: [...algorithms] });
  const set = await keys.get(signal);
  try {
    await attempt(set).catch((error: unknown) => {
      if (!(error instanceof errors.JWKSNoMatchingKey)) return amongSeveral(token, error, algorithms);
      return keys.again(signal).then((fresh) => (fresh === set ? Promise.reject(error) : attempt(fresh)));
    });
  } catch (error) {
    if (isAgentAuthError(error)) throw error;
    const reason = error instanceof errors.JWKSNoMatchingKey ? "key" : "signature";
    throw new TokenRefusal(reason, error instanceof Error ? error.message : "the signature is not good");
  }
}

/** Tries the keys that a token without a `kid` may have been signed with. */
async function amongSeveral(token: string, error: unknown, algorithms: readonly string[]): Promise<void> {
  if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
  let tried = 0;
  for await (const key of error) {
    if (++tried > MAX_CANDIDATES) break;
    try {
      await compactVerify(token, key, { algorithms: [...algorithms] });
      return;
    } catch (why) {
      if (!(why instanceof errors.JWSSignatureVerificationFailed)) throw why;
    }
  }
  throw new errors.JWSSignatureVerificationFailed();
}

function isAccessTokenType(typ: unknown, legacy: boolean): boolean {
  if (typ === undefined) return legacy;
  const type = mediaTypeOf(typ);
  return type === "at+jwt" || (legacy && type === "jwt");
}

/** What a JWT says that it is, as media types compare (RFC 7515 section 4.1.9). */
export function mediaTypeOf(typ: unknown): string | undefined {
  return typeof typ === "string" ? typ.toLowerCase().replace(/^application\//, "") : undefined;
}

/** One part of a JWT, where it is the JSON object that it must be. */
export function decodePart(part: string): Json | undefined {
  try {
    const value = parseStrictJson(new TextDecoder("utf-8", { fatal: true }).decode(base64url.decode(part)));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
