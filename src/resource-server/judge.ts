import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { MASK, quote } from "../redact.js";
import { checkLength } from "./bearer.js";
import { REFUSED, UNJUDGED } from "./challenge.js";
import { judgeClaims, type TokenClaims } from "./claims.js";
import { TokenRefusal } from "./events.js";
import { createIntrospect } from "./introspection.js";
import type { Issuer } from "./issuer.js";
import { keysOf, looksLikeJwt, readJwt, verifySignature } from "./jwt.js";
import type { Settings } from "./settings.js";
import { type VerifiedToken, verifiedToken } from "./verified-token.js";

/**
 * Judges tokens.
 *
 * It throws an `AgentAuthError` `invalid_token` (class `auth`, status 401) whose message is the same whatever rule was
 * broken, or one of class `unavailable` (status 503) where the token could not be judged.
 */
export type Judge = (token: string, signal: AbortSignal | undefined) => Promise<VerifiedToken>;

/** Makes the judge of a resource server. */
export function createJudge(settings: Settings, issuers: readonly Issuer[]): Judge {
  const known = new Map(issuers.map((issuer) => [issuer.issuer, keysOf(issuer, settings)]));
  const asked = issuers.find(({ issuer }) => issuer === settings.introspected);
  const introspect = asked && createIntrospect(asked, settings);

  const byJwt = async (token: string, signal: AbortSignal | undefined): Promise<[string, TokenClaims]> => {
    const claims = readJwt(token, settings);
    const issuer = claims["iss"];
    // Of a token that names somebody else nothing is asked anywhere.
    const keys = typeof issuer === "string" ? known.get(issuer) : undefined;
    if (!keys || typeof issuer !== "string") throw new TokenRefusal("issuer", `iss ${quote(issuer)} is none of ours`);
    await verifySignature(token, keys, settings, signal).catch(unjudged(issuer));
    return [issuer, claims];
  };
  const byIssuer = async (token: string, signal: AbortSignal | undefined): Promise<[string, TokenClaims]> => {
    if (!asked || !introspect) throw new TokenRefusal("not_a_jwt", "the token is no JWT, and no issuer is to be asked");
    return [asked.issuer, await introspect(token, signal).catch(unjudged(asked.issuer))];
  };
  const judge = async (token: string, signal: AbortSignal | undefined): Promise<VerifiedToken> => {
    checkLength(token);
    const isJwt = settings.tokens === "jwt" || (settings.tokens === "both" && looksLikeJwt(token));
    const [issuer, claims] = await (isJwt ? byJwt : byIssuer)(token, signal);
    const { audiences, clockSkew: skew, clock } = settings;
    const facts = judgeClaims(claims, { issuer, audiences, now: clock.epoch() / 1000, skew });
    return verifiedToken(token, issuer, facts, claims);
  };
  return (token, signal) => judge(token, signal).catch((error: unknown) => told(error, token, settings));
}

/** An issuer that cannot be asked, with its name. */
class Unjudged extends Error {
  readonly issuer: string;
  readonly error: AgentAuthError;

  constructor(issuer: string, error: AgentAuthError) {
    super(error.message);
    this.issuer = issuer;
    this.error = error;
  }
}

function unjudged(issuer: string): (error: unknown) => never {
  return (error) => {
    throw isAgentAuthError(error) && error.class !== "aborted" ? new Unjudged(issuer, error) : error;
  };
}

/** Tells the log what was wrong, and the caller no more than everybody may know. */
function told(error: unknown, token: string, { log }: Settings): never {
  const shown = (detail: string) => detail.replaceAll(token, MASK);
  if (error instanceof TokenRefusal) {
    log({ type: "refused", reason: error.reason, detail: shown(error.message) });
    throw invalidToken();
  }
  if (!(error instanceof Unjudged)) throw error;
  const { code, message } = error.error;
  log({ type: "unavailable", issuer: error.issuer, code, detail: shown(message) });
  throw new AgentAuthError(code, UNJUDGED, { class: "unavailable", status: 503, retryable: true });
}

/** The error for any token that is not taken. */
export function invalidToken(): AgentAuthError {
  return new AgentAuthError("invalid_token", REFUSED, { class: "auth", status: 401 });
}
