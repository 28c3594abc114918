import type { AbortSource } from "./deadline.js";
import { HttpHeaders } from "./http-headers.js";
import type { ArrivingBody } from "./plain.js";

type ByteStream = ReadableStream<Uint8Array<ArrayBuffer>>;

/** The head of an {@link HttpResponse}. */
export interface HttpResponseInit {
  status?: number | undefined;
  statusText?: string | undefined;
  headers?: ConstructorParameters<typeof HttpHeaders>[0] | undefined;
  url?: string | undefined;
  redirected?: boolean | undefined;
  /** Its reason replaces the error of a body that breaks after it fires. */
  signal?: Pick<AbortSource, "aborted" | "reason"> | undefined;
}

/** A reason phrase (RFC 9112 section 4). */
const REASON = /^[\t\x20-\x7e\x80-\xff]*$/;

/** A `Response` of the Fetch Standard. On Node the global class loads all of `fetch`. */
export class HttpResponse implements Response {
  readonly status: number;
  readonly statusText: string;
  readonly headers: HttpHeaders;
  readonly url: string;
  readonly redirected: boolean;
  readonly type = "basic";
  #source: string | ArrivingBody | null;
  readonly #signal: HttpResponseInit["signal"];
  #stream: ByteStream | undefined;
  #isUsed = false;

  constructor(body: string | ArrivingBody | null, init: HttpResponseInit = {}) {
    const { status = 200, statusText = "" } = init;
    if (!(status >= 200 && status <= 599)) throw new RangeError(`a response cannot have the status ${status}`);
    if (!REASON.test(statusText))
      throw new TypeError("the text of the status has a character that is not allowed there");
    this.#source = body;
    this.#signal = init.signal;
    this.status = status;
    this.statusText = statusText;
    this.headers = new HttpHeaders(init.headers);
    this.url = init.url ?? "";
    this.redirected = init.redirected ?? false;
  }

  get [Symbol.toStringTag](): string {
    return "Response";
  }

  get ok(): boolean {
    return this.status >= 200 && this.status <= 299;
  }

  get bodyUsed(): boolean {
    return this.#isUsed;
  }

  get body(): ByteStream | null {
    // openapi-fetch asks for the stream of a body that was read as text.
    if (this.#source === null || (this.#isUsed && this.#stream === undefined)) return null;
    this.#stream ??= streamOf(this.#read(), this.#source);
    return this.#stream;
  }

  /** Calls `take` with each part of the body, once, to its end or until `take` throws; then the connection ends. */
  async readTo(take: (part: Uint8Array<ArrayBuffer>) => void): Promise<void> {
    if (this.#isUsed || this.#stream?.locked) throw new TypeError("Body is unusable: Body has already been read");
    const source = this.#source;
    if (source === null || typeof source === "string" || source.readTo === undefined) {
      for await (const part of this.#read()) take(part);
      return;
    }
    this.#isUsed = true;
    // What has been read must not live as long as the response.
    this.#source = "";
    const error = await source.readTo(take as (part: Uint8Array) => void);
    if (error !== undefined) throw this.#broken(error);
  }

  async *#read(): AsyncGenerator<Uint8Array<ArrayBuffer>, undefined> {
    this.#isUsed = this.#source !== null;
    if (typeof this.#source === "string") {
      yield new TextEncoder().encode(this.#source);
      return;
    }
    try {
      for await (const part of this.#source ?? []) yield part as Uint8Array<ArrayBuffer>;
    } catch (error) {
      throw this.#broken(error);
    }
  }

  #broken(error: unknown): unknown {
    return this.#signal?.aborted ? this.#signal.reason : new TypeError("terminated", { cause: error });
  }

  /** A copy, before the body is read; the parts of a body that arrives are in memory until both have read them. */
  clone(): Response {
    if (this.#isUsed || this.#stream?.locked) throw new TypeError("Response.clone: Body has already been consumed.");
    const { status, statusText, headers, url, redirected } = this;
    const init = { status, statusText, headers, url, redirected, signal: this.#signal };
    if (this.#source === null || typeof this.#source === "string") return new HttpResponse(this.#source, init);
    this.#stream?.getReader();
    this.#stream = undefined;
    const [own, copy] = streamOf(this.#source[Symbol.asyncIterator](), this.#source).tee();
    this.#source = arriving(own);
    return new HttpResponse(arriving(copy), init);
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    return (await this.blob()).arrayBuffer();
  }

  async blob(): Promise<Blob> {
    const parts: Uint8Array<ArrayBuffer>[] = [];
    await this.readTo((part) => parts.push(part));
    return new Blob(parts, { type: this.headers.get("content-type") ?? "" });
  }

  async formData(): Promise<FormData> {
    const type = this.headers.get("content-type") ?? "";
    return new Response(await this.blob(), { headers: { "content-type": type } }).formData();
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
}

function streamOf(parts: AsyncIterator<Uint8Array>, source: string | ArrivingBody | null): ByteStream {
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await parts.next();
          if (done) controller.close();
          else controller.enqueue(new Uint8Array(value.buffer as ArrayBuffer, value.byteOffset, value.byteLength));
        } catch (error) {
          controller.error(error);
        }
      },
      cancel() {
        if (typeof source === "object") source?.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}

/** One of the two halves of a body that was copied. */
function arriving(stream: ByteStream): ArrivingBody {
  const parts = stream.values();
  return { [Symbol.asyncIterator]: () => parts, destroy: () => parts.return?.() };
}
