import { type BodyContent, type ByteStream, extractBody, type GivenBody } from "./body-content.js";
import type { AbortSource } from "./deadline.js";
import { checkOptions, HttpBody, nativeClass } from "./http-body.js";
import { HttpHeaders } from "./http-headers.js";

/** The head of an {@link HttpResponse}. */
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

/** What a response has in common with its copies. */
interface Head {
  readonly status: number;
  readonly statusText: string;
  readonly url: string;
  readonly redirected: boolean;
  readonly type: "basic" | "default";
  /** Whether its headers cannot be changed. */
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
    const {
      status: code = 200,
      statusText: reason = "",
      headers,
      url,
      redirected = false,
      signal,
    } = checkOptions(init);
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
