import type { AgentAuthError } from "../../errors.js";
import { type Grant, hasExpired, tokenGeneration } from "../model/grant.js";
import type { PreviousAttempt } from "../model/lease.js";

// The request may have arrived, and the response with the new tokens been lost.
const AMBIGUOUS_CODES = new Set(["timeout", "connection_reset", "bad_json"]);
const LOST_CODES = new Set([...AMBIGUOUS_CODES, "grant_not_saved"]);

/** Whether a token request failed in a way that leaves open whether the issuer has issued new tokens. */
export function isLostAnswer(error: AgentAuthError): boolean {
  return AMBIGUOUS_CODES.has(error.code) && error.class === "unavailable";
}

/**
 * The grant with the mark that its refresh token was sent and the response was lost. An issuer that detects reuse ends
 * the session at the second use, so the refresh token is not sent again while the access token is valid.
 */
export function markLost(grant: Grant, code: string, at: number): Grant {
  const lostRefresh = { at, code, generation: tokenGeneration(grant) };
  return { ...grant, generation: grant.generation + 1, lostRefresh };
}

/** Whether the access token is to be used until it expires, because a second refresh could end the session. */
export function isLastToken(grant: Grant, now: number): boolean {
  return grant.lostRefresh !== undefined && !grant.retired && !hasExpired(grant.tokens, now);
}

/** Whether the refresh token was sent before and its response is unknown. */
export function mayHaveBeenUsed(before: PreviousAttempt | undefined): before is PreviousAttempt {
  if (!before?.committed) return false;
  return before.ended !== "released" || LOST_CODES.has(before.failure?.code ?? "");
}

/** Why a refresh token may have been used before, for the message of its rejection; empty if it was not. */
export function describeLoss(repeated: boolean, before: PreviousAttempt | undefined, { lostRefresh }: Grant): string {
  if (repeated) return "; the response to the first attempt was lost";
  if (!mayHaveBeenUsed(before)) {
    if (lostRefresh === undefined) return "";
    return `; the response to the refresh of ${new Date(lostRefresh.at).toISOString()} was lost (${lostRefresh.code})`;
  }
  const { at, ended } = before;
  const how = {
    died: "was interrupted when its process ended",
    expired: "did not finish in time",
    released: "got no response that could be stored",
  };
  return `; the refresh that began at ${new Date(at).toISOString()} ${how[ended]}`;
}
