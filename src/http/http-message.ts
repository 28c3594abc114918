import type { BodyContent, BodySource, ByteStream, GivenBody } from "./body-content.js";
import { extractBody, isRepeatable } from "./body-content.js";
import { type AbortSource, FollowingController } from "./deadline.js";

type Init = NonNullable<RequestInit["headers"]> | Iterable<readonly string[]>;

/** A method or the name of a field (RFC 9110 section 5.6.2). */
export const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const NOT_IN_VALUES = /[\0\r\n\u0100-\uffff]/;
const OUTER_WHITESPACE = /^[\t\n\r ]+|[\t\n\r ]+$/g;
const SEPARATE = "set-cookie";

/**
 * `Headers` of the Fetch Standard. On Node the global class loads all of `fetch`, which takes a short program longer than
 * the rest of its start.
 *
 * @throws `TypeError` for a name or a value that no message can have, a line break for example
 */
export class HttpHeaders implements Headers {
  /** By name in small letters; several values of `set-cookie` alone, which cannot be joined. */
  readonly #values = new Map<string, string[]>();
  #isFrozen = false;
  /** What iterators read, until a change. */
  #sorted: (readonly [string, string])[] | undefined;

  /** Makes headers that cannot be changed, as those of a response that was received (Fetch Standard, the guard `immutable`). */
  static freeze(headers: HttpHeaders): void {
    headers.#isFrozen = true;
  }

  constructor(init: Init = {}) {
    this.#fill(init);
  }

  get [Symbol.toStringTag](): string {
    return "Headers";
  }

  append(name: string, value: string): void {
    const key = fieldName(name);
    const added = fieldValue(key, value);
    this.#change();
    this.#append(key, added);
  }

  delete(name: string): void {
    const key = fieldName(name);
    this.#change();
    this.#values.delete(key);
  }

  get(name: string): string | null {
    return (this.#values.get(name) ?? this.#values.get(fieldName(name)))?.join(", ") ?? null;
  }

  getSetCookie(): string[] {
    return [...(this.#values.get(SEPARATE) ?? [])];
  }

  has(name: string): boolean {
    return this.#values.has(fieldName(name));
  }

  set(name: string, value: string): void {
    const key = fieldName(name);
    const values = [fieldValue(key, value)];
    this.#change();
    this.#values.set(key, values);
  }

  forEach(callback: (value: string, key: string, headers: Headers) => void, self?: unknown): void {
    if (typeof callback !== "function") throw new TypeError("the callback of forEach is not a function");
    for (const [name, value] of this.entries()) callback.call(self, value, name, this);
  }

  *entries(): Generator<[string, string], undefined, unknown> {
    for (const [name, value] of this.#pairs()) yield [name, value];
  }

  *keys(): Generator<string, undefined, unknown> {
    for (const [name] of this.entries()) yield name;
  }

  *values(): Generator<string, undefined, unknown> {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator](): Generator<[string, string], undefined, unknown> {
    return this.entries();
  }

  #fill(init: Init): void {
    if (typeof init !== "object" || init === null) throw new TypeError("headers are made of an object or of pairs");
    if (init instanceof HttpHeaders && init[Symbol.iterator] === HttpHeaders.prototype[Symbol.iterator]) {
      // Their names and values were checked.
      for (const [key, values] of init.#values) this.#values.set(key, [...values]);
      return;
    }
    for (const given of Symbol.iterator in init ? init : Object.entries(init)) {
      const [name, value] = readPair(given);
      const key = fieldName(name);
      this.#append(key, fieldValue(key, value));
    }
  }

  #append(key: string, added: string): void {
    const present = this.#values.get(key);
    if (present === undefined) this.#values.set(key, [added]);
    else if (key === SEPARATE) present.push(added);
    else present[0] += `, ${added}`;
  }

  #change(): void {
    if (this.#isFrozen) throw new TypeError("these headers cannot be changed");
    this.#sorted = undefined;
  }

  #pairs(): (readonly [string, string])[] {
    if (this.#sorted !== undefined) return this.#sorted;
    this.#sorted = [];
    for (const name of [...this.#values.keys()].sort()) {
      for (const value of this.#values.get(name) ?? []) this.#sorted.push([name, value]);
    }
    return this.#sorted;
  }
}

function readPair(given: unknown): [name: string, value: string] {
  const isList = typeof given === "object" && given !== null && Symbol.iterator in given;
  const pair = Array.isArray(given) ? given : isList ? [...(given as Iterable<string>)] : [];
  if (pair.length !== 2) throw new TypeError("a header is a pair of name and value");
  return pair as [string, string];
}

function fieldName(name: string): string {
  const text = `${name}`;
  if (!TOKEN.test(text)) throw new TypeError("the name of a header is invalid");
  return text.toLowerCase();
}

function fieldValue(key: string, value: string): string {
  const text = `${value}`.replace(OUTER_WHITESPACE, "");
  // The value may be a secret.
  if (NOT_IN_VALUES.test(text)) throw new TypeError(`the header ${key} has an invalid value`);
  return text;
}

/** What a request and a response have in common: the interface mixin `Body` of the Fetch Standard. */
abstract class HttpBody {
  readonly #content: BodyContent;
  readonly #headers: HttpHeaders;

  constructor(content: BodyContent, type: string | null, headers: HttpHeaders) {
    this.#content = content;
    this.#headers = headers;
    if (type !== null && !headers.has("content-type")) headers.set("content-type", type);
  }

  get headers(): HttpHeaders {
    return this.#headers;
  }

  get body(): ByteStream | null {
    return this.#content.stream;
  }

  get bodyUsed(): boolean {
    return this.#content.isUsed;
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    return this.#native().arrayBuffer();
  }

  async blob(): Promise<Blob> {
    return this.#native().blob();
  }

  async bytes(): Promise<Uint8Array<ArrayBuffer>> {
    return new Uint8Array(await this.arrayBuffer());
  }

  async formData(): Promise<FormData> {
    return this.#native().formData();
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.#content.readText());
  }

  async text(): Promise<string> {
    return this.#content.readText();
  }

  /** What our commands do not ask for is read by the class of the runtime. */
  #native(): Response {
    this.#content.check();
    const type = this.#headers.get("content-type");
    return new (nativeClass("Response"))(this.body, { headers: type === null ? {} : { "content-type": type } });
  }
}

/**
 * A class of the runtime, which ours replace in the process of a command line: no command needs it there. It is not kept at
 * the start, since on Node 24 reading the property, or its descriptor, loads all of `fetch`.
 */
function nativeClass<Name extends "Request" | "Response">(name: Name): (typeof globalThis)[Name] {
  const found = globalThis[name];
  if (found.prototype instanceof HttpBody) throw new TypeError(`this process has replaced the ${name} of the runtime`);
  return found;
}

/** The dictionary of options of a constructor. @throws `TypeError` for what is no object */
function checkOptions<Options extends object>(given: Options | null | undefined): Partial<Options> {
  if (given === undefined || given === null) return {};
  if (typeof given !== "object") throw new TypeError("options are an object");
  return given;
}

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

  asRequest(): Request {
    return new Request(this.url, this.asInit());
  }

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

export interface HttpResponseInit {
  status?: number | undefined;
  statusText?: string | undefined;
  headers?: ConstructorParameters<typeof HttpHeaders>[0] | undefined;
  /** The address that answered, of a response that was received. */
  url?: string | undefined;
  redirected?: boolean | undefined;
  /** Its reason replaces the error of a body that breaks after it fires. */
  signal?: Pick<AbortSource, "aborted" | "reason"> | undefined;
}

interface Head extends Pick<Response, "status" | "statusText" | "url" | "redirected"> {
  readonly type: "basic" | "default";
  readonly isFrozen: boolean;
}

/** A reason phrase (RFC 9112 section 4). */
const REASON = /^[\t\x20-\x7e\x80-\xff]*$/;
const WITHOUT_BODY = new Set([101, 204, 205, 304]);

/** A `Response` of the Fetch Standard. On Node the global class loads all of `fetch`. */
export class HttpResponse extends HttpBody implements Response {
  readonly #content: BodyContent;
  #head: Head;
  #isReadOut = false;

  /** @throws `TypeError` for what JSON cannot express */
  static json(data: unknown, init?: HttpResponseInit | null): HttpResponse {
    const text = JSON.stringify(data);
    if (text === undefined) throw new TypeError("a value cannot be expressed in JSON");
    const headers = new HttpHeaders(init?.headers);
    if (!headers.has("content-type")) headers.set("content-type", "application/json");
    return new HttpResponse(text, { ...init, headers });
  }

  /** A network error, which has no status. */
  static error(): Response {
    return nativeClass("Response").error();
  }

  /** @throws as the class of the runtime */
  static redirect(url: string | URL, status: Parameters<typeof Response.redirect>[1] = 302): Response {
    return nativeClass("Response").redirect(url, status);
  }

  /** @throws `RangeError` for a status that no response can have, `TypeError` for another part of that kind */
  constructor(body?: GivenBody, init?: HttpResponseInit | null) {
    const options = checkOptions(init);
    const { status: code = 200, statusText: reason = "", headers, url, redirected = false, signal } = options;
    const status = Math.trunc(Number(code));
    if (!(status >= 200 && status <= 599)) throw new RangeError(`a response cannot have the status ${code}`);
    const statusText = `${reason}`;
    if (!REASON.test(statusText))
      throw new TypeError("the text of the status has a character that is not allowed there");
    const { content, type } = extractBody(body, signal);
    if (content.source !== null && WITHOUT_BODY.has(status))
      throw new TypeError(`a response with the status ${status} cannot have a body`);
    super(content, type, new HttpHeaders(headers));
    this.#content = content;
    const isReceived = url !== undefined;
    if (isReceived) HttpHeaders.freeze(this.headers);
    const kind = isReceived ? "basic" : "default";
    this.#head = { status, statusText, url: url ?? "", redirected, type: kind, isFrozen: isReceived };
  }

  get [Symbol.toStringTag](): string {
    return "Response";
  }

  get status(): number {
    return this.#head.status;
  }

  get statusText(): string {
    return this.#head.statusText;
  }

  get url(): string {
    return this.#head.url;
  }

  get redirected(): boolean {
    return this.#head.redirected;
  }

  get type(): Response["type"] {
    return this.#head.type;
  }

  get ok(): boolean {
    return this.status >= 200 && this.status <= 299;
  }

  override get body(): ByteStream | null {
    // openapi-fetch asks for the stream of a body that was read as text.
    return this.#isReadOut ? null : super.body;
  }

  /** Calls `take` with each part of the body, once, to its end or until `take` throws; then the connection ends. */
  readTo(take: (part: Uint8Array<ArrayBuffer>) => void): Promise<void> {
    this.#isReadOut = true;
    return this.#content.readTo(take);
  }

  /** Ends the body, unread: for less than to cancel its stream costs, for which Node has to load the class of streams. */
  discard(): Promise<void> {
    return this.#content.discard();
  }

  /** A copy, before the body is read; the parts of a body that arrives are in memory until both have read them. */
  clone(): HttpResponse {
    const copy = new HttpResponse(this.#content.clone(), { headers: this.headers });
    copy.#head = this.#head;
    if (this.#head.isFrozen) HttpHeaders.freeze(copy.headers);
    return copy;
  }
}

type Fetch = typeof globalThis.fetch;

/** A `fetch` that also takes a controller as the signal: a signal costs more than a short request has to. */
type OwnFetch = (input: Parameters<Fetch>[0], init?: OwnInit) => Promise<Response>;

type OwnInit = Omit<RequestInit, "signal"> & { signal?: RequestInit["signal"] | FollowingController };

/** The `fetch` functions that take an {@link HttpRequest}, and respond without the global classes. */
const own = new WeakSet<Fetch>();

/**
 * Marks a `fetch` that takes our own classes.
 *
 * @param inner the one that it calls, which decides; none where it decides itself
 */
export function ownFetch(fetch: Fetch, inner?: Fetch): Fetch {
  if (acceptsInternalRequest(inner)) own.add(fetch);
  return fetch;
}

/** Whether a request of our own class may be made for a `fetch`, or where none is given. */
export function acceptsInternalRequest(fetch: Fetch | undefined): boolean {
  return fetch === undefined || own.has(fetch);
}

/**
 * A `fetch` that takes our own classes in place of one that may expect those of the runtime.
 *
 * @param given none for the global one, as it is at each call
 * @param split whether it gets an address and options in place of an {@link HttpRequest}, not a `Request`. The global one
 * would make a second request of that; a given one may expect it.
 */
export function toNativeFetch(given: Fetch | undefined, split = given === undefined): OwnFetch {
  if (given !== undefined && acceptsInternalRequest(given)) return given as OwnFetch;
  const fetch = given ?? ((input, init) => globalThis.fetch(input, init));
  // The global one would copy an object of its class.
  const toHeaders = (headers: HttpHeaders) => (given ? new Headers([...headers]) : Object.fromEntries(headers));
  return (input, init) => {
    const options = init && withWebClasses(init, toHeaders);
    if (!(input instanceof HttpRequest)) return fetch(input, options);
    return split ? fetch(input.url, { ...input.asInit(), ...options }) : fetch(input.asRequest(), options);
  };
}

function withWebClasses(
  { signal, ...init }: OwnInit,
  toHeaders: (headers: HttpHeaders) => NonNullable<RequestInit["headers"]>,
): RequestInit {
  if (init.headers instanceof HttpHeaders) init.headers = toHeaders(init.headers);
  if (signal === undefined) return init;
  return { ...init, signal: signal instanceof FollowingController ? signal.signal : signal };
}

/** Whether the first argument of `fetch` is a request, of whatever class. */
export function isRequest(input: Parameters<Fetch>[0] | object): input is Request {
  return isOfClass(input, "Request");
}

/** Whether a value is a response, of whatever class. */
export function isResponse(value: unknown): value is Response {
  return isOfClass(value, "Response");
}

/** Compared by name: to ask the global class would load it. */
function isOfClass(value: unknown, name: string): boolean {
  return typeof value === "object" && value !== null && Object.prototype.toString.call(value) === `[object ${name}]`;
}
