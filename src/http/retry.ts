import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import { type BufferedResponse, type HttpEvent, type Send, shownUrl } from "./buffered-response.js";
import type { Clock } from "./deadline.js";

/** How often and how patiently a request is repeated. */
export interface RetryPolicy {
  /** Attempts in all, the first included. */
  maxAttempts: number;
  clock: Clock;
  /** A number in [0, 1). */
  random: () => number;
  onEvent?: ((event: HttpEvent) => void) | undefined;
}

const BASE_MS = 250;
const MAX_BACKOFF_MS = 20_000;
const RETRIED_STATUS = new Set([408, 429, 500, 502, 503, 504]);

/** Spending less on retries while everything fails keeps a whole fleet from hammering a service that is down. */
class RetryBudget {
  #tokens = 500;

  take(cost: number): boolean {
    if (this.#tokens < cost) return false;
    this.#tokens -= cost;
    return true;
  }

  give(amount: number): void {
    this.#tokens = Math.min(500, this.#tokens + amount);
  }
}

type Outcome = { reply: BufferedResponse } | { error: AgentAuthError };

/**
 * Repeats what may succeed later: network errors, 408, 429 and 5xx, with full jitter between growing bounds, as the
 * "standard" mode of the AWS SDKs. `Retry-After` is a floor that is never undercut; where it lies beyond the deadline
 * of the call, the call ends at once and says so.
 *
 * @param mayRetry asked about an answer with a retryable status: its body may carry a verdict that is final
 */
export function withRetry(send: Send, policy: RetryPolicy, mayRetry: (reply: BufferedResponse) => boolean): Send {
  const budget = new RetryBudget();
  return async (request, call) => {
    let spent = 0;
    for (let attempt = 1; ; attempt++) {
      const last = attempt >= policy.maxAttempts;
      // A body can be read once: each attempt but the last takes a copy.
      const outcome = await attempted(send, request.body !== null && !last ? request.clone() : request, call);
      // A call that ran out of time says nothing about the service being well: nothing is given back.
      if (call.signal.aborted) return settle(outcome);
      if (!isRetryable(outcome, mayRetry)) {
        budget.give(spent > 0 ? spent : 1);
        return settle(outcome);
      }
      const cost = "error" in outcome && outcome.error.code === "timeout" ? 10 : 5;
      if (last || !budget.take(cost)) return settle(outcome);
      spent += cost;
      const wait = waitBefore(attempt, outcome, policy, call.endsAt);
      if (wait === undefined) return settle(outcome);
      policy.onEvent?.({
        type: "retry",
        url: shownUrl(request.url),
        attempt: attempt + 1,
        waitMs: Math.round(wait),
        reason: "error" in outcome ? outcome.error.code : `HTTP ${outcome.reply.status}`,
      });
      await policy.clock.sleep(wait, call.signal);
    }
  };
}

async function attempted(send: Send, request: Request, call: Parameters<Send>[1]): Promise<Outcome> {
  try {
    return { reply: await send(request, call) };
  } catch (error) {
    if (!isAgentAuthError(error)) throw error;
    return { error };
  }
}

function isRetryable(outcome: Outcome, mayRetry: (reply: BufferedResponse) => boolean): boolean {
  if ("error" in outcome) return outcome.error.retryable;
  return RETRIED_STATUS.has(outcome.reply.status) && mayRetry(outcome.reply);
}

function settle(outcome: Outcome): BufferedResponse {
  if ("error" in outcome) throw outcome.error;
  return outcome.reply;
}

/** The wait before the next attempt, or undefined when there is no time left for it. */
function waitBefore(attempt: number, outcome: Outcome, policy: RetryPolicy, endsAt: number): number | undefined {
  const left = endsAt - policy.clock.now();
  const backoff = policy.random() * Math.min(MAX_BACKOFF_MS, BASE_MS * 2 ** (attempt - 1));
  const asked = "reply" in outcome ? retryAfter(outcome.reply.response.headers, policy.clock.epoch()) : undefined;
  if (asked === undefined) return backoff < left ? backoff : undefined;
  if (asked >= left) {
    const { reply } = outcome as { reply: BufferedResponse };
    throw new AgentAuthError(
      reply.status === 429 ? "rate_limited" : "server_error",
      `${shownUrl(reply.url)}: HTTP ${reply.status}, and it asks to wait ${Math.ceil(asked / 1000)} s ` +
        `(Retry-After ${quote(reply.response.headers.get("retry-after"), 60)}), longer than the deadline allows`,
      {
        class: "unavailable",
        status: reply.status,
        requestId: reply.requestId,
        url: shownUrl(reply.url),
        response: reply.response,
        hint: "call again later, or allow more time",
      },
    );
  }
  return Math.min(asked + policy.random() * BASE_MS, left);
}

const HTTP_DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
const SEPARATOR = /,(?=\s*(?:\d+\s*(?:,|$)|[A-Z][a-z]{2},))/;

/**
 * How long the service asks to wait, in milliseconds (RFC 9110 section 10.2.3): seconds or a date, read against the
 * answer's own `Date` so that a wrong clock here does not matter. Undefined when absent or malformed.
 */
export function retryAfter(headers: Headers, epochNow: number): number | undefined {
  const value = headers.get("retry-after")?.trim();
  if (!value) return undefined;
  const now = httpDate(headers.get("date") ?? "") ?? epochNow;
  let longest: number | undefined;
  // A repeated header arrives joined by a comma; the longest wait satisfies all.
  for (const part of value.split(SEPARATOR).map((piece) => piece.trim())) {
    const at = httpDate(part);
    const wait = /^\d+$/.test(part) ? Number(part) * 1000 : at === undefined ? undefined : Math.max(0, at - now);
    if (wait === undefined) return undefined;
    longest = Math.max(longest ?? 0, wait);
  }
  return longest;
}

function httpDate(text: string): number | undefined {
  const time = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}
