import { type AgentAuthError, isAgentAuthError } from "../errors.js";
import { type Answer, jsonAnswer } from "./answer.js";

/** What every token that is not taken is told, whichever rule it breaks: the log knows which. */
export const REFUSED = "the access token was not accepted";

/** What is told where nothing could be found out about a token. */
export const UNJUDGED = "the access token could not be checked";

/** Seconds after which it is worth asking again. */
const RETRY_AFTER = 5;

/** What an answer without a good token depends on. */
export interface ChallengeContext {
  /** Where the metadata lies; built from the configured resource, never from the request. */
  metadataUrl: string;
  /** Every scope that the request needs. */
  scopes: readonly string[];
}

/** The 401 for a request without credentials, which names no error (RFC 6750 section 3.1). */
export function askForToken(context: ChallengeContext): Answer {
  return challenged(401, undefined, context, "unauthorized");
}

/**
 * The answer for a token that was not taken: 401 `invalid_token`, 403 `insufficient_scope` with all the scopes needed, 503
 * where it could not be judged; undefined for an error that is none of these.
 */
export function answerTo(error: unknown, context: ChallengeContext): Answer | undefined {
  if (!isAgentAuthError(error)) return undefined;
  if (error.class === "unavailable") return unavailable(error);
  if (error.status === 403) return challenged(403, undefined, context, "insufficient_scope", "insufficient_scope");
  if (error.status === 401) return challenged(401, REFUSED, context, "invalid_token", "invalid_token");
  return undefined;
}

function unavailable({ message }: AgentAuthError): Answer {
  const body = { error: "temporarily_unavailable", error_description: message };
  return jsonAnswer(503, body, { "retry-after": String(RETRY_AFTER) });
}

function challenged(
  status: number,
  error_description: string | undefined,
  { metadataUrl, scopes }: ChallengeContext,
  shown: string,
  error?: string,
): Answer {
  const scope = scopes.length > 0 ? scopes.join(" ") : undefined;
  const parameters = Object.entries({ error, error_description, scope, resource_metadata: metadataUrl })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}="${value}"`);
  const body = { error: shown, ...(error_description !== undefined && { error_description }) };
  return jsonAnswer(status, body, { "www-authenticate": `Bearer ${parameters.join(", ")}` });
}
