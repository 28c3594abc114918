import type { ClientErrorCode } from "../../error-codes.js";
import { AgentAuthError, type ErrorClass, usageError } from "../../errors.js";
import { shownUrl } from "../../http/address.js";
import { readRequestId } from "../../http/buffered-response.js";
import { TOKEN } from "../../http/http-message.js";
import { escapeText, quote } from "../../redact.js";
import type { CommandContext, ContextFlags } from "../runtime/context.js";

/**
 * A header as it was typed.
 *
 * @throws `AgentAuthError` `usage`, which shows only the start of the text: the rest may be a secret
 */
export function parseHeaderLine(line: string, from: string): { name: string; value: string } {
  const [, name = "", value = ""] = /^([^:]*):[ \t]*(.*?)[ \t]*$/s.exec(line) ?? [];
  // A line that is one word is all value.
  const shown = /[:\s]/.test(line) ? `${from} ${quote(line.split(/[:\s]/, 1)[0], 40)}` : from;
  if (!TOKEN.test(name)) throw usageError(`${shown} is not "name: value"`, 'for example "Accept: text/plain"');
  checkHeaderValue(value, shown);
  return { name, value };
}

/** @throws `AgentAuthError` `usage` for a value with which a header could have another one in it */
export function checkHeaderValue(value: string, shown: string): void {
  if (/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) return;
  throw usageError(
    `${shown} has a character that is not allowed in a header value`,
    "remove line breaks and control characters",
  );
}

/** A result as text: its texts, and a word for each part that is no text. */
export function readText(result: Record<string, unknown>): string {
  const parts = Array.isArray(result["content"]) ? (result["content"] as Record<string, unknown>[]) : [];
  const lines = parts.map((part) =>
    part["type"] === "text" && typeof part["text"] === "string" ? part["text"] : `(${String(part["type"])})`,
  );
  return `${lines.flatMap((text) => text.split("\n").map(escapeText)).join("\n")}\n`;
}

/** How long a login may take that is needed before a response, in seconds. */
const DEFAULT_LOGIN_TIMEOUT_S = 300;

/**
 * Seconds until a response must come, plus the time for a login that may be needed in between.
 *
 * @param usual the seconds without `--timeout`
 */
export function readLimit(
  flags: Pick<ContextFlags, "timeout" | "loginTimeout">,
  context: Pick<CommandContext, "mayLogin">,
  usual: number,
): number {
  const { timeout = usual, loginTimeout = DEFAULT_LOGIN_TIMEOUT_S } = flags;
  return context.mayLogin() ? timeout + loginTimeout : timeout;
}

/** The error for a response that did not come within this many seconds. */
export function lateError(url: string, limit: number, what = "no response"): AgentAuthError {
  return new AgentAuthError("timeout", `${new URL(url).host}: ${what} in ${limit} s`, {
    class: "unavailable",
    url: shownUrl(url),
    hint: "--timeout <seconds> allows more time",
  });
}

/** What is known of a request beside its answer. */
export interface SentRequest {
  /** The address as it was given. */
  requested: string;
  /** Whether the answer is another server's, after a redirect. */
  foreign?: boolean;
  /** The machine grant that got the token, if one did. */
  grant?: string | undefined;
  /** Whether the answer says that the token was rejected. Default: if its status is 401. */
  isRejected?: boolean | undefined;
  /** What the server says of it, as it came. */
  words?: string | undefined;
}

/** The error for an answer of 400 or above: `auth` for 401, `unavailable` for 429 and 5xx, `remote` for any other. */
export function responseError(
  { status, headers, url: answered }: Response,
  { requested, foreign = false, grant, isRejected = status === 401, words }: SentRequest,
): AgentAuthError {
  const url = shownUrl(foreign ? answered : requested);
  const { code, kind } = classify(status, isRejected && !foreign);
  const wait = headers.get("retry-after") ?? "";
  const isLogin = kind === "auth" && grant === undefined;
  const hints: Partial<Record<ErrorClass, string | undefined>> = {
    auth: isLogin ? undefined : "look at what the issuer lets this client do",
    unavailable: /^\d{1,6}$/.test(wait) ? `call again in ${wait} s, as the server asks` : "call again later",
  };
  const what = kind === "auth" ? "refused the token" : "answered with an error";
  const detail = words === undefined ? "" : `: ${quote(words, 300)}`;
  return new AgentAuthError(code, `${quote(url)} ${what} (HTTP ${status})${detail}`, {
    class: kind,
    status,
    url,
    requestId: readRequestId(headers),
    hint: hints[kind],
    remedy: isLogin ? { action: "login", server: requested } : undefined,
  });
}

/** @param isRejected not if another server answers: what it thinks of a request without a token says nothing */
function classify(status: number, isRejected: boolean): { code: ClientErrorCode; kind: ErrorClass } {
  if (isRejected) return { code: "login_required", kind: "auth" };
  if (status === 429) return { code: "rate_limited", kind: "unavailable" };
  if (status >= 500) return { code: "server_error", kind: "unavailable" };
  return { code: "http_error", kind: "remote" };
}
