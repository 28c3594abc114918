import { type AgentAuthError, isAgentAuthError } from "../errors.js";
import type { Scheme } from "./credentials.js";
import { PROOF_ALGORITHMS } from "./dpop-proof.js";
import { type Answer, jsonAnswer } from "./error-response.js";

/**
 * What is told where a token is not taken, by the error of RFC 6750 section 3.1 or RFC 9449 sections 7.1 and 9: the same
 * whichever rule is broken, which the log knows.
 */
export const REFUSALS = {
  invalid_token: "the access token was not accepted",
  invalid_dpop_proof: "the DPoP proof was not accepted",
  use_dpop_nonce: "the DPoP proof needs the nonce of this answer",
} as const;

/** An error of a token that is not taken. */
export type RefusalCode = keyof typeof REFUSALS;

/** What is told where nothing could be found out about a token. */
export const UNJUDGED = "the access token could not be checked";

/** Seconds after which it is worth asking again, where the error does not say. */
const RETRY_AFTER = 5;

/** What an answer without a good token depends on. */
export interface ChallengeContext {
  /** Where the metadata lies; built from the configured resource, never from the request. */
  metadataUrl: string;
  /** Every scope that the request needs. */
  scopes: readonly string[];
  /** The schemes that are taken. */
  taken: readonly Scheme[];
  /** The scheme of the request. */
  scheme: Scheme;
  /** The nonce that proofs need from here on; undefined where they need none. */
  nonce: string | undefined;
}

/** The 401 for a request without credentials, which names no error (RFC 6750 section 3.1). */
export function askForToken(context: ChallengeContext): Answer {
  return challenged(401, context.taken, context, { error: "unauthorized" }, {});
}

/**
 * The answer for a token that was not taken: 401 with `invalid_token` or what is wrong with its proof, 403
 * `insufficient_scope` with all the scopes needed, 503 where it could not be judged; undefined for an error that is none of
 * these.
 */
export function answerTo(error: unknown, context: ChallengeContext): Answer | undefined {
  if (!isAgentAuthError(error)) return undefined;
  if (error.class === "unavailable") return unavailable(error);
  const schemes = [context.scheme];
  if (error.status === 403) {
    const said = { error: "insufficient_scope" };
    return challenged(403, schemes, context, said, said);
  }
  if (error.status !== 401) return undefined;
  // A bearer token that is bound to a key is no bearer token: its client is to see that it can prove the key.
  if (context.scheme === "Bearer" && context.taken.includes("DPoP")) schemes.push("DPoP");
  // What a program throws while it names scopes is its own, and not for a header.
  const code = isRefusal(error.code) ? error.code : "invalid_token";
  const said = { error: code, error_description: REFUSALS[code] };
  return challenged(401, schemes, context, said, said);
}

function isRefusal(code: string): code is RefusalCode {
  return Object.hasOwn(REFUSALS, code);
}

function unavailable({ message, retryAfter = RETRY_AFTER }: AgentAuthError): Answer {
  const body = { error: "temporarily_unavailable", error_description: message };
  return jsonAnswer(503, body, { "retry-after": String(retryAfter) });
}

/** The error belongs to the first scheme; the others are offered beside it, after it: some clients read no more than one. */
function challenged(
  status: number,
  schemes: readonly Scheme[],
  { metadataUrl, scopes, nonce }: ChallengeContext,
  body: Readonly<Record<string, string>>,
  error: Readonly<Record<string, string>>,
): Answer {
  const scope = scopes.length > 0 ? scopes.join(" ") : undefined;
  const challenges = schemes.map((scheme, nth) => {
    const algs = scheme === "DPoP" ? PROOF_ALGORITHMS.join(" ") : undefined;
    const parameters = Object.entries({ ...(nth === 0 && error), scope, algs, resource_metadata: metadataUrl })
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}="${value}"`);
    return `${scheme} ${parameters.join(", ")}`;
  });
  const headers = { "www-authenticate": challenges.join(", "), ...(nonce !== undefined && { "dpop-nonce": nonce }) };
  return jsonAnswer(status, body, headers);
}
