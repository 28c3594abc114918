import * as oauth from "oauth4webapi";
import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { systemClock } from "../../http/deadline.js";
import { retryAfter } from "../../http/retry.js";
import { escapeText, MASK, quote, Redactor } from "../../redact.js";
import { secretsSentBefore } from "../http/http.js";

const AUTH_ERRORS = new Set([
  "invalid_grant",
  "invalid_client",
  "unauthorized_client",
  "access_denied",
  "login_required",
  "interaction_required",
  "consent_required",
  "expired_token",
  "invalid_token",
]);

/** Codes that say of our own part what no issuer can know: an issuer's word must not pass for them. */
const RESERVED_CODES = new Set([
  "timeout",
  "connection_reset",
  "bad_json",
  "grant_not_saved",
  "lease_lost",
  "renewal_storm",
]);
const MAX_CODE = 64;

/** An issuer's code as ours, if it is one. */
function codeOf(said: string): string {
  return said.length > MAX_CODE || RESERVED_CODES.has(said) ? "http_error" : said;
}

/**
 * Our error for what oauth4webapi threw: the server's own verdict, or a refusal that names what was wrong. What the request
 * told the server is masked in it.
 *
 * @param known secrets that the server knows without having been told them in this request
 */
export function oauthError(thrown: unknown, url: string, known: readonly string[] = []): unknown {
  if (isAgentAuthError(thrown)) return thrown;
  if (thrown instanceof oauth.ResponseBodyError) {
    const { status } = thrown;
    const redactor = secretsSentBefore(thrown.response);
    for (const secret of known) redactor.add(secret);
    const said = redactor.redact(thrown.error) === thrown.error ? thrown.error : MASK;
    const error = codeOf(said);
    const passing = status >= 500 || status === 429 || error === "temporarily_unavailable" || error === "server_error";
    return new AgentAuthError(error, `${url} answered ${quote(said, 60)}${descriptionOf(thrown, redactor)}`, {
      class: passing ? "unavailable" : AUTH_ERRORS.has(error) ? "auth" : "remote",
      status,
      url,
      retryAfter: passing ? retryAfterSeconds(thrown.response) : undefined,
      // A proof says when it was made.
      hint:
        error === "invalid_dpop_proof"
          ? "agentauth doctor tells whether the clock of this machine is right"
          : undefined,
      // Without the cause: it holds the whole answer, whatever that repeats.
    });
  }
  if (thrown instanceof oauth.WWWAuthenticateChallengeError) {
    // Without a word in the body it may come from a proxy: it says nothing of the client, and nothing of the grant.
    const { status } = thrown;
    const passing = status >= 500 || status === 429;
    const code = passing ? "server_error" : "http_error";
    return new AgentAuthError(code, `${url} answered HTTP ${status}`, {
      class: passing ? "unavailable" : "auth",
      status,
      url,
      retryAfter: passing ? retryAfterSeconds(thrown.response) : undefined,
    });
  }
  if (thrown instanceof oauth.AuthorizationResponseError) return authorizationError(thrown, url);
  if (thrown instanceof oauth.OperationProcessingError || thrown instanceof oauth.UnsupportedOperationError) {
    const response = thrown.cause instanceof Response ? thrown.cause : undefined;
    const status = response?.status;
    if (response !== undefined && status !== undefined && (status >= 500 || status === 429)) {
      return new AgentAuthError("server_error", `${url}: HTTP ${status}`, {
        class: "unavailable",
        status,
        url,
        retryAfter: retryAfterSeconds(response),
      });
    }
    // All else was read strictly before it came here.
    if ("code" in thrown && thrown.code === oauth.PARSE_ERROR) {
      return new AgentAuthError("bad_json", `${url}: the answer is empty`, { class: "unavailable", url });
    }
    const http = status !== undefined && status >= 400;
    return new AgentAuthError(
      http ? "http_error" : "bad_token_answer",
      `${url}: ${http ? `HTTP ${status}` : escapeText(secretsSentBefore(response).redact(thrown.message))}`,
      {
        class: http ? "remote" : "refused",
        status,
        url,
        // Without the cause: it holds the answer, and with it whatever tokens it brought.
      },
    );
  }
  return thrown;
}

/** Seconds. */
function retryAfterSeconds({ headers }: Response): number | undefined {
  const wait = retryAfter(headers, systemClock.epoch());
  return wait === undefined ? undefined : Math.ceil(wait / 1000);
}

function authorizationError(thrown: oauth.AuthorizationResponseError, url: string): AgentAuthError {
  const { error } = thrown;
  return new AgentAuthError(
    error,
    `the sign-in ended with ${quote(error, 60)}${descriptionOf(thrown, new Redactor())}`,
    {
      class: error === "temporarily_unavailable" || error === "server_error" ? "unavailable" : "auth",
      url,
      // Without the cause: it holds the callback's parameters.
    },
  );
}

/** The server's own words, harmless and cut. */
function descriptionOf(
  { error_description: description }: { error_description?: unknown },
  redactor: Redactor,
): string {
  return typeof description === "string" ? `: ${escapeText(redactor.redact(description)).slice(0, 300)}` : "";
}
