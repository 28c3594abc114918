import { AgentAuthError } from "../../errors.js";

/** A request that can be sent again and again, as far as its body allows. */
export interface Replay {
  /** Where it goes. */
  readonly url: string;
  /** Its method, as it is sent. */
  readonly method: string;
  /** What its sender wants to become of redirects. */
  readonly redirect: NonNullable<RequestInit["redirect"]>;
  /** The arguments for `fetch`, with more headers and where it says so to another address. */
  next(headers: Record<string, string>, over?: RequestInit, url?: string): [string | URL | Request, RequestInit];
  /** @throws `AgentAuthError` `body_not_replayable` where it cannot be sent once more */
  require(): void;
}

/** Methods that `fetch` writes in upper case. */
const UPPER_CASED = new Set(["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"]);

/** What `fetch` was called with, for more than one use. */
export function replayable(input: string | URL | Request, init: RequestInit): Replay {
  const { body } = init;
  const once =
    typeof body === "object" && body !== null && (body instanceof ReadableStream || Symbol.asyncIterator in body);
  const request = input instanceof Request ? input : undefined;
  const method = init.method ?? request?.method ?? "GET";
  const redirect = init.redirect ?? request?.redirect ?? "follow";
  return {
    url: request?.url ?? String(input),
    method: UPPER_CASED.has(method.toUpperCase()) ? method.toUpperCase() : method,
    redirect,
    next(more, over = {}, url) {
      const headers = new Headers(init.headers ?? request?.headers);
      for (const [name, value] of Object.entries(more)) headers.set(name, value);
      const fresh = request?.body ? request.clone() : input;
      const target = url === undefined ? fresh : fresh instanceof Request ? new Request(url, fresh) : url;
      return [target, { ...init, redirect, headers, ...over }];
    },
    require() {
      if (!once) return;
      throw new AgentAuthError(
        "body_not_replayable",
        "the server wants the request once more, with another proof or token, and its body is a stream that can be sent only once",
        { class: "auth", hint: "give the body as a string, bytes or a form" },
      );
    },
  };
}
