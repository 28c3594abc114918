/** The requests that a vault reads, and its responses. */

import { isAgentAuthError } from "../errors.js";
import { readText, saysJson } from "../http/buffered-response.js";
import { isJsonObject, parseStrictJson } from "../http/strict-json.js";
import { isSameText } from "../oauth/login/sealed-text.js";
import { readCookie, setCookie } from "../oauth/login/web-app.js";
import { comesFromElsewhere } from "../oauth/login-handlers.js";

/** The titles of problems, by their status: what they say is the same for every user. */
const TITLES = {
  400: "The request failed.",
  401: "Log in to this application first.",
  403: "Send the request from this site.",
  404: "There is nothing here for you.",
  405: "The method is not allowed.",
  409: "Connect the server first.",
  413: "The body is too large.",
  415: "The body has another type.",
  429: "Too many requests.",
  500: "The application failed.",
  503: "The issuer or the store is unavailable.",
} as const;

type ProblemStatus = keyof typeof TITLES;

/** No page of another site may read or embed a response, and no cache may keep it. */
const HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** A problem (RFC 9457) with a code of ours, and no text of a server. */
export function respondProblem(status: number, code: string, headers: Record<string, string> = {}): Response {
  const known = status in TITLES ? (status as ProblemStatus) : 500;
  const type = { "content-type": "application/problem+json" };
  const problem = { title: TITLES[known], status: known, code };
  return new Response(JSON.stringify(problem), { status: known, headers: { ...HEADERS, ...type, ...headers } });
}

export function respondJson(value: object, cookies: readonly string[] = []): Response {
  return withCookies(cookies, JSON.stringify(value), { ...HEADERS, "content-type": "application/json" }, 200);
}

/** Sends the browser on with GET. */
export function respondSeeOther(location: string, cookies: readonly string[] = []): Response {
  return withCookies(cookies, null, { ...HEADERS, location }, 303);
}

function withCookies(
  cookies: readonly string[],
  body: string | null,
  given: Record<string, string>,
  status: number,
): Response {
  const headers = new Headers(given);
  for (const cookie of cookies) headers.append("set-cookie", cookie);
  return new Response(body, { status, headers });
}

/** Far more than an address, a scope and a page, in bytes. */
const MAX_BODY = 16 * 1024;
/** `__Host-`: neither another host of the domain nor a page without encryption can set it. */
const COOKIE = "__Host-agentauth-form";
const COOKIE_SECONDS = 24 * 3600;

/** What a plain form needs beside its fields. */
export interface FormToken {
  /** The value of the hidden field `form_token`. */
  token: string;
  /** The `Set-Cookie` header to send with the page; undefined if the browser has the cookie. */
  cookie: string | undefined;
}

/** The token of the forms of a browser: that of its cookie, which only pages of this origin know. */
export function formTokenOf(request: Request): FormToken {
  const known = readCookie(request.headers.get("cookie") ?? "", COOKIE);
  // Pages show the token: a cookie of another form is not ours.
  if (known !== undefined && /^[\w-]{36}$/.test(known)) return { token: known, cookie: undefined };
  const token = crypto.randomUUID();
  return { token, cookie: setCookie(COOKIE, token, COOKIE_SECONDS) };
}

/** What a user sent. */
export interface SentFields {
  /** Whether a browser shows the response as a page: that to a plain form is one. */
  isPage: boolean;
  /** A field; undefined if it is absent, null or empty. */
  field(name: string): string | undefined;
}

/**
 * Reads a POST that no page of another origin can have caused: not by its headers, and as JSON, which a page of another
 * origin can send only if the response to a preflight allows it, or as a form with the token of the browser.
 *
 * @returns the problem to answer with, if it is another
 */
export async function readPost(request: Request, baseUrl: string): Promise<SentFields | Response> {
  if (comesFromElsewhere(request.headers, baseUrl)) return respondProblem(403, "cross_site");
  const isForm = /^application\/x-www-form-urlencoded *(?:;|$)/i.test(request.headers.get("content-type") ?? "");
  if (!isForm && !saysJson(request.headers)) return respondProblem(415, "bad_content_type");
  let value: unknown;
  try {
    const text = await readText(new Response(request.body), baseUrl, MAX_BODY, true);
    value = isForm ? formOf(text) : parseStrictJson(text);
  } catch (error) {
    const isTooLarge = isAgentAuthError(error) && error.code === "body_too_large";
    return isTooLarge ? respondProblem(413, "body_too_large") : respondProblem(400, "bad_request");
  }
  if (!isJsonObject(value)) return respondProblem(400, "bad_request");
  const fields = new Map(Object.entries(value).filter(([, field]) => field !== null && field !== ""));
  if (![...fields.values()].every((field) => typeof field === "string")) return respondProblem(400, "bad_request");
  const field = (name: string) => fields.get(name) as string | undefined;
  const cookie = readCookie(request.headers.get("cookie") ?? "", COOKIE);
  const hasToken = cookie !== undefined && isSameText(cookie, field("form_token") ?? "");
  return isForm && !hasToken ? respondProblem(403, "cross_site") : { isPage: isForm, field };
}

/** The fields of a form. @throws for one that comes twice: readers differ in which one they take */
function formOf(text: string): Record<string, string> {
  const pairs = [...new URLSearchParams(text)];
  if (new Set(pairs.map(([name]) => name)).size < pairs.length) throw new TypeError("a field comes twice");
  return Object.fromEntries(pairs);
}
