import { AgentAuthError } from "../../errors.js";
import { isRepeatable } from "../../http/body-content.js";
import { HttpHeaders } from "../../http/http-headers.js";
import { HttpRequest, normalizeMethod } from "../../http/http-request.js";
import { isRequest } from "../../http/own-fetch.js";

/** A request that can be sent several times, if its body allows. */
export interface Replay {
  /** The address. */
  readonly url: string;
  /** The method, as sent. */
  readonly method: string;
  /** The caller's redirect mode. */
  readonly redirect: NonNullable<RequestInit["redirect"]>;
  /** The arguments for `fetch`, with additional headers, options and another address. */
  next(headers: Record<string, string>, over?: RequestInit, url?: string): [string | URL | Request, RequestInit];
  /** @throws `AgentAuthError` `body_not_replayable` if it cannot be sent again */
  require(): void;
}

/** Makes the arguments of `fetch` reusable. */
export function replayable(input: string | URL | Request, init: RequestInit): Replay {
  const { body } = init;
  const isStream =
    typeof body === "object" && body !== null && (body instanceof ReadableStream || Symbol.asyncIterator in body);
  const request = isRequest(input) ? input : undefined;
  // Whatever else has a body can be read once. To ask for the stream of a text would make one.
  const isUsedUp = request instanceof HttpRequest ? !isRepeatable(request.payload) : Boolean(request?.body);
  const redirect = init.redirect ?? request?.redirect ?? "follow";
  return {
    url: request?.url ?? String(input),
    method: normalizeMethod(init.method ?? request?.method ?? "GET"),
    redirect,
    next(more, over = {}, url) {
      const headers = new HttpHeaders(init.headers ?? request?.headers);
      for (const [name, value] of Object.entries(more)) headers.set(name, value);
      const fresh = isUsedUp && request ? request.clone() : input;
      return [url === undefined ? fresh : movedTo(url, fresh), { ...init, redirect, headers, ...over }];
    },
    require() {
      if (!isStream) return;
      throw new AgentAuthError(
        "body_not_replayable",
        "the server requires the request again, with another proof or token, but its body is a stream that can be sent only once",
        { class: "auth", hint: "give the body as a string, bytes or a form" },
      );
    },
  };
}

function movedTo(url: string, input: string | URL | Request): string | Request {
  if (input instanceof HttpRequest) return input.movedTo(url);
  return isRequest(input) ? new Request(url, input) : url;
}
