import { HttpHeaders, TOKEN } from "./http-headers.js";

/** What an {@link HttpRequest} is made of. */
export interface HttpRequestInit extends Pick<RequestInit, "method" | "headers" | "redirect" | "signal"> {
  body?: string | Uint8Array<ArrayBuffer> | null;
}

const UPPER_CASED = new Set(["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"]);
const FORBIDDEN = new Set(["CONNECT", "TRACE", "TRACK"]);

/** A method as `fetch` writes it: the common ones in upper case. */
export function normalizeMethod(method: string): string {
  const upper = method.toUpperCase();
  return UPPER_CASED.has(upper) ? upper : method;
}

/** A method as `fetch` writes it. @throws `TypeError` for one that `fetch` does not send */
export function checkMethod(method: string): string {
  if (!TOKEN.test(method) || FORBIDDEN.has(method.toUpperCase())) throw new TypeError("the method cannot be used");
  return normalizeMethod(method);
}

/**
 * A `Request` of the Fetch Standard whose body is text or bytes, so that it can be sent any number of times. On Node the
 * global class loads all of `fetch`.
 */
export class HttpRequest implements Request {
  readonly method: string;
  readonly url: string;
  readonly headers: HttpHeaders;
  readonly redirect: Request["redirect"];
  /** The body as it was given. */
  readonly payload: string | Uint8Array<ArrayBuffer> | null;
  readonly cache = "default";
  readonly credentials = "same-origin";
  readonly destination = "";
  readonly duplex = "half";
  readonly integrity = "";
  readonly keepalive = false;
  readonly mode = "cors";
  readonly referrer = "about:client";
  readonly referrerPolicy = "";
  readonly bodyUsed = false;
  #signal: AbortSignal | undefined;

  /** @throws `TypeError` for an address, a method, a header or a body that `fetch` does not send */
  constructor(
    url: string | URL,
    { method = "GET", headers, body = null, redirect = "follow", signal }: HttpRequestInit = {},
  ) {
    const address = new URL(url);
    if (address.username !== "" || address.password !== "")
      throw new TypeError("an address with credentials cannot be requested");
    this.url = address.href;
    this.method = checkMethod(method);
    if (body !== null && (this.method === "GET" || this.method === "HEAD"))
      throw new TypeError("a request with the method GET or HEAD cannot have a body");
    this.headers = new HttpHeaders(headers);
    if (typeof body === "string" && !this.headers.has("content-type"))
      this.headers.set("content-type", "text/plain;charset=UTF-8");
    this.payload = body;
    this.redirect = redirect;
    this.#signal = signal ?? undefined;
  }

  get [Symbol.toStringTag](): string {
    return "Request";
  }

  get body(): ReadableStream<Uint8Array<ArrayBuffer>> | null {
    return this.payload === null ? null : this.#blob().stream();
  }

  get signal(): AbortSignal {
    this.#signal ??= new AbortController().signal;
    return this.#signal;
  }

  /** What makes the same request with `fetch`, beside its address. */
  asInit(): RequestInit {
    const { method, headers, payload: body, redirect } = this;
    const signal = this.#signal && { signal: this.#signal };
    return { method, headers: Object.fromEntries(headers), redirect, ...signal, ...(body !== null && { body }) };
  }

  /** The same request as an object of the global class. */
  asRequest(): Request {
    return new Request(this.url, this.asInit());
  }

  /** The same request to another address. */
  movedTo(url: string): HttpRequest {
    return new HttpRequest(url, { ...this, body: this.payload, signal: this.#signal ?? null });
  }

  clone(): HttpRequest {
    return this.movedTo(this.url);
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    return this.#blob().arrayBuffer();
  }

  async blob(): Promise<Blob> {
    return this.#blob();
  }

  async formData(): Promise<FormData> {
    return this.asRequest().formData();
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.text());
  }

  async text(): Promise<string> {
    return this.#blob().text();
  }

  #blob(): Blob {
    return new Blob(this.payload === null ? [] : [this.payload], { type: this.headers.get("content-type") ?? "" });
  }
}
