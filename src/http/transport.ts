import { AgentAuthError, abortedError, orUndefined } from "../errors.js";
import { quote } from "../redact.js";
import { parseUrl, shownUrl } from "./address.js";
import type { BufferedResponse, Call, HttpEvent, Send } from "./buffered-response.js";
import { discardBody, parseIfJson, parseJson, readRequestId, readText, saysJson } from "./buffered-response.js";
import { type Clock, followSignal, systemClock, untilAborted } from "./deadline.js";
import { toNativeFetch } from "./http-message.js";
import { maskError, networkError } from "./network-error.js";
import { followSameOrigin } from "./redirect.js";
import { type Throttle, withRetry } from "./retry.js";

/** How requests are sent: each option has a default. */
export interface TransportOptions {
  /** The `fetch` to use. Default: the global one. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Milliseconds that one attempt may take, body included. Default 30,000. */
  timeoutMs?: number | undefined;
  /** Milliseconds that one call may take with all its attempts and waits. Default 60,000, or `timeoutMs` if longer. */
  deadlineMs?: number | undefined;
  /** Retries of a failed request, the first attempt not included; 0 for none. Default 2. */
  maxRetries?: number | undefined;
  /** Bytes that a body may have after decompression. Default 16 MiB. */
  maxBodyBytes?: number | undefined;
  /** Whether redirects inside the origin are followed, or returned. Default "same-origin". */
  redirects?: "same-origin" | "manual" | undefined;
  /** Receives every request, response and retry; never a header or a body. */
  onEvent?: ((event: HttpEvent) => void) | undefined;
  /** Receives a line for each request, response, failure and retry, without queries, headers and bodies. */
  logger?: Logger | undefined;
  /** The clock. For tests. */
  clock?: Clock | undefined;
  /** Randomness for jitter, a number in [0, 1). For tests. */
  random?: (() => number) | undefined;
}

/** What one call sets in place of the transport's options. */
export type CallLimits = Pick<TransportOptions, "timeoutMs" | "maxRetries">;

export type Transport = (
  request: Request,
  signal?: AbortSignal,
  limits?: CallLimits & Pick<Call, "mask">,
) => Promise<BufferedResponse>;

/** @throws `TypeError` for numbers that no call can have */
export function checkLimits({ timeoutMs, maxRetries }: CallLimits): void {
  requirePositive(timeoutMs, 1, "timeoutMs");
  if (maxRetries !== undefined && !(Number.isSafeInteger(maxRetries) && maxRetries >= 0))
    throw new TypeError(`maxRetries must be a whole number of at least 0, not ${String(maxRetries)}`);
}

const MIB = 1024 * 1024;

/**
 * Builds a transport: retry(auth(redirect(timeout(fetch)))).
 *
 * @param auth puts credentials on each attempt; it runs inside the retries, so that a new token is used at once
 * @param mayRetry see `withRetry`
 * @param mask masks secrets in what `fetch` throws
 * @param throttle see `withRetry`
 */
export function createTransport(
  options: TransportOptions,
  auth: (send: Send) => Send = (send) => send,
  mayRetry: (reply: BufferedResponse) => boolean = () => true,
  mask: (text: string) => string = (text) => text,
  throttle?: Throttle,
): Transport {
  const clock = options.clock ?? systemClock;
  const timeout = requirePositive(options.timeoutMs, 30_000, "timeoutMs");
  const deadline = requirePositive(options.deadlineMs, Math.max(60_000, timeout), "deadlineMs");
  checkLimits(options);
  const { maxRetries = 2 } = options;
  const onEvent = eventReceiver(options.logger, options.onEvent);
  const maxBodyBytes = requirePositive(options.maxBodyBytes, 16 * MIB, "maxBodyBytes");
  const attempt = fetchOnce({ ...options, onEvent, timeoutMs: timeout, maxBodyBytes, mask }, clock);
  const send = withRetry(
    auth(options.redirects === "manual" ? attempt : followSameOrigin(attempt)),
    { maxRetries, clock, random: options.random ?? Math.random, onEvent, throttle },
    mayRetry,
  );
  return async (request, signal, limits = {}) => {
    const within = options.deadlineMs === undefined ? Math.max(deadline, limits.timeoutMs ?? 0) : deadline;
    const onLate = () => timeoutError(request.url, `in ${within / 1000} s, retries included`);
    const limit = followSignal(signal, within, onLate);
    try {
      return await send(request, { ...limits, limit: limit.signal, endsAt: clock.now() + within });
    } finally {
      limit.release();
    }
  };
}

function requirePositive(value: number | undefined, fallback: number, name: string): number {
  if (value === undefined) return fallback;
  if (!(value > 0)) throw new TypeError(`${name} must be a positive number, not ${String(value)}`);
  return value;
}

interface AttemptOptions extends TransportOptions {
  timeoutMs: number;
  maxBodyBytes: number;
  mask: (text: string) => string;
}

/** One attempt: the request, its response and the whole body, inside the timeout. */
function fetchOnce(options: AttemptOptions, clock: Clock): Send {
  const doFetch = toNativeFetch(options.fetch);
  const { onEvent, maxBodyBytes } = options;
  return async (request, call) => {
    const { method, url } = request;
    const startedAt = clock.now();
    const { timeoutMs: timeout = options.timeoutMs, mask = options.mask } = call;
    const attempt = followSignal(call.limit, timeout, () => timeoutError(url, `in ${timeout / 1000} s`));
    const details = onEvent && { method, url: shownUrl(url) };
    const roundTrip = async (): Promise<BufferedResponse> => {
      if (attempt.signal.aborted) throw abortedError(attempt.signal);
      const headers = call.headers && { headers: call.headers };
      const response = await doFetch(request, { signal: attempt.signal, redirect: "manual", ...headers });
      // A fetch that ignores its signal may return after the call has ended.
      if (attempt.signal.aborted) await discardBody(response);
      return readResponse(response, url, maxBodyBytes, mask);
    };
    try {
      if (details) onEvent({ type: "request", ...details, query: decodeQuery(url) });
      const reply = await untilAborted(roundTrip(), attempt.signal).catch((thrown: unknown) => {
        const error = maskError(networkError(thrown, url), mask);
        const { code, message } = error;
        if (details) onEvent({ type: "failure", ...details, code, message, ms: clock.now() - startedAt });
        throw error;
      });
      const { status, requestId } = reply;
      if (details) onEvent({ type: "response", ...details, status, ms: clock.now() - startedAt, requestId });
      return reply;
    } finally {
      attempt.release();
    }
  };
}

async function readResponse(response: Response, url: string, cap: number, mask: (text: string) => string) {
  const typed = saysJson(response.headers);
  const text = await readText(response, url, cap, typed && response.ok);
  const isJson = typed && text !== "";
  const strict = isJson && response.ok;
  const requestId = readRequestId(response.headers);
  const json = strict ? parseJson(text, response, url) : isJson ? parseIfJson(text) : undefined;
  return { response, status: response.status, url, text, json, requestId: requestId && mask(requestId) };
}

function decodeQuery(url: string): string {
  const { search } = new URL(url);
  return orUndefined(() => decodeURIComponent(search)) ?? search;
}

function timeoutError(url: string, within: string): AgentAuthError {
  const message = `${parseUrl(url)?.host ?? ""}: no complete response ${within}`;
  return new AgentAuthError("timeout", message, { class: "unavailable", url: shownUrl(url) });
}

/** Receives lines of a log, such as `console`, or a logger of pino or winston. Nothing in a line is secret. */
export interface Logger {
  /** Each request and each response. */
  debug(message: string): void;
  /** What is worth a line in production. */
  info(message: string): void;
  /** A failed attempt, a retry, and an order that the service ignored. */
  warn(message: string): void;
  /** An error that no caller receives. */
  error(message: string): void;
}

/** What receives the events of a transport: the caller's function, and a logger, which gets no query. */
function eventReceiver(
  logger: Logger | undefined,
  onEvent: ((event: HttpEvent) => void) | undefined,
): ((event: HttpEvent) => void) | undefined {
  if (logger === undefined) return onEvent;
  return (event) => {
    onEvent?.(event);
    const isTrouble = event.type === "failure" || event.type === "retry";
    logger[isTrouble ? "warn" : "debug"](formatEvent(event));
  };
}

function formatEvent(event: HttpEvent): string {
  switch (event.type) {
    case "request":
      return `${event.method} ${event.url}`;
    case "response": {
      const id = event.requestId === undefined ? "" : `, request id ${quote(event.requestId)}`;
      return `${event.method} ${event.url}: HTTP ${event.status} in ${Math.round(event.ms)} ms${id}`;
    }
    case "failure":
      return `${event.method} ${event.url}: ${event.code} after ${Math.round(event.ms)} ms`;
    case "retry":
      return `${event.url}: attempt ${event.attempt} in ${event.waitMs} ms (${event.reason})`;
  }
}
