import { AgentAuthError, isAgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import { shownUrl } from "./address.js";
import type { BufferedResponse, HttpEvent, Send } from "./buffered-response.js";
import { type Clock, untilAborted } from "./deadline.js";

/**
 * Slows the requests of one client down together, once the service says that there are too many: all wait as long as it
 * asks, then one is sent at a time, and one more at once after each success.
 */
export class Throttle {
  /** How many requests the service has answered as they wanted. */
  successes = 0;
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  /** Requests that may be in flight at once. */
  #width = Number.POSITIVE_INFINITY;
  #inFlight = 0;
  /** When the next request may be sent. */
  #resumesAt = Number.NEGATIVE_INFINITY;
  #pauses = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Sends one request as soon as it may be sent.
   *
   * @param isSuccess whether one more may be in flight after this result
   * @throws the reason of the signal, also while it waits
   */
  async run<T>(send: () => Promise<T>, isSuccess: (result: T) => boolean, limit: AbortSignal): Promise<T> {
    while (this.#inFlight >= this.#width) {
      await untilAborted(new Promise<void>((resolve) => this.#waiting.push(resolve)), limit);
    }
    this.#inFlight++;
    try {
      await this.#pause(limit);
      const pauses = this.#pauses;
      const result = await send();
      if (isSuccess(result)) {
        this.successes++;
        // What was sent before a pause says nothing about the time after it.
        if (pauses === this.#pauses) this.#width++;
      }
      return result;
    } finally {
      this.#inFlight--;
      this.#wake();
    }
  }

  /** Nothing is sent for a time. */
  pause(ms: number): void {
    this.#resumesAt = Math.max(this.#resumesAt, this.#clock.now() + ms);
    this.#width = 1;
    this.#pauses++;
  }

  /** Only the next requests wait on the clock: all others wait for these. */
  async #pause(signal: AbortSignal): Promise<void> {
    for (let until = Number.NEGATIVE_INFINITY; until < this.#resumesAt; ) {
      until = this.#resumesAt;
      const left = until - this.#clock.now();
      if (left > 0) await this.#clock.sleep(left, signal);
    }
  }

  /** Lets all look again: one that was aborted would not pass its turn on. */
  #wake(): void {
    for (const look of this.#waiting.splice(0)) look();
  }
}

/** How often a request is retried, and after which delays. */
export interface RetryPolicy {
  /** Attempts after the first one, where the call names no other number. */
  maxRetries: number;
  clock: Clock;
  /** A number in [0, 1). */
  random: () => number;
  onEvent?: ((event: HttpEvent) => void) | undefined;
  /** What all requests of a client share: without it, each waits alone. */
  throttle?: Throttle | undefined;
}

const BASE_MS = 250;
/** Where too many requests were sent, and the service does not say when to send the next one. */
const THROTTLED_MS = 1000;
const MAX_BACKOFF_MS = 20_000;
const RETRIED_STATUS = new Set([408, 429, 500, 502, 503, 504]);

/** Limits retries while everything fails, so that many clients do not overload a service that is down. */
const RETRY_BUDGET = 500;

type AttemptResult = BufferedResponse | AgentAuthError;

/**
 * Retries what may succeed later: network errors, 408, 429 and 5xx, with full jitter between growing bounds, as the
 * "standard" mode of the AWS SDKs. The delay is never shorter than `Retry-After`; where that lies beyond the deadline
 * of the call, the call fails at once and reports it.
 *
 * With a throttle, all requests wait together after a 429, and after a 503 with `Retry-After`. A wait that the service asks
 * for is no failed attempt, nor is a refusal while others of the client succeed.
 *
 * @param mayRetry whether a response with a retryable status may be retried: its body may carry a final error code
 */
export function withRetry(send: Send, policy: RetryPolicy, mayRetry: (reply: BufferedResponse) => boolean): Send {
  let budget = RETRY_BUDGET;
  const { throttle } = policy;
  const isSuccess = (result: AttemptResult) => !isRetryable(result, mayRetry);
  return async (request, call) => {
    const { maxRetries = policy.maxRetries } = call;
    let spent = 0;
    let attempt = 1;
    let successes = throttle?.successes;
    for (let sent = 1; ; sent++) {
      const last = attempt > maxRetries;
      // A body can be read once: each attempt but the last takes a copy.
      const sendOnce = () => send(!last && request.body !== null ? request.clone() : request, call).catch(asResult);
      const result = await (throttle ? throttle.run(sendOnce, isSuccess, call.limit) : sendOnce());
      // A call that ran out of time is no evidence that the service works: the budget gets nothing back.
      if (call.limit.aborted) return settle(result);
      if (!isRetryable(result, mayRetry)) {
        budget = Math.min(RETRY_BUDGET, budget + (spent > 0 ? spent : 1));
        return settle(result);
      }
      const isThrottled = throttle !== undefined && asksForLess(result, policy);
      const isServed = throttle?.successes !== successes || (requestedWait(result, policy) ?? 0) > 0;
      successes = throttle?.successes;
      const isFree = isThrottled && maxRetries > 0 && isServed;
      const cost = isFree ? 0 : isAgentAuthError(result, "timeout") ? 10 : 5;
      if ((last && !isFree) || budget < cost) return settle(result);
      budget -= cost;
      spent += cost;
      const wait = waitBefore(attempt, result, policy, { endsAt: call.endsAt, isThrottled });
      if (wait === undefined) return settle(result);
      if (!isFree) attempt++;
      policy.onEvent?.({
        type: "retry",
        url: shownUrl(request.url),
        attempt: sent + 1,
        waitMs: Math.round(wait),
        reason: isAgentAuthError(result) ? result.code : `HTTP ${result.status}`,
      });
      if (isThrottled) throttle.pause(wait);
      else await policy.clock.sleep(wait, call.limit);
    }
  };
}

function asResult(error: unknown): AgentAuthError {
  if (!isAgentAuthError(error)) throw error;
  return error;
}

function isRetryable(result: AttemptResult, mayRetry: (reply: BufferedResponse) => boolean): boolean {
  if (isAgentAuthError(result)) return result.retryable;
  return RETRIED_STATUS.has(result.status) && mayRetry(result);
}

function settle(result: AttemptResult): BufferedResponse {
  if (isAgentAuthError(result)) throw result;
  return result;
}

function asksForLess(result: AttemptResult, policy: RetryPolicy): boolean {
  if (isAgentAuthError(result)) return false;
  return result.status === 429 || (result.status === 503 && requestedWait(result, policy) !== undefined);
}

/** The delay that the service requests; undefined where it names none. */
function requestedWait(result: AttemptResult, { clock }: RetryPolicy): number | undefined {
  return isAgentAuthError(result) ? undefined : retryAfter(result.response.headers, clock.epoch());
}

/** The delay before the next attempt, or undefined when there is no time left for it. */
function waitBefore(
  attempt: number,
  result: AttemptResult,
  policy: RetryPolicy,
  { endsAt, isThrottled }: { endsAt: number; isThrottled: boolean },
): number | undefined {
  const left = endsAt - policy.clock.now();
  const growth = 2 ** (attempt - 1);
  const backoff = isThrottled
    ? Math.min(MAX_BACKOFF_MS, THROTTLED_MS * growth) + policy.random() * BASE_MS
    : policy.random() * Math.min(MAX_BACKOFF_MS, BASE_MS * growth);
  const requestedMs = requestedWait(result, policy);
  if (isAgentAuthError(result) || requestedMs === undefined) return backoff < left ? backoff : undefined;
  if (requestedMs >= left) {
    const { status, requestId, response } = result;
    const url = shownUrl(result.url);
    const hint = "call again later, or allow more time";
    throw new AgentAuthError(
      status === 429 ? "rate_limited" : "server_error",
      `${url}: HTTP ${status}, and it asks to wait ${Math.ceil(requestedMs / 1000)} s ` +
        `(Retry-After ${quote(response.headers.get("retry-after"), 60)}), longer than the deadline allows`,
      { class: "unavailable", status, requestId, url, response, hint, remedy: { action: "retry" } },
    );
  }
  // All requests of a client wait for a throttle together: a tenth spreads those of several processes.
  const spread = isThrottled ? Math.min(BASE_MS, requestedMs / 10) : BASE_MS;
  return Math.min(requestedMs + policy.random() * spread, left);
}

const HTTP_DATE = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;
const SEPARATOR = /,(?=\s*(?:\d+\s*(?:,|$)|[A-Z][a-z]{2},))/;

/**
 * The delay that the service requests, in milliseconds (RFC 9110 section 10.2.3): seconds or a date, read against the
 * `Date` of the response so that a wrong clock here does not matter. Undefined when absent or malformed.
 */
export function retryAfter(headers: Headers, epochNow: number): number | undefined {
  const value = headers.get("retry-after");
  if (!value) return undefined;
  const now = httpDate(headers.get("date") ?? "") ?? epochNow;
  let longest: number | undefined;
  // A repeated header arrives joined by commas; the longest delay satisfies all.
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
