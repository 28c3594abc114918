import { SingleFlight } from "../http/single-flight.js";
import { isJsonObject } from "../http/strict-json.js";
import { MASK, quote } from "../redact.js";
import { TokenRefusal } from "./events.js";
import type { Issuer } from "./issuer.js";
import type { Settings } from "./resolved-options.js";
import { digestOf, TokenCache } from "./token-cache.js";

type Json = Record<string, unknown>;

/** Asks an issuer about a token, or recalls what it said. @throws TokenRefusal `inactive`, or what asking threw */
export type Introspect = (token: string, signal: AbortSignal | undefined) => Promise<Json>;

const MAX_ENTRIES = 1000;
/** A token that the issuer does not know yet may be good in a moment. */
const MAX_INACTIVE_S = 10;

/**
 * Makes the function that asks an issuer about tokens. Each token is asked about once for all requests that bring it at
 * the same time. Refused tokens are remembered apart from good ones: however many bad ones come, the good ones stay.
 */
export function createIntrospect(
  issuer: Issuer,
  { cacheTtl, clock }: Pick<Settings, "cacheTtl" | "clock">,
): Introspect {
  const active = new TokenCache<Json>(MAX_ENTRIES);
  const inactive = new TokenCache<string>(MAX_ENTRIES);
  const flights = new SingleFlight<Json>();
  const ask = async (token: string, digest: string, signal: AbortSignal): Promise<Json> => {
    const answer = await issuer.introspect(token, signal);
    const now = clock.now();
    // Nothing but `true` is one: a server that means yes says so (RFC 7662 section 2.2).
    if (answer["active"] !== true) {
      const detail = `active is ${quote(answer["active"] ?? "missing", 40)}`;
      if (cacheTtl > 0) inactive.put(digest, detail, now + Math.min(cacheTtl, MAX_INACTIVE_S) * 1000);
      throw new TokenRefusal("inactive", detail);
    }
    const claims = withoutToken({ ...answer, iss: answer["iss"] ?? issuer.issuer }, token) as Json;
    if (cacheTtl > 0) active.put(digest, claims, now + cacheTtl * 1000);
    return claims;
  };
  return async (token, signal) => {
    const digest = await digestOf(token);
    const refused = inactive.get(digest, clock.now());
    if (refused !== undefined) throw new TokenRefusal("inactive", refused);
    return active.get(digest, clock.now()) ?? flights.run(digest, (own) => ask(token, digest, own), signal);
  };
}

/** A server may repeat the token in what it says of it; the strict parser keeps it from being deep. */
function withoutToken(value: unknown, token: string): unknown {
  if (typeof value === "string") return value.replaceAll(token, MASK);
  if (Array.isArray(value)) return value.map((one) => withoutToken(one, token));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withoutToken(one, token)]));
}
