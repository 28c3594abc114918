type Bytes = Uint8Array<ArrayBuffer>;
export type ByteStream = ReadableStream<Bytes>;
type Init = NonNullable<RequestInit["headers"]> | Iterable<readonly string[]>;

/** A method or the name of a field (RFC 9110 section 5.6.2). */
export const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const NOT_IN_VALUES = /[\0\r\n\u0100-\uffff]/;
const OUTER_WHITESPACE = /^[\t\n\r ]+|[\t\n\r ]+$/g;
const SEPARATE = "set-cookie";
/** On Node a stream says whether it was read or cancelled; there is no standard interface for it. */
const DISTURBED = Symbol.for("nodejs.stream.disturbed");

/**
 * `Headers` of the Fetch Standard. On Node the global class loads all of `fetch`, which takes a short program longer than
 * the rest of its start.
 *
 * @throws `TypeError` for a name or a value that no message can have, a line break for example
 */
export class HttpHeaders implements Headers {
  /** By name in small letters; several values of `set-cookie` alone, which cannot be joined. */
  readonly #values = new Map<string, string[]>();

  constructor(init: Init = {}) {
    const pairs = (Symbol.iterator in init ? init : Object.entries(init)) as Iterable<[string, string]>;
    for (const [name, value] of pairs) this.append(name, value);
  }

  get [Symbol.toStringTag](): string {
    return "Headers";
  }

  append(name: string, value: string): void {
    const key = fieldName(name);
    const added = fieldValue(key, value);
    const present = this.#values.get(key);
    if (present === undefined) this.#values.set(key, [added]);
    else if (key === SEPARATE) present.push(added);
    else present[0] += `, ${added}`;
  }

  delete(name: string): void {
    this.#values.delete(fieldName(name));
  }

  get(name: string): string | null {
    return this.#values.get(fieldName(name))?.join(", ") ?? null;
  }

  getSetCookie(): string[] {
    return [...(this.#values.get(SEPARATE) ?? [])];
  }

  has(name: string): boolean {
    return this.#values.has(fieldName(name));
  }

  set(name: string, value: string): void {
    const key = fieldName(name);
    this.#values.set(key, [fieldValue(key, value)]);
  }

  forEach(callback: (value: string, key: string, headers: Headers) => void, self?: unknown): void {
    for (const [name, value] of this.entries()) callback.call(self, value, name, this);
  }

  *entries(): Generator<[string, string], undefined, unknown> {
    for (const name of [...this.#values.keys()].sort()) {
      for (const value of this.#values.get(name) ?? []) yield [name, value];
    }
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

/** The parts of a body as they arrive, decompressed; it ends the connection when it is not read to its end. */
export interface ArrivingBody extends AsyncIterable<Uint8Array> {
  destroy(): unknown;
}

/** A body as it is stored: text and bytes can be read any number of times, parts once. */
export type BodySource = string | Bytes | AsyncIterable<Uint8Array>;

type GivenBody = RequestInit["body"] | AsyncIterable<Uint8Array>;

/**
 * What a body is made of, and the type that it gives its message (Fetch Standard, extract a body). What no command sends, such as
 * a form with files, is encoded by the class of the runtime.
 */
export function extractBody(given: GivenBody): { source: BodySource | null; type: string | null } {
  if (given === undefined || given === null) return { source: null, type: null };
  if (typeof given === "string") return { source: given, type: "text/plain;charset=UTF-8" };
  if (given instanceof Uint8Array) return { source: new Uint8Array(given), type: null };
  if (given instanceof URLSearchParams)
    return { source: `${given}`, type: "application/x-www-form-urlencoded;charset=UTF-8" };
  if (typeof given === "object" && Symbol.asyncIterator in given)
    return { source: given as AsyncIterable<Uint8Array>, type: null };
  const { body, headers } = new (nativeClass("Response"))(given as RequestInit["body"]);
  return { source: body as BodySource | null, type: headers.get("content-type") };
}

/** Whether a body can be sent again. */
export function isRepeatable(source: BodySource | null): source is string | Bytes | null {
  return source === null || typeof source === "string" || source instanceof Uint8Array;
}

function isStream(source: BodySource): source is ByteStream & AsyncIterable<Uint8Array> {
  return Object.prototype.toString.call(source) === "[object ReadableStream]";
}

function isArriving(source: BodySource | null): source is ArrivingBody {
  return typeof source === "object" && source !== null && "destroy" in source;
}

/** What a request and a response have in common: the interface mixin `Body` of the Fetch Standard. */
abstract class HttpBody {
  readonly headers: HttpHeaders;
  readonly #signal: AbortSignal | undefined;
  #source: BodySource | null;
  /** Made when it is first needed, because it costs more than all else here. */
  #stream: ByteStream | undefined;
  #isUsed = false;

  /** @param signal its reason replaces the error of a body that breaks while it arrives */
  constructor(given: GivenBody, headers: HttpHeaders, signal?: AbortSignal) {
    const { source, type } = extractBody(given);
    this.#source = source;
    this.#signal = signal;
    this.headers = headers;
    if (type !== null && !headers.has("content-type")) headers.set("content-type", type);
  }

  /** What the body is made of. */
  get payload(): BodySource | null {
    return this.#source;
  }

  /** The body as a stream; null where there is none, or where it was read without one. */
  get body(): ByteStream | null {
    if (this.#stream === undefined && this.#source !== null && !this.#isUsed) this.#stream = this.#open(this.#source);
    return this.#stream ?? null;
  }

  get bodyUsed(): boolean {
    return this.#isUsed || (this.#stream as { [DISTURBED]?: boolean } | undefined)?.[DISTURBED] === true;
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    return this.#native().arrayBuffer();
  }

  async blob(): Promise<Blob> {
    return this.#native().blob();
  }

  async bytes(): Promise<Bytes> {
    return new Uint8Array(await this.arrayBuffer());
  }

  async formData(): Promise<FormData> {
    return this.#native().formData();
  }

  async json(): Promise<unknown> {
    return JSON.parse(await this.text());
  }

  async text(): Promise<string> {
    const decoder = new TextDecoder();
    let text = "";
    await this.readTo((part) => {
      text += decoder.decode(part, { stream: true });
    });
    return text + decoder.decode();
  }

  /** Calls `take` with each part of the body, once, to its end or until `take` throws; then the connection ends. */
  async readTo(take: (part: Uint8Array) => void): Promise<void> {
    this.#check();
    const source = this.#source;
    if (source === null) return;
    this.#isUsed = true;
    // What has been read must not live as long as the message.
    if (!isRepeatable(source)) this.#source = "";
    for await (const part of this.#stream ?? this.#parts(source)) take(part);
  }

  /** Ends the body, unread: for less than to cancel its stream costs, for which Node has to load the class of streams. */
  async discard(): Promise<void> {
    if (this.#stream) return this.#stream.cancel().catch(() => undefined);
    this.#isUsed = this.#source !== null;
    if (isArriving(this.#source)) this.#source.destroy();
  }

  /** The body of a copy, before it is read; the parts of one that arrives are in memory until both have read them. */
  protected copyBody(): BodySource | null {
    this.#check();
    if (isRepeatable(this.#source)) return this.#source;
    const [own, copy] = (this.body as ByteStream).tee() as [ByteStream & BodySource, BodySource];
    this.#source = own;
    this.#stream = own;
    return copy;
  }

  /** What our commands do not ask for is read by the class of the runtime. */
  #native(): Response {
    this.#check();
    const type = this.headers.get("content-type");
    const native = new (nativeClass("Response"))(this.body, { headers: type === null ? {} : { "content-type": type } });
    this.#isUsed = this.#source !== null;
    return native;
  }

  /** @throws `TypeError` if it cannot be read */
  #check(): void {
    if (this.bodyUsed || this.#stream?.locked) throw new TypeError("Body is unusable: Body has already been read");
  }

  /** The body as a stream, which asks for a part when it is read. */
  #open(source: BodySource): ByteStream {
    if (isStream(source)) return source;
    const parts = this.#parts(source);
    return new ReadableStream({
      type: "bytes",
      async pull(controller) {
        // A stream of bytes takes no empty part.
        let part = await parts.next();
        while (!part.done && part.value.byteLength === 0) part = await parts.next();
        // A copy: the stream detaches the buffer, which may be the pool of all others.
        if (!part.done) return controller.enqueue(new Uint8Array(part.value));
        controller.close();
        controller.byobRequest?.respond(0);
      },
      async cancel() {
        if (isArriving(source)) source.destroy();
        else await parts.return(undefined);
      },
    }) as ByteStream;
  }

  async *#parts(source: BodySource): AsyncGenerator<Uint8Array, undefined> {
    if (typeof source === "string") yield new TextEncoder().encode(source);
    else if (source instanceof Uint8Array) yield source;
    else {
      try {
        yield* source;
      } catch (error) {
        if (!isArriving(source)) throw error;
        throw this.#signal?.aborted ? this.#signal.reason : new TypeError("terminated", { cause: error });
      }
    }
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

export interface HttpRequestInit extends Pick<RequestInit, "method" | "headers" | "signal" | "redirect" | "duplex"> {
  body?: NonNullable<RequestInit["body"]> | null;
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

/** What requests say by the class of the runtime: no command asks for it. */
const DEFAULTS = [
  ...(["cache", "credentials", "destination", "integrity"] as const),
  ...(["keepalive", "mode", "referrer", "referrerPolicy"] as const),
];

/** A `Request` of the Fetch Standard. On Node the global class loads all of `fetch`. */
export class HttpRequest extends HttpBody implements Request {
  readonly method: string;
  readonly url: string;
  readonly redirect: Request["redirect"];
  readonly duplex = "half";
  declare readonly cache: Request["cache"];
  declare readonly credentials: Request["credentials"];
  declare readonly destination: Request["destination"];
  declare readonly integrity: string;
  declare readonly keepalive: boolean;
  declare readonly mode: Request["mode"];
  declare readonly referrer: string;
  declare readonly referrerPolicy: Request["referrerPolicy"];
  /** The given one, not one that follows it: a signal that lives as long as the program would keep every follower. */
  #signal: AbortSignal | undefined;

  static {
    for (const name of DEFAULTS)
      Object.defineProperty(HttpRequest.prototype, name, {
        get: () => new (nativeClass("Request"))("http://localhost")[name],
      });
  }

  /** @throws `TypeError` for an address, a method or a header that `fetch` does not take */
  constructor(address: string | URL, init: Omit<HttpRequestInit, "body"> & { body?: GivenBody } = {}) {
    const { href, username, password } = new URL(address);
    if (username !== "" || password !== "") throw new TypeError("an address with credentials cannot be requested");
    super(init.body, new HttpHeaders(init.headers));
    this.method = checkMethod(init.method ?? "GET");
    this.url = href;
    this.redirect = init.redirect ?? "follow";
    this.#signal = init.signal ?? undefined;
  }

  get [Symbol.toStringTag](): string {
    return "Request";
  }

  get signal(): AbortSignal {
    this.#signal ??= new AbortController().signal;
    return this.#signal;
  }

  /** What makes the same request with `fetch`, beside its address. */
  asInit(): RequestInit {
    const { method, redirect, headers, payload: body } = this;
    const signal = this.#signal && { signal: this.#signal };
    const head = { method, redirect, headers: Object.fromEntries(headers), ...signal };
    return { ...head, ...(body !== null && { body }), ...(!isRepeatable(body) && { duplex: "half" }) };
  }

  asRequest(): Request {
    return new Request(this.url, this.asInit());
  }

  movedTo(url: string): HttpRequest {
    const { method, headers, redirect } = this;
    return new HttpRequest(url, { method, headers, redirect, body: this.copyBody(), signal: this.#signal ?? null });
  }

  clone(): HttpRequest {
    return this.movedTo(this.url);
  }
}

export interface HttpResponseInit {
  status?: number | undefined;
  statusText?: string | undefined;
  headers?: ConstructorParameters<typeof HttpHeaders>[0] | undefined;
  /** The address that answered, of a response that was received. */
  url?: string | undefined;
  redirected?: boolean | undefined;
  /** Its reason replaces the error of a body that breaks after it fires. */
  signal?: AbortSignal | undefined;
}

/** A `Response` of the Fetch Standard. On Node the global class loads all of `fetch`. */
export class HttpResponse extends HttpBody implements Response {
  readonly status: number;
  readonly statusText: string;
  readonly url: string;
  readonly redirected: boolean;
  readonly type = "basic";

  constructor(body?: GivenBody, init: HttpResponseInit = {}) {
    super(body, new HttpHeaders(init.headers), init.signal);
    this.status = init.status ?? 200;
    this.statusText = init.statusText ?? "";
    this.url = init.url ?? "";
    this.redirected = init.redirected ?? false;
  }

  get [Symbol.toStringTag](): string {
    return "Response";
  }

  get ok(): boolean {
    return this.status >= 200 && this.status <= 299;
  }

  /** A copy, before the body is read. */
  clone(): HttpResponse {
    const { status, statusText, headers, url, redirected } = this;
    return new HttpResponse(this.copyBody(), { status, statusText, headers, url, redirected });
  }
}

type Fetch = typeof globalThis.fetch;

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
export function toNativeFetch(given: Fetch | undefined, split = given === undefined): Fetch {
  if (given !== undefined && acceptsInternalRequest(given)) return given;
  const fetch = given ?? ((input, init) => globalThis.fetch(input, init));
  // The global one would copy an object of its class.
  const toHeaders = (headers: HttpHeaders) => (given ? new Headers([...headers]) : Object.fromEntries(headers));
  return (input, init) => {
    const options = init?.headers instanceof HttpHeaders ? { ...init, headers: toHeaders(init.headers) } : init;
    if (!(input instanceof HttpRequest)) return fetch(input, options);
    return split ? fetch(input.url, { ...input.asInit(), ...options }) : fetch(input.asRequest(), options);
  };
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
