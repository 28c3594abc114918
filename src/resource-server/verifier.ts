import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { MASK, quote } from "../redact.js";
import { REFUSALS, type RefusalCode, UNJUDGED } from "./challenge.js";
import { type ClaimRules, checkKind, judgeClaims, type TokenClaims } from "./claim-checks.js";
import { checkLength } from "./credentials.js";
import type { Dpop, Presentation } from "./dpop.js";
import { type RefusalReason, TokenRefusal } from "./events.js";
import { createIntrospect } from "./introspection.js";
import type { Issuer } from "./issuer.js";
import { keysOf, looksLikeJwt, readJwt, verifySignature } from "./jwt.js";
import type { Settings } from "./resolved-options.js";
import { type VerifiedToken, verifiedToken } from "./verified-token.js";

/** A token that was taken. */
export interface Verified {
  verified: VerifiedToken;
  /** Whether the client is to be told the nonce that proofs need from here on. */
  isNonceOld: boolean;
}

/**
 * Judges tokens.
 *
 * It throws an `AgentAuthError` (class `auth`, status 401) `invalid_token`, `invalid_dpop_proof` or `use_dpop_nonce` whose
 * message is the same whatever rule was broken, or one of class `unavailable` (status 503) where the token could not be
 * judged.
 */
export type TokenVerifier = (
  token: string,
  presented: Presentation,
  signal: AbortSignal | undefined,
) => Promise<Verified>;

/** Makes the judge of a resource server. */
export function createTokenVerifier(settings: Settings, issuers: readonly Issuer[], dpop: Dpop): TokenVerifier {
  const known = new Map(issuers.map((issuer) => [issuer.issuer, keysOf(issuer, settings)]));
  const asked = issuers.find(({ issuer }) => issuer === settings.introspected);
  const introspect = asked && createIntrospect(asked, settings);

  const rulesOf = (issuer: string): ClaimRules => {
    const { audiences, clockSkew: skew, clock } = settings;
    return { issuer, audiences, now: clock.epoch() / 1000, skew };
  };
  const byJwt = async (token: string, signal: AbortSignal | undefined): Promise<[string, TokenClaims]> => {
    const claims = readJwt(token, settings);
    const issuer = claims["iss"];
    // Of a token that names somebody else nothing is asked anywhere.
    const keys = typeof issuer === "string" ? known.get(issuer) : undefined;
    if (!keys || typeof issuer !== "string") throw new TokenRefusal("issuer", `iss ${quote(issuer)} is none of ours`);
    await verifySignature(token, keys, settings, signal).catch((error: unknown) => {
      // What an expired token was signed with no longer matters: its client must not wait for the keys.
      if (isAgentAuthError(error) && error.code === "unknown_key") judgeClaims(claims, rulesOf(issuer));
      return unjudged(issuer)(error);
    });
    return [issuer, claims];
  };
  const byIssuer = async (token: string, signal: AbortSignal | undefined): Promise<[string, TokenClaims]> => {
    if (!asked || !introspect) throw new TokenRefusal("not_a_jwt", "the token is no JWT, and no issuer is to be asked");
    const claims = await introspect(token, signal).catch(unjudged(asked.issuer));
    checkKind(claims);
    return [asked.issuer, claims];
  };
  const judge: TokenVerifier = async (token, presented, signal) => {
    checkLength(token);
    dpop.checkScheme(presented.scheme);
    const isJwt = settings.tokens === "jwt" || (settings.tokens === "both" && looksLikeJwt(token));
    const [issuer, claims] = await (isJwt ? byJwt : byIssuer)(token, signal);
    const facts = judgeClaims(claims, rulesOf(issuer));
    const { isNonceOld } = await dpop.check(token, presented, facts.boundTo);
    return { verified: verifiedToken(token, issuer, facts, claims), isNonceOld };
  };
  return (token, presented, signal) =>
    judge(token, presented, signal).catch((error: unknown) => told(error, token, settings));
}

/** An issuer that cannot be asked, with its name. */
class VerificationUnavailable extends Error {
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
    throw isAgentAuthError(error) && error.class !== "aborted" ? new VerificationUnavailable(issuer, error) : error;
  };
}

/** Tells the log what was wrong, and the caller no more than everybody may know. */
function told(error: unknown, token: string, { log }: Settings): never {
  const shown = (detail: string) => detail.replaceAll(token, MASK);
  if (error instanceof TokenRefusal) {
    log({ type: "refused", reason: error.reason, detail: shown(error.message) });
    throw refusal(error.reason);
  }
  if (!(error instanceof VerificationUnavailable)) throw error;
  const { code, message, retryAfter } = error.error;
  log({ type: "unavailable", issuer: error.issuer, code, detail: shown(message) });
  throw new AgentAuthError(code, UNJUDGED, { class: "unavailable", status: 503, retryable: true, retryAfter });
}

/** The error for any token that is not taken, which tells of its proof what its client can know by itself. */
export function refusal(reason: RefusalReason): AgentAuthError {
  const code = ABOUT_PROOFS[reason] ?? "invalid_token";
  return new AgentAuthError(code, REFUSALS[code], { class: "auth", status: 401 });
}

const ABOUT_PROOFS: Partial<Record<RefusalReason, RefusalCode>> = {
  proof: "invalid_dpop_proof",
  replayed: "invalid_dpop_proof",
  nonce: "use_dpop_nonce",
};
