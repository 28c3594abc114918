import { type BodyContent, type BodySource, extractBody, type GivenBody, isRepeatable } from "./body-content.js";
import { checkOptions, HttpBody } from "./http-body.js";
import { HttpHeaders, TOKEN } from "./http-headers.js";

/** What a request says beside its method, address, headers and body (Fetch Standard, `RequestInit`). */
export interface RequestOptions {
  readonly cache: Request["cache"];
  readonly credentials: Request["credentials"];
  readonly integrity: string;
  readonly keepalive: boolean;
  readonly mode: Request["mode"];
  readonly redirect: Request["redirect"];
  readonly referrer: string;
  readonly referrerPolicy: Request["referrerPolicy"];
}

const DEFAULTS: RequestOptions = {
  cache: "default",
  credentials: "same-origin",
  integrity: "",
  keepalive: false,
  mode: "cors",
  redirect: "follow",
  referrer: "about:client",
  referrerPolicy: "",
};

const CHECKS: Record<keyof RequestOptions, (value: unknown) => unknown> = {
  cache: oneOf("default", "no-store", "reload", "no-cache", "force-cache", "only-if-cached"),
  credentials: oneOf("omit", "same-origin", "include"),
  integrity: String,
  keepalive: Boolean,
  mode: oneOf("same-origin", "no-cors", "cors"),
  redirect: oneOf("follow", "error", "manual"),
  referrer: (value) => (value === "" ? "" : new URL(`${value}`).href),
  referrerPolicy: oneOf(
    "",
    "no-referrer",
    "no-referrer-when-downgrade",
    "same-origin",
    "origin",
    "strict-origin",
    "origin-when-cross-origin",
    "strict-origin-when-cross-origin",
    "unsafe-url",
  ),
};
const NAMES = Object.keys(CHECKS) as (keyof RequestOptions)[];

/**
 * The options of a new request.
 *
 * @param from those of the request that it is made of
 * @throws `TypeError` for a value that an option cannot have, alone or beside another one
 */
function requestOptions(
  given: Partial<RequestOptions> & { window?: null },
  method: string,
  from: RequestOptions = DEFAULTS,
): RequestOptions {
  if (given.window !== undefined && given.window !== null) throw new TypeError("the option window can only be null");
  let options = from;
  if (from !== DEFAULTS && Object.keys(given).length > 0) {
    options = { ...from, referrer: DEFAULTS.referrer, referrerPolicy: DEFAULTS.referrerPolicy };
  }
  for (const name of NAMES) {
    const value = given[name];
    if (value !== undefined && value !== options[name]) options = { ...options, [name]: CHECKS[name](value) };
  }
  const { cache, mode } = options;
  if (cache === "only-if-cached" && mode !== "same-origin")
    throw new TypeError('the cache mode only-if-cached needs the mode "same-origin"');
  if (mode === "no-cors" && method !== "GET" && method !== "HEAD" && method !== "POST")
    throw new TypeError(`the mode no-cors allows no method ${method}`);
  return options;
}

function oneOf(...values: string[]): (value: unknown) => string {
  return (value) => {
    const text = `${value}`;
    if (!values.includes(text)) throw new TypeError(`an option of a request is none of ${values.join(", ")}`);
    return text;
  };
}

/** What an {@link HttpRequest} is made of. */
export interface HttpRequestInit
  extends Pick<RequestInit, "method" | "headers" | "signal" | "duplex" | "window">,
    Partial<RequestOptions> {
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
    const options = requestOptions(given, method, from === undefined ? from : from.#options);
    const { content, type } = extractBody(given.body);
    const isStreamed = !isRepeatable(content.source);
    if (given.duplex === undefined ? isStreamed : given.duplex !== "half")
      throw new TypeError('a request whose body is a stream needs the option duplex, which can only be "half"');
    if (isStreamed && options.keepalive)
      throw new TypeError("a request with keepalive cannot have a stream as its body");
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

  get cache(): Request["cache"] {
    return this.#options.cache;
  }

  get credentials(): Request["credentials"] {
    return this.#options.credentials;
  }

  get destination(): "" {
    return "";
  }

  get duplex(): "half" {
    return "half";
  }

  get integrity(): string {
    return this.#options.integrity;
  }

  get isHistoryNavigation(): boolean {
    return false;
  }

  get isReloadNavigation(): boolean {
    return false;
  }

  get keepalive(): boolean {
    return this.#options.keepalive;
  }

  get mode(): Request["mode"] {
    return this.#options.mode;
  }

  get redirect(): Request["redirect"] {
    return this.#options.redirect;
  }

  get referrer(): string {
    return this.#options.referrer;
  }

  get referrerPolicy(): Request["referrerPolicy"] {
    return this.#options.referrerPolicy;
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
    const { method, headers, payload: body, redirect } = this;
    const signal = this.#signal && { signal: this.#signal };
    const init = { method, headers: Object.fromEntries(headers), redirect, ...signal, ...(body !== null && { body }) };
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
