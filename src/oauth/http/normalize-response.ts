import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { type BufferedResponse, strictObject } from "../../http/buffered-response.js";
import { HttpHeaders, HttpResponse, isResponse } from "../../http/http-message.js";
import { formEncoded } from "../../http/oauth-syntax.js";
import { refusalError } from "../../http/refuse.js";
import { deleteEmpty } from "../../http/strict-json.js";
import { Redactor } from "../../redact.js";

/**
 * Normalizes the response of an endpoint to the form of the specifications, so that the same checks apply to what real
 * servers send: form-encoded bodies (usual before RFC 6749 was final), errors with status 200, tokens with 201, empty
 * values for absent ones, numbers as strings of digits, scopes as a list, a secret without its expiry.
 *
 * @param secrets those of the request: see {@link secretsSentBefore}
 */
export function normalizeResponse(reply: BufferedResponse, secrets: Redactor): Response {
  const normalized = normalize(reply, secrets);
  received.set(normalized, { secrets, text: reply.text });
  return normalized;
}

function normalize(reply: BufferedResponse, secrets: Redactor): Response {
  const { response, text } = reply;
  if (text === "") return withBody(response.status, response, null);
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(response.headers.get("content-type") ?? "");
  const members = isForm ? readFormMembers(reply) : readJsonMembers(reply);
  if (members === undefined) return withBody(response.status, response, text);
  normalizeOptional(members);
  const { scope } = members;
  if (Array.isArray(scope) && scope.every((one) => typeof one === "string")) members["scope"] = scope.join(" ");
  maskTokenType(members, secrets);
  if (members["access_token"] !== undefined) {
    setIdTokenAside(members);
    dropInvalidMembers(members);
  }
  // Many servers omit it where it should be 0, "never" (RFC 7591 section 3.2.1).
  if (typeof members["client_secret"] === "string") members["client_secret_expires_at"] ??= 0;
  const body = JSON.stringify(members);
  const normalized = withBody(effectiveStatus(response, members), response, body, "application/json");
  // The body has the error; a challenge beside it only says how to authenticate (RFC 6749 section 5.2).
  if (typeof members["error"] === "string") normalized.headers.delete("www-authenticate");
  return normalized;
}

/** What a response is for. Of all other members, null, "" and [] are what absent is. */
const NEEDED = [
  ...["access_token", "token_type", "client_id", "issued_token_type", "error"],
  ...["device_code", "user_code", "verification_uri"],
];
/** Numbers that a login does without: a value that is none is what absent is. */
const OPTIONAL_NUMBERS = ["interval", "client_secret_expires_at", "client_id_issued_at"];
const DIGITS = /^\d{1,10}$/;

/** Applies one rule to all members that may be absent. */
function normalizeOptional(members: Record<string, unknown>): void {
  deleteEmpty(members, NEEDED);
  for (const name of ["expires_in", ...OPTIONAL_NUMBERS]) {
    const value = members[name];
    if (typeof value === "string" && DIGITS.test(value)) members[name] = Number(value);
  }
  for (const name of OPTIONAL_NUMBERS) {
    const value = members[name];
    if (typeof value !== "number" || value < 0 || (value === 0 && name === "interval")) delete members[name];
  }
  // Google's name for it, from a draft of RFC 8628.
  if (typeof members["verification_url"] === "string") members["verification_uri"] ??= members["verification_url"];
}

/** The status that the specifications have for these members: an error is no success, and a token is not created. */
function effectiveStatus({ ok, status }: Response, members: Record<string, unknown>): number {
  const hasToken = members["access_token"] !== undefined;
  if (ok && !hasToken && typeof members["error"] === "string") return 400;
  return status === 201 && hasToken ? 200 : status;
}

const ANSWERED = ["access_token", "refresh_token", "client_secret", "registration_access_token"];

/** Masks a secret that a server repeats as the token type, which errors show in lower case. */
function maskTokenType(members: Record<string, unknown>, secrets: Redactor): void {
  const { token_type: type } = members;
  for (const name of ANSWERED) {
    const secret = members[name];
    if (typeof secret === "string") secrets.add(secret);
  }
  if (typeof type === "string") members["token_type"] = secrets.redactKnown(type);
}

/** The member for the id token of a response: oauth4webapi would reject the whole response because of it. */
export const UNVERIFIED_ID_TOKEN = "id_token (not verified)";

function setIdTokenAside(members: Record<string, unknown>): void {
  const idToken = members["id_token"];
  delete members["id_token"];
  if (idToken !== undefined) members[UNVERIFIED_ID_TOKEN] = idToken;
}

/**
 * Drops invalid members that may be absent beside an access token (RFC 6749 section 5.1): its life is then unknown, its
 * scope the requested one. The issuer has consumed the code or the refresh token by then, so rejecting the response would
 * end the login.
 */
function dropInvalidMembers(members: Record<string, unknown>): void {
  const { expires_in: life, refresh_token: refreshToken, scope } = members;
  const seconds = typeof life === "string" && life.trim() !== "" ? Number(life) : life;
  if (typeof seconds === "number" && seconds >= 0 && Number.isFinite(seconds)) members["expires_in"] = seconds;
  else delete members["expires_in"];
  if (!isToken(refreshToken)) delete members["refresh_token"];
  if (typeof scope !== "string") delete members["scope"];
}

const TOKEN_SHAPE = /^[\x21-\x7e]+$/;
const MAX_TOKEN = 64 * 1024;

/** Whether a value has the form of a token (RFC 6749 appendix A) and a storable length. */
export function isToken(value: unknown): value is string {
  return typeof value === "string" && value.length <= MAX_TOKEN && TOKEN_SHAPE.test(value);
}

function readFormMembers({ text, url }: BufferedResponse): Record<string, unknown> {
  const members = Object.create(null) as Record<string, unknown>;
  for (const [name, value] of new URLSearchParams(text)) {
    if (name in members)
      throw refusalError("bad_token_answer", { field: name, value: "(several)", from: url, rule: "must come once" });
    members[name] = value;
  }
  return members;
}

/** The JSON members of a body; undefined for a failure whose body is not JSON. */
function readJsonMembers(reply: BufferedResponse): Record<string, unknown> | undefined {
  try {
    return strictObject(reply);
  } catch (error) {
    if (!reply.response.ok) return undefined;
    // A page in place of a token response comes from a proxy: the server itself did not answer.
    throw isAgentAuthError(error, "bad_content_type") ? asUnavailable(error) : error;
  }
}

function withBody(status: number, response: Response, body: string | null, type?: string): Response {
  const headers = new HttpHeaders(response.headers);
  headers.delete("content-length");
  if (type !== undefined) headers.set("content-type", type);
  return new HttpResponse(body, { status, headers });
}

/** The error of a peer that answered, as one of a peer that did not. */
export function asUnavailable(error: AgentAuthError): AgentAuthError {
  const { code, message, status, url, hint, remedy } = error;
  return new AgentAuthError(code, message, { class: "unavailable", status, url, hint, remedy, cause: error });
}

/** A part of a JWT that is long enough that no word has it by chance. */
const MIN_PART = 16;

/** Form members with secrets (RFC 6749, 7009, 7521, 7636, 8628, 8693). */
const SECRET_MEMBERS = [
  ...["code", "code_verifier", "client_secret", "client_assertion", "assertion", "refresh_token", "device_code"],
  ...["subject_token", "actor_token", "token"],
];

/** The secrets of a request, which its server may repeat in the response. */
export function secretsIn(headers: Headers, body: unknown): Redactor {
  const secrets = new Redactor();
  const form = new URLSearchParams(String(body));
  for (const name of SECRET_MEMBERS) for (const value of form.getAll(name)) addForms(secrets, value);
  const [scheme = "", credentials = ""] = headers.get("authorization")?.split(" ") ?? [];
  addForms(secrets, credentials);
  addForms(secrets, headers.get("dpop") ?? "");
  if (scheme.toLowerCase() === "basic") {
    const [, secret = ""] = atob(credentials).split(":");
    secrets.add(secret);
    addForms(secrets, decodeURIComponent(secret.replaceAll("+", " ")));
  }
  return secrets;
}

/** Adds a secret in each form in which a server may repeat it: as it is, encoded for an address or a form, in base64. */
function addForms(secrets: Redactor, value: string): void {
  const base64 = btoa(
    Array.from(new TextEncoder().encode(value), (byte) => String.fromCharCode(byte)).join(""),
  ).replace(/=+$/, "");
  secrets.add(value);
  secrets.add(encodeURIComponent(value));
  secrets.add(formEncoded(value));
  secrets.add(base64);
  secrets.add(base64.replaceAll("+", "-").replaceAll("/", "_"));
  // The parts of a JWT.
  for (const part of value.split(".")) if (part.length >= MIN_PART) secrets.add(part);
}

/** What is known of a normalized response beside itself: the secrets of its request, and the body as it was received. */
const received = new WeakMap<Response, { secrets: Redactor; text: string }>();

export function readText(response: Response): string | undefined {
  return received.get(response)?.text;
}

export function secretsSentBefore(response: unknown): Redactor {
  return (isResponse(response) ? received.get(response)?.secrets : undefined) ?? new Redactor();
}
