import { SingleFlight } from "../http/single-flight.js";
import { isJsonObject, type JsonObject } from "../http/strict-json.js";
import { MASK, quote } from "../redact.js";
import type { Issuer } from "./issuer.js";
import type { ResourceServerSettings } from "./options.js";
import { TokenRefusal } from "./refusal.js";
import { TokenCache } from "./token-cache.js";

/**
 * Introspects a token of a digest, or returns the cached response.
 *
 * @throws TokenRefusal `inactive`, or `typ` where the token is no access token; or the error of the request
 */
export type Introspect = (token: string, digest: string, signal: AbortSignal | undefined) => Promise<JsonObject>;

const MAX_ENTRIES = 1000;
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
 */
export function createIntrospect(
  issuer: Issuer,
  { cacheTtlSeconds, clock }: Pick<ResourceServerSettings, "cacheTtlSeconds" | "clock">,
): Introspect {
  const active = new TokenCache<JsonObject>(MAX_ENTRIES);
  const inactive = new TokenCache<string>(MAX_ENTRIES);
  const flights = new SingleFlight<JsonObject>();
  const requestIntrospection = async (token: string, digest: string, signal: AbortSignal): Promise<JsonObject> => {
    const answer = await issuer.introspect(token, signal);
    const now = clock.now();
    // Only `true` is active (RFC 7662 section 2.2).
    if (answer["active"] !== true) {
      const detail = `active is ${quote(answer["active"] ?? "missing", 40)}`;
      if (cacheTtlSeconds > 0) inactive.put(digest, detail, now + Math.min(cacheTtlSeconds, MAX_INACTIVE_S) * 1000);
      throw new TokenRefusal("inactive", detail);
    }
    const claims = withoutToken({ ...answer, iss: answer["iss"] ?? issuer.issuer }, token) as JsonObject;
    if (cacheTtlSeconds > 0) active.put(digest, claims, now + cacheTtlSeconds * 1000);
    return claims;
  };
  return async (token, digest, signal) => {
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
function checkKind(answer: JsonObject): void {
  for (const name of ["token_type", "token_use"]) {
    const kind = answer[name];
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
