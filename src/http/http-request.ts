import { type BodyContent, type BodySource, extractBody, type GivenBody, isRepeatable } from "./body-content.js";
import { checkOptions, HttpBody, nativeClass } from "./http-body.js";
import { HttpHeaders, TOKEN } from "./http-headers.js";

/** What a request says beside its method, address, headers and body (Fetch Standard, `RequestInit`). */
const OPTIONS = [
  "cache",
  "credentials",
  "integrity",
  "keepalive",
  "mode",
  "redirect",
  "referrer",
  "referrerPolicy",
] as const;
type RequestOptions = Partial<Pick<Request, (typeof OPTIONS)[number]>>;

/** What an {@link HttpRequest} is made of. */
export interface HttpRequestInit extends Pick<RequestInit, "method" | "headers" | "signal" | "duplex">, RequestOptions {
  body?: NonNullable<RequestInit["body"]> | null;
}

type RequestInput = Omit<HttpRequestInit, "body"> & { body?: GivenBody };

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

/** A `Request` of the Fetch Standard. On Node the global class loads all of `fetch`. */
export class HttpRequest extends HttpBody implements Request {
  readonly #content: BodyContent;
  readonly #method: string;
  readonly #url: string;
  #options: RequestOptions;
  /** The given one, not one that follows it: a signal that lives as long as the program would keep every follower. */
  #signal: AbortSignal | undefined;

  /**
   * @param input a request is used by this: its body is that of the new one, unless `init` has another
   * @throws `TypeError` for an address, a method, a header, a body or an option that `fetch` does not take
   */
  constructor(input: string | URL | Request, init?: RequestInput | null) {
    const given: RequestInput = checkOptions(init);
    const from = input instanceof HttpRequest ? input : undefined;
    const url = from?.url ?? checkAddress(`${input}`);
    const method = given.method === undefined ? (from?.method ?? "GET") : checkMethod(`${given.method}`);
    const options = from === undefined ? {} : { ...from.#options };
    for (const name of OPTIONS) if (given[name] !== undefined) Object.assign(options, { [name]: given[name] });
    const { content, type } = extractBody(given.body);
    const isStreamed = !isRepeatable(content.source);
    if (given.duplex === undefined ? isStreamed : given.duplex !== "half")
      throw new TypeError('a request whose body is a stream needs the option duplex, which can only be "half"');
    const isOfInput = content.source === null && from !== undefined;
    const source = isOfInput ? from.#content.source : content.source;
    if (source !== null && (method === "GET" || method === "HEAD"))
      throw new TypeError("a request with the method GET or HEAD cannot have a body");
    const headers = new HttpHeaders(given.headers === undefined ? from?.headers : given.headers);
    const inherited = from === undefined ? from : from.#signal;
    const signal = given.signal === undefined ? inherited : checkSignal(given.signal);
    // Last, because what throws leaves the other request as it was.
    const own = isOfInput ? from.#content.transfer() : content;
    super(own, type, headers);
    this.#content = own;
    this.#method = method;
    this.#url = url;
    this.#options = options;
    this.#signal = signal;
  }

  get [Symbol.toStringTag](): string {
    return "Request";
  }

  get method(): string {
    return this.#method;
  }

  get url(): string {
    return this.#url;
  }

  get redirect(): Request["redirect"] {
    return this.#options.redirect ?? "follow";
  }

  get duplex(): "half" {
    return "half";
  }

  get cache(): Request["cache"] {
    return this.#native.cache;
  }

  get credentials(): Request["credentials"] {
    return this.#native.credentials;
  }

  get destination(): Request["destination"] {
    return this.#native.destination;
  }

  get integrity(): string {
    return this.#native.integrity;
  }

  get keepalive(): boolean {
    return this.#native.keepalive;
  }

  get mode(): Request["mode"] {
    return this.#native.mode;
  }

  get referrer(): string {
    return this.#native.referrer;
  }

  get referrerPolicy(): Request["referrerPolicy"] {
    return this.#native.referrerPolicy;
  }

  /** What our commands do not ask for is said by the class of the runtime. */
  get #native(): Request {
    const { method, url } = this;
    return new (nativeClass("Request"))(url, { ...this.#options, method });
  }

  get signal(): AbortSignal {
    this.#signal ??= new AbortController().signal;
    return this.#signal;
  }

  /** What the body is made of, which can be sent again unless it is a stream. */
  get payload(): BodySource | null {
    return this.#content.source;
  }

  /** What makes the same request with `fetch`, beside its address. */
  asInit(): RequestInit {
    const { method, headers, payload: body } = this;
    const signal = this.#signal && { signal: this.#signal };
    const head = { ...this.#options, method, headers: Object.fromEntries(headers), ...signal };
    const init = { ...head, ...(body !== null && { body }) };
    return isRepeatable(body) ? init : { ...init, duplex: "half" };
  }

  /** The same request as an object of the global class. */
  asRequest(): Request {
    return new Request(this.url, this.asInit());
  }

  /** The same request to another address. */
  movedTo(url: string): HttpRequest {
    const { method, headers } = this;
    const body = this.#content.clone();
    const moved = new HttpRequest(url, { method, headers, body, duplex: "half" });
    moved.#options = this.#options;
    moved.#signal = this.#signal;
    return moved;
  }

  clone(): HttpRequest {
    return this.movedTo(this.url);
  }
}

function checkAddress(address: string): string {
  const { href, username, password } = new URL(address);
  if (username !== "" || password !== "") throw new TypeError("an address with credentials cannot be requested");
  return href;
}

function checkSignal(signal: AbortSignal | null): AbortSignal | undefined {
  if (signal === null) return undefined;
  if (Object.prototype.toString.call(signal) !== "[object AbortSignal]")
    throw new TypeError("the signal of a request is no AbortSignal");
  return signal;
}
