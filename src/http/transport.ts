import { AgentAuthError, abortedError } from "../errors.js";
import { cancel, parseJson, readText, saysJson } from "./body.js";
import { type BufferedResponse, type HttpEvent, requestIdOf, type Send, shownUrl } from "./buffered-response.js";
import { type Clock, follow, systemClock, untilAborted } from "./deadline.js";
import { maskError } from "./mask-error.js";
import { networkError } from "./network-error.js";
import { followSameOrigin } from "./redirect.js";
import { withRetry } from "./retry.js";
import { parseUrl } from "./url.js";

/** How requests are sent: each option has a default. */
export interface TransportOptions {
  /** The `fetch` to use. Default: the global one. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Milliseconds that one attempt may take, body included. Default 30,000. */
  timeoutMs?: number | undefined;
  /** Milliseconds that one call may take with all its attempts and waits. Default 60,000, or `timeoutMs` if longer. */
  deadline?: number | undefined;
  /** Attempts in all. Default 3. */
  maxAttempts?: number | undefined;
  /** Bytes that a body may have after decompression. Default 16 MiB. */
  maxBodyBytes?: number | undefined;
  /** Whether redirects inside the origin are followed, or returned. Default "same-origin". */
  redirects?: "same-origin" | "manual" | undefined;
  /** Receives every request, response and retry; never a header or a body. */
  onEvent?: ((event: HttpEvent) => void) | undefined;
  /** The clock. For tests. */
  clock?: Clock | undefined;
  /** Randomness for jitter, a number in [0, 1). For tests. */
  random?: (() => number) | undefined;
}

/** Sends one request under a signal and returns the whole response. */
export type Transport = (request: Request, signal?: AbortSignal) => Promise<BufferedResponse>;

const MIB = 1024 * 1024;

/**
 * Builds a transport: retry(auth(redirect(timeout(fetch)))).
 *
 * @param auth puts credentials on each attempt; it runs inside the retries, so that a new token is used at once
 * @param mayRetry see `withRetry`
 * @param mask masks secrets in what `fetch` throws
 */
export function createTransport(
  options: TransportOptions,
  auth: (send: Send) => Send = (send) => send,
  mayRetry: (reply: BufferedResponse) => boolean = () => true,
  mask: (text: string) => string = (text) => text,
): Transport {
  const clock = options.clock ?? systemClock;
  const timeout = positive(options.timeoutMs, 30_000, "timeoutMs");
  const deadline = positive(options.deadline, Math.max(60_000, timeout), "deadline");
  const maxAttempts = positive(options.maxAttempts, 3, "maxAttempts");
  const { onEvent } = options;
  const attempt = fetchOnce(
    { ...options, timeoutMs: timeout, maxBodyBytes: positive(options.maxBodyBytes, 16 * MIB, "maxBodyBytes"), mask },
    clock,
  );
  const send = withRetry(
    auth(options.redirects === "manual" ? attempt : followSameOrigin(attempt)),
    { maxAttempts, clock, random: options.random ?? Math.random, onEvent },
    mayRetry,
  );
  return async (request, signal) => {
    const call = follow(signal, deadline, () => timeoutError(request.url, `in ${deadline / 1000} s, retries included`));
    try {
      return await send(request, { signal: call.signal, endsAt: clock.now() + deadline });
    } finally {
      call.release();
    }
  };
}

function positive(value: number | undefined, fallback: number, name: string): number {
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
  const doFetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
  const { onEvent, maxBodyBytes, mask } = options;
  return async (request, call) => {
    const { method, url } = request;
    const startedAt = clock.now();
    const attempt = follow(call.signal, options.timeoutMs, () => timeoutError(url, `in ${options.timeoutMs / 1000} s`));
    const { signal } = attempt;
    const about = onEvent && { method, url: shownUrl(url) };
    const roundTrip = async (): Promise<BufferedResponse> => {
      if (signal.aborted) throw abortedError(signal);
      const response = await doFetch(request, {
        signal,
        redirect: "manual",
        ...(call.headers && { headers: call.headers }),
      });
      // A fetch that ignores its signal may return after the call has ended.
      if (signal.aborted) await cancel(response);
      return readResponse(response, url, maxBodyBytes);
    };
    try {
      if (about) onEvent({ type: "request", ...about, query: decodeQuery(url) });
      const reply = await untilAborted(roundTrip(), signal).catch((thrown: unknown) => {
        const error = maskError(networkError(thrown, url), mask);
        const { code, message } = error;
        if (about) onEvent({ type: "failure", ...about, code, message, ms: clock.now() - startedAt });
        throw error;
      });
      const { status, requestId } = reply;
      if (about) onEvent({ type: "response", ...about, status, ms: clock.now() - startedAt, requestId });
      return reply;
    } finally {
      attempt.release();
    }
  };
}

async function readResponse(response: Response, url: string, cap: number): Promise<BufferedResponse> {
  const typed = saysJson(response.headers);
  const text = await readText(response, url, cap, typed && response.ok);
  const isJson = typed && text !== "";
  const strict = isJson && response.ok;
  return {
    response,
    status: response.status,
    url,
    text,
    json: strict ? parseJson(text, response, url) : isJson ? parseIfJson(text) : undefined,
    requestId: requestIdOf(response.headers),
  };
}

/** The body of an error response, where it is JSON; a body that is not must not hide the error. */
function parseIfJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function decodeQuery(url: string): string {
  const { search } = new URL(url);
  try {
    return decodeURIComponent(search);
  } catch {
    return search;
  }
}

function timeoutError(url: string, within: string): AgentAuthError {
  const host = parseUrl(url)?.host ?? "";
  const message = `${host}: no complete response ${within}`;
  return new AgentAuthError("timeout", message, { class: "unavailable", url: shownUrl(url) });
}
