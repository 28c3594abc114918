import * as oauth from "oauth4webapi";
import { AgentAuthError, isAgentAuthError, withHint } from "../../errors.js";
import { parseIfJson } from "../../http/buffered-response.js";
import { systemClock } from "../../http/deadline.js";
import { HttpHeaders, isResponse } from "../../http/http-message.js";
import { refusalError } from "../../http/refuse.js";
import { retryAfter } from "../../http/retry.js";
import { isJsonObject } from "../../http/strict-json.js";
import { escapeText, MASK, quote, type Redactor } from "../../redact.js";
import { NO_RESOURCE } from "../model/resource.js";
import { readText, secretsIn, secretsSentBefore } from "./normalize-response.js";

const AUTH_ERRORS = new Set([
  ...["invalid_grant", "invalid_client", "unauthorized_client", "access_denied", "login_required"],
  ...["interaction_required", "consent_required", "expired_token", "invalid_token"],
]);

/** Codes about our own state, which an issuer cannot know: a response must not imitate them. */
const RESERVED_CODES = new Set([
  "timeout",
  "connection_reset",
  "bad_json",
  "grant_not_saved",
  "lease_lost",
  "renewal_storm",
]);
/** What a code looks like; a sentence in its place is none. */
const CODE = /^[\w.:/-]{1,64}$/;

export function mapErrorCode(code: string): string {
  return !CODE.test(code) || RESERVED_CODES.has(code) ? "http_error" : code;
}

/** Members with an explanation, by precedence: RFC 6749 and 7591, then the usual ones of other APIs. */
const WORDS = ["error_description", "message", "detail", "msg", "errorSummary", "errors", "error"] as const;
const MAX_WORDS = 300;
const MAX_NESTED = 4;

/**
 * What an endpoint says of a failure in words of its own, whatever the form of its answer: JSON with the usual members,
 * also in a list or in an object, or plain text. Quoted, escaped, cut, and without the secrets of the request.
 *
 * @param text the body as it was received
 * @param code the error code, which explains nothing
 */
export function serverWords(response: Response, text: string, code?: string): string | undefined {
  const words = readWords(response, text, code);
  // Quotes in the words would end the quotation, and the rest would read as our own text.
  return words && quote(secretsSentBefore(response).redact(words).replaceAll('"', "'"), MAX_WORDS);
}

/** As {@link serverWords}, as they were sent: to be compared, not to be shown. */
export function readWords({ headers }: Pick<Response, "headers">, text: string, code?: string): string | undefined {
  const type = headers.get("content-type") ?? "";
  if (type.includes("json")) return wordsIn(parseIfJson(text), code);
  const words = text.trim();
  // A page of a proxy explains nothing, and words may. What could be a token, or has markup or JSON, may hold a secret.
  const isWords = /\s|^[A-Za-z]{1,20}[.!]?$/.test(words) && !/[{}[\]<>]/.test(words);
  return type.startsWith("text/plain") && isWords ? words : undefined;
}

function wordsIn(value: unknown, code: string | undefined, depth = 0): string | undefined {
  if (typeof value === "string") return value === "" || value === code ? undefined : value;
  if (depth > MAX_NESTED) return undefined;
  const parts = Array.isArray(value) ? value : isJsonObject(value) ? WORDS.map((name) => value[name]) : [];
  for (const part of parts) {
    const found = wordsIn(part, code, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The words of a response as the end of a message. */
function wordsAfter(response: Response | undefined, known: readonly string[], code?: string): string {
  const text = response && readText(response);
  if (text === undefined) return "";
  for (const secret of known) secretsSentBefore(response).add(secret);
  const words = serverWords(response as Response, text, code);
  return words === undefined ? "" : `: ${words}`;
}

/**
 * The `AgentAuthError` for an error of oauth4webapi: the server's own code, or a refusal that names what was wrong. The
 * secrets of the request are masked in it.
 *
 * @param known secrets that the server knows but that this request did not send
 */
export function oauthError(thrown: unknown, url: string, known: readonly string[] = []): unknown {
  if (isAgentAuthError(thrown)) return thrown;
  if (thrown instanceof oauth.ResponseBodyError) {
    const { status } = thrown;
    const redactor = secretsSentBefore(thrown.response);
    for (const secret of known) redactor.add(secret);
    const { code, error } = readCodes(thrown, redactor);
    const isTemporary =
      status >= 500 || status === 429 || error === "temporarily_unavailable" || error === "server_error";
    const description = readDescription(thrown, redactor) || wordsAfter(thrown.response, known, thrown.error);
    return new AgentAuthError(error, `${url} answered ${quote(code, 60)}${description}`, {
      class: isTemporary ? "unavailable" : AUTH_ERRORS.has(error) ? "auth" : "remote",
      status,
      url,
      retryAfter: isTemporary ? retryAfterSeconds(thrown.response) : undefined,
      // A proof says when it was made.
      ...(error === "invalid_dpop_proof" && {
        hint: "check the clock of this machine",
        remedy: { action: "inspect", subject: "clock" },
      }),
      // Without the cause: it holds the whole response, which may repeat secrets.
    });
  }
  if (thrown instanceof oauth.WWWAuthenticateChallengeError) {
    // Without an error in the body it may come from a proxy: it says nothing about the client or the grant.
    const { status } = thrown;
    const isTemporary = status >= 500 || status === 429;
    const code = isTemporary ? "server_error" : "http_error";
    const message = `${url} answered HTTP ${status}${wordsAfter(thrown.response, known)}`;
    const retryAfter = isTemporary ? retryAfterSeconds(thrown.response) : undefined;
    return new AgentAuthError(code, message, { class: isTemporary ? "unavailable" : "auth", status, url, retryAfter });
  }
  if (thrown instanceof oauth.AuthorizationResponseError) return authorizationError(thrown, url);
  if (thrown instanceof oauth.OperationProcessingError || thrown instanceof oauth.UnsupportedOperationError) {
    const response = isResponse(thrown.cause) ? thrown.cause : undefined;
    const status = response?.status;
    if (response !== undefined && (response.status >= 500 || response.status === 429)) {
      const message = `${url}: HTTP ${status}${wordsAfter(response, known)}`;
      const retryAfter = retryAfterSeconds(response);
      return new AgentAuthError("server_error", message, { class: "unavailable", status, url, retryAfter });
    }
    // All other bodies were strictly parsed before.
    if ("code" in thrown && thrown.code === oauth.PARSE_ERROR)
      return new AgentAuthError("bad_json", `${url}: the response is empty`, { class: "unavailable", url });
    const isHttpError = status !== undefined && status >= 400;
    const broken = isHttpError ? undefined : brokenMember(thrown, url);
    if (broken !== undefined) return broken;
    const code = isHttpError ? "http_error" : "bad_token_answer";
    const what = isHttpError
      ? `HTTP ${status}${wordsAfter(response, known)}`
      : escapeText(secretsSentBefore(response).redactKnown(thrown.message));
    // Without the cause: it holds the response, which may have tokens.
    return new AgentAuthError(code, `${url}: ${what}`, { class: isHttpError ? "remote" : "refused", status, url });
  }
  return thrown;
}

/** The refusal of a member that oauth4webapi complains about, without its value: it may be a secret. */
function brokenMember({ message, cause }: Error, url: string): AgentAuthError | undefined {
  const [, field, rule] = /^"response" body "(\w+)" property (must .+)$/.exec(message) ?? [];
  if (field === undefined || rule === undefined) return undefined;
  const value = (cause as { body?: Record<string, unknown> }).body?.[field] ? "(not shown)" : undefined;
  return refusalError("bad_token_answer", { field, value, from: url, url, rule });
}

/** Seconds. */
function retryAfterSeconds({ headers }: Response): number | undefined {
  const wait = retryAfter(headers, systemClock.epoch());
  return wait === undefined ? undefined : Math.ceil(wait / 1000);
}

/** The code of an error as it may be shown, and as the code of ours. */
function readCodes(thrown: { error: string }, redactor: Redactor): { code: string; error: string } {
  const code = redactor.redactKnown(thrown.error) === thrown.error ? thrown.error : MASK;
  return { code, error: mapErrorCode(code) };
}

function authorizationError(thrown: oauth.AuthorizationResponseError, url: string): AgentAuthError {
  const redactor = secretsIn(new HttpHeaders(), thrown.cause);
  const { code, error } = readCodes(thrown, redactor);
  const message = `the login failed with ${quote(code, 60)}${readDescription(thrown, redactor)}`;
  const isDown = error === "temporarily_unavailable" || error === "server_error";
  // Without the cause: it holds the callback's parameters.
  return new AgentAuthError(error, message, { class: isDown ? "unavailable" : "auth", url });
}

/** The server's description, escaped and shortened. */
function readDescription({ error_description: description }: { error_description?: unknown }, redactor: Redactor) {
  return typeof description === "string" ? `: ${escapeText(redactor.redactKnown(description)).slice(0, 300)}` : "";
}

/** What Entra ID reports, under several codes, if the resource does not match the scopes. */
const ENTRA_MISMATCH = "AADSTS9010010";

/** Adds the option `resource` to the error of an issuer that rejects the resource of a request (RFC 8707 section 2). */
export function withResourceHint(error: unknown, resource: string | undefined): unknown {
  if (!isAgentAuthError(error)) return error;
  const isRejected = error.code === "invalid_target" && error.hint === undefined;
  if (!isRejected && !error.message.includes(ENTRA_MISMATCH)) return error;
  const hint =
    resource === NO_RESOURCE
      ? "the issuer needs a resource: set the option resource"
      : `the issuer rejects the resource ${quote(resource)}: with resource "none" none is sent, or set another one`;
  return withHint(error, hint, { action: "configure", option: "resource", value: resource });
}
