import { parseUrl } from "./address.js";
import type { FollowingController } from "./deadline.js";

/** A whole response: headers and a body that has been read, capped and decoded. */
export interface BufferedResponse {
  /** Status, headers and address; its own body has been consumed. */
  readonly response: Response;
  /** The HTTP status. */
  readonly status: number;
  /** The address that answered. */
  readonly url: string;
  /** The body as text. */
  text: string;
  /** The parsed body where the response is declared as JSON, else undefined. */
  json: unknown;
  /** The request id that the service sent, for its operators. */
  readonly requestId: string | undefined;
}

/**
 * Lets go of a body that was used. The promises of a call that waited are old to the garbage collector: what they hold
 * survives until a full collection. Of 50 listings at once, that was every page, and a third of the CPU.
 */
export function forgetBody(reply: BufferedResponse): void {
  reply.text = "";
  reply.json = undefined;
}

/** The context of one call, passed through the layers of the transport. */
export interface Call {
  /** Aborts the call: the caller's signal and the deadline in one. */
  readonly limit: FollowingController;
  /** Milliseconds on the transport's clock at which the call must have ended. */
  readonly endsAt: number;
  /** Headers that replace those of the request: cheaper than a second request that differs in its headers alone. */
  readonly headers?: Headers;
  /** Milliseconds of one attempt, in place of the transport's. */
  readonly timeoutMs?: number | undefined;
  /** Retries after the first attempt, in place of the transport's. */
  readonly maxRetries?: number | undefined;
  /** Masks the secrets of the request, which its server may repeat, in place of the transport's. */
  readonly mask?: ((text: string) => string) | undefined;
}

/** A layer of the transport: sends a request, returns the whole response or throws an `AgentAuthError`. */
export type Send = (request: Request, call: Call) => Promise<BufferedResponse>;

/** An event on the wire, for traces. It never carries a header, a body or a credential; `url` is without its query. */
export type HttpEvent =
  | { type: "request"; method: string; url: string; query: string }
  | { type: "response"; method: string; url: string; status: number; ms: number; requestId: string | undefined }
  | { type: "failure"; method: string; url: string; code: string; message: string; ms: number }
  | { type: "retry"; url: string; attempt: number; waitMs: number; reason: string };

// Services use different names for it; the first one present wins.
const REQUEST_ID_HEADERS = ["x-request-id", "request-id", "x-amzn-requestid", "x-correlation-id", "cf-ray"] as const;

/** The request id of a response, if it has one. */
export function requestIdOf(headers: Headers): string | undefined {
  for (const name of REQUEST_ID_HEADERS) {
    const value = headers.get(name);
    if (value) return value.slice(0, 200);
  }
  return undefined;
}

/** An address for messages: without user, password, query and fragment. */
export function shownUrl(url: string): string {
  const parsed = parseUrl(url);
  return parsed ? `${parsed.origin}${parsed.pathname}` : "";
}
