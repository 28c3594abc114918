/** A whole answer: headers and a body that has been read, capped and decoded. */
export interface BufferedResponse {
  /** Status, headers and address; its own body has been consumed. */
  readonly response: Response;
  /** The HTTP status. */
  readonly status: number;
  /** The address that answered. */
  readonly url: string;
  /** The body as text. */
  readonly text: string;
  /** The parsed body where the answer says it is JSON, else undefined. */
  readonly json: unknown;
  /** The id by which the service's operators find this request. */
  readonly requestId: string | undefined;
}

/** What one call carries through the layers of the transport. */
export interface Call {
  /** Ends the call: the caller's signal and the deadline in one. */
  readonly signal: AbortSignal;
  /** Milliseconds on the transport's clock at which the call must have ended. */
  readonly endsAt: number;
  /** What is sent in place of the request's own headers: cheaper than another request that differs in them alone. */
  readonly headers?: Headers;
}

/** A layer of the transport: takes a request, gives the whole answer or throws an `AgentAuthError`. */
export type Send = (request: Request, call: Call) => Promise<BufferedResponse>;

/** What happens on the wire, for traces. It never carries a header, a body or a credential; `url` is without its query. */
export type HttpEvent =
  | { type: "request"; method: string; url: string; query: string }
  | { type: "response"; method: string; url: string; status: number; ms: number; requestId: string | undefined }
  | { type: "failure"; method: string; url: string; code: string; message: string; ms: number }
  | { type: "retry"; url: string; attempt: number; waitMs: number; reason: string };

// Services differ in how they name it; the first that is there wins.
const REQUEST_ID_HEADERS = ["x-request-id", "request-id", "x-amzn-requestid", "x-correlation-id", "cf-ray"] as const;

/** The request id of an answer, if it has one. */
export function requestIdOf(headers: Headers): string | undefined {
  for (const name of REQUEST_ID_HEADERS) {
    const value = headers.get(name);
    if (value) return value.slice(0, 200);
  }
  return undefined;
}

/** An address as it may be shown: without user, password, query and fragment. */
export function shownUrl(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  return parsed ? `${parsed.origin}${parsed.pathname}` : "";
}
