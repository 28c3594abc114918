import type { ClientErrorCode } from "../../error-codes.js";
import { AgentAuthError, type ErrorClass } from "../../errors.js";
import { shownUrl } from "../../http/address.js";
import { requestIdOf } from "../../http/buffered-response.js";
import { quote } from "../../redact.js";
import type { CommandContext, ContextFlags } from "../runtime/context.js";

/** How long a login may take that is needed before a response, in seconds. */
const DEFAULT_LOGIN_TIMEOUT_S = 300;

/**
 * Seconds until a response must come, plus the time for a login that may be needed in between.
 *
 * @param usual the seconds without `--timeout`
 */
export function limitOf(
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
    requestId: requestIdOf(headers),
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
