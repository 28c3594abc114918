import type { AgentAuthError } from "../../errors.js";
import { type Grant, hasExpired, tokenGeneration } from "./grant.js";
import type { PreviousAttempt } from "./lease.js";

// The request may have arrived, and its answer with the new tokens be lost.
const AMBIGUOUS_CODES = new Set(["timeout", "connection_reset", "bad_json"]);
const LOST_CODES = new Set([...AMBIGUOUS_CODES, "grant_not_saved"]);

/** Whether a token request ended in a way that leaves open whether the issuer has answered it with new tokens. */
export function isLostAnswer(error: AgentAuthError): boolean {
  return AMBIGUOUS_CODES.has(error.code) && error.class === "unavailable";
}

/**
 * The grant with the mark that its refresh token was sent and that the answer was lost on the way. An issuer that
 * detects reuse ends the session at the second use, so that the token is not sent again while there is another way.
 */
export function markLost(grant: Grant, code: string, at: number): Grant {
  const lostRefresh = { at, code, generation: tokenGeneration(grant) };
  return { ...grant, generation: grant.generation + 1, lostRefresh };
}

/** Whether the access token is to be used until it expires, since a second refresh could end the session. */
export function isLastToken(grant: Grant, now: number): boolean {
  return grant.lostRefresh !== undefined && !grant.retired && !hasExpired(grant.tokens, now);
}

/** Whether the refresh token was sent before, and nothing is known of its answer. */
export function mayHaveBeenUsed(before: PreviousAttempt | undefined): before is PreviousAttempt {
  if (!before?.committed) return false;
  return before.ended !== "released" || LOST_CODES.has(before.failure?.code ?? "");
}

/** Why a refresh token may have been used before, for the message of its refusal; empty where nothing says so. */
export function describeLoss(repeated: boolean, before: PreviousAttempt | undefined, { lostRefresh }: Grant): string {
  if (repeated) return "; its first answer was lost on the way";
  if (!mayHaveBeenUsed(before)) {
    if (lostRefresh === undefined) return "";
    return `; the answer to the renewal of ${new Date(lostRefresh.at).toISOString()} was lost (${lostRefresh.code})`;
  }
  const { at, ended } = before;
  const how = {
    died: "was interrupted when its process ended",
    expired: "did not end in time",
    released: "got no answer that could be kept",
  };
  return `; the renewal that began at ${new Date(at).toISOString()} ${how[ended]}`;
}
