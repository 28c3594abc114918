import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { SingleFlight } from "../http/single-flight.js";
import { deleteNulls, isJsonObject, type JsonObject } from "../http/strict-json.js";
import { MASK, quote } from "../redact.js";
import { type ClaimRules, checkClaims, type TokenClaims, type VerifiedToken } from "./claims.js";
import { type Dpop, digestToken, type Presentation, TokenCache } from "./dpop.js";
import type { Issuer } from "./issuer.js";
import { type KeySet, type Keys, looksLikeJwt, readJwt, readKeys, verifySignature } from "./jwt.js";
import type { ResourceServerSettings } from "./options.js";
import { checkLength, TokenRefusal, tokenRefusalError } from "./refusal.js";

export interface Verified {
  verified: VerifiedToken;
  /** Whether the response must send the client a new nonce. */
  isNonceOld: boolean;
}

/**
 * Verifies tokens.
 *
 * It throws an `AgentAuthError` (class `auth`, status 401) `invalid_token`, `invalid_dpop_proof` or `use_dpop_nonce` whose
 * message is the same for every broken rule, or one of class `unavailable` (status 503) where the token could not be
 * verified.
 */
export type TokenVerifier = (
  token: string,
  presented: Presentation,
  signal: AbortSignal | undefined,
) => Promise<Verified>;

interface SignedClaims {
  issuer: string;
  claims: TokenClaims;
  keys: Keys;
  /** The key set that the signature was checked with. */
  keySet: KeySet;
}

/** The last half of them are always remembered. */
const MAX_SIGNED = 4000;
const UNVERIFIABLE = "the access token could not be checked";

export function createTokenVerifier(
  settings: ResourceServerSettings,
  issuers: readonly Issuer[],
  dpop: Dpop,
): TokenVerifier {
  const known = new Map(issuers.map((issuer) => [issuer.issuer, readKeys(issuer, settings)]));
  const introspectingIssuer = issuers.find(({ issuer }) => issuer === settings.introspectedBy);
  const introspect = introspectingIssuer && createIntrospect(introspectingIssuer, settings);

  const claimRules = (issuer: string, isIntrospected = false): ClaimRules => {
    const { audiences, clockSkewSeconds: skew, clock, allowMissingAudience } = settings;
    const now = clock.epoch() / 1000;
    return { issuer, audiences, now, skew, allowMissingAudience: isIntrospected && allowMissingAudience };
  };
  const signed = new TokenCache<SignedClaims>(MAX_SIGNED);
  const verifyJwt = async (
    token: string,
    signal: AbortSignal | undefined,
    before: KeySet | undefined,
  ): Promise<SignedClaims> => {
    const { header, claims } = readJwt(token, settings);
    const issuer = claims["iss"];
    // A token of another issuer causes no request.
    const keys = typeof issuer === "string" ? known.get(issuer) : undefined;
    if (!keys || typeof issuer !== "string")
      throw new TokenRefusal("issuer", `iss ${quote(issuer)} is not an accepted issuer`);
    const keySet = await verifySignature(token, header, keys, signal, before).catch((error: unknown) => {
      // The key of an expired token does not matter: its client must not wait for the keys.
      if (isAgentAuthError(error, "unknown_key")) {
        checkClaims(token, claims, claimRules(issuer));
        requireNewer(claims["iat"], keys.cache.readAt, settings, error.message);
      }
      return asUnavailable(issuer)(error);
    });
    return { issuer, claims: freeze(claims), keys, keySet };
  };
  const introspectToken = async (token: string, digest: string, signal: AbortSignal | undefined) => {
    if (!introspectingIssuer || !introspect)
      throw new TokenRefusal("not_a_jwt", "the token is no JWT, and introspection is not configured");
    const claims = await introspect(token, digest, signal).catch(asUnavailable(introspectingIssuer.issuer));
    return { issuer: introspectingIssuer.issuer, claims };
  };
  const verify: TokenVerifier = async (token, presented, signal) => {
    checkLength(token);
    dpop.checkScheme(presented.scheme);
    const digest = await digestToken(token);
    // A signature that was checked before holds until the keys are read again. All else is checked each time.
    const found = signed.get(digest, settings.clock.now());
    const before = found?.keys.cache.current;
    const keySet = await found?.keys.cache.get(signal).catch(asUnavailable(found.issuer));
    const known = keySet === found?.keySet ? found : undefined;
    const isJwt = settings.tokens === "jwt" || (settings.tokens === "both" && looksLikeJwt(token));
    const jwt = known ?? (isJwt ? await verifyJwt(token, signal, before) : undefined);
    const { issuer, claims } = jwt ?? (await introspectToken(token, digest, signal));
    const { verified, boundTo } = checkClaims(token, claims, claimRules(issuer, jwt === undefined));
    if (jwt && !known) signed.put(digest, jwt, settings.clock.now() + settings.tokenCacheSeconds * 1000);
    return { verified, isNonceOld: await dpop.check(digest, presented, boundTo) };
  };
  return (token, presented, signal) =>
    verify(token, presented, signal).catch((error: unknown) => report(error, token, settings));
}

/**
 * Refuses a token of an unknown key that was issued before the keys were read: an issuer publishes a key before it signs
 * with it, so that no later read would find it.
 */
function requireNewer(
  iat: unknown,
  readAt: number | undefined,
  { clock, clockSkewSeconds }: ResourceServerSettings,
  detail: string,
): void {
  if (typeof iat !== "number" || readAt === undefined) return;
  const keysReadAt = (clock.epoch() - (clock.now() - readAt)) / 1000;
  if (iat + clockSkewSeconds < keysReadAt) throw new TokenRefusal("key", detail);
}

/** Freezes claims, which the requests with a cached token share. */
function freeze<T extends object>(claims: T): T {
  for (const value of Object.values(claims)) if (typeof value === "object" && value !== null) freeze(value);
  return Object.freeze(claims);
}

/** The failure of a request to an issuer, with its name. */
class VerificationUnavailable extends Error {
  readonly issuer: string;
  readonly error: AgentAuthError;

  constructor(issuer: string, error: AgentAuthError) {
    super(error.message);
    this.issuer = issuer;
    this.error = error;
  }
}

function asUnavailable(issuer: string): (error: unknown) => never {
  return (error) => {
    throw isAgentAuthError(error) && error.class !== "aborted" ? new VerificationUnavailable(issuer, error) : error;
  };
}

/** Logs the reason, and throws an error that reveals none of it. */
function report(error: unknown, token: string, { log }: ResourceServerSettings): never {
  const shown = (detail: string) => detail.replaceAll(token, MASK);
  if (error instanceof TokenRefusal) {
    log({ type: "refused", reason: error.reason, detail: shown(error.message) });
    throw tokenRefusalError(error.reason);
  }
  if (!(error instanceof VerificationUnavailable)) throw error;
  const { code, message, retryAfter } = error.error;
  log({ type: "unavailable", issuer: error.issuer, code, detail: shown(message) });
  throw new AgentAuthError(code, UNVERIFIABLE, { class: "unavailable", status: 503, retryable: true, retryAfter });
}

const MAX_ENTRIES = 1000;
/** Introspections in flight at most, so that a flood of tokens does not become one at the issuer. */
const MAX_IN_FLIGHT = 100;
/** For this long after the endpoint was down, tokens get its error without another request. */
const DOWN_MS = 5000;
/** Answers of what stands before an endpoint that is down; any other may be about one token. */
const DOWN: readonly unknown[] = [undefined, 429, 502, 503, 504];
/** A token that the issuer does not know yet may be valid in a moment. */
const MAX_INACTIVE_S = 10;
/** What issuers call an access token: by how it is used (RFC 6749 section 7.1), or by what it is. */
const ACCESS_TOKEN_KINDS: readonly unknown[] = [
  ...[undefined, null, "bearer", "dpop"],
  ...["access", "access_token", "urn:ietf:params:oauth:token-type:access_token"],
];

/**
 * Creates the function that introspects tokens. Concurrent requests with the same token share one introspection.
 * Refused tokens have a separate cache, so that they cannot evict valid ones.
 *
 * The function throws a TokenRefusal `inactive`, or `typ` where the token is no access token; or the error of the request.
 */
export function createIntrospect(
  issuer: Issuer,
  { cacheTtlSeconds, clock }: Pick<ResourceServerSettings, "cacheTtlSeconds" | "clock">,
) {
  const active = new TokenCache<JsonObject>(MAX_ENTRIES);
  const inactive = new TokenCache<string>(MAX_ENTRIES);
  const flights = new SingleFlight<JsonObject>();
  const state = { inFlight: 0, down: undefined as { error: AgentAuthError; until: number } | undefined };
  const send = async (token: string, signal: AbortSignal): Promise<JsonObject> => {
    if (state.down && clock.now() < state.down.until) throw state.down.error;
    if (state.inFlight >= MAX_IN_FLIGHT) {
      const message = `${MAX_IN_FLIGHT} introspections are in flight`;
      throw new AgentAuthError("rate_limited", message, { class: "unavailable", retryAfter: 1 });
    }
    state.inFlight += 1;
    try {
      return await issuer.introspect(token, signal);
    } catch (error) {
      if (isAgentAuthError(error) && error.class === "unavailable" && DOWN.includes(error.status))
        state.down = { error, until: clock.now() + DOWN_MS };
      throw error;
    } finally {
      state.inFlight -= 1;
    }
  };
  const requestIntrospection = async (token: string, digest: string, signal: AbortSignal): Promise<JsonObject> => {
    const response = await send(token, signal);
    const now = clock.now();
    // Only `true` is active (RFC 7662 section 2.2).
    if (response["active"] !== true) {
      const detail = `active is ${quote(response["active"] ?? "missing", 40)}`;
      inactive.put(digest, detail, now + Math.min(cacheTtlSeconds, MAX_INACTIVE_S) * 1000);
      throw new TokenRefusal("inactive", detail);
    }
    const claims = withoutToken({ iss: issuer.issuer, ...deleteNulls(response) }, token) as JsonObject;
    active.put(digest, claims, now + cacheTtlSeconds * 1000);
    return claims;
  };
  return async (token: string, digest: string, signal: AbortSignal | undefined): Promise<JsonObject> => {
    const refused = inactive.get(digest, clock.now());
    if (refused !== undefined) throw new TokenRefusal("inactive", refused);
    const claims =
      active.get(digest, clock.now()) ??
      (await flights.run(digest, (own) => requestIntrospection(token, digest, own), signal));
    checkKind(claims);
    return claims;
  };
}

/**
 * Checks that a response is about an access token: introspection covers refresh tokens as well, and those are active,
 * too. Some issuers distinguish them by `token_use`.
 */
function checkKind(response: JsonObject): void {
  for (const name of ["token_type", "token_use"]) {
    const kind = response[name];
    if (ACCESS_TOKEN_KINDS.includes(typeof kind === "string" ? kind.toLowerCase() : kind)) continue;
    throw new TokenRefusal("typ", `${name} ${quote(kind)} is no access token`);
  }
}

/** Masks the token, which a server may repeat in its response; the strict parser bounds the depth. */
function withoutToken(value: unknown, token: string): unknown {
  if (typeof value === "string") return value.replaceAll(token, MASK);
  if (Array.isArray(value)) return value.map((one) => withoutToken(one, token));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withoutToken(one, token)]));
}
