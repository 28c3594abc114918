import type { AbortSource } from "./deadline.js";

type Bytes = Uint8Array<ArrayBuffer>;

export type ByteStream = ReadableStream<Bytes>;

/** On Node a stream says whether it was read or cancelled; there is no standard interface for it. */
const DISTURBED = Symbol.for("nodejs.stream.disturbed");

function isStream(source: unknown): source is ByteStream {
  return Object.prototype.toString.call(source) === "[object ReadableStream]";
}

/** Whether a stream was read or cancelled, as far as the runtime says. */
function isDisturbed(stream: ByteStream | undefined): boolean {
  return (stream as { [DISTURBED]?: boolean } | undefined)?.[DISTURBED] === true;
}

/** @throws `TypeError` for a part of a body that is none of bytes */
function checkPart(part: unknown): Bytes {
  if (!(part instanceof Uint8Array)) throw new TypeError("a part of the body is not a Uint8Array");
  return part as Bytes;
}

/** Calls `take` with each part of a stream, to its end or until `take` throws; the stream stays locked. */
export async function readByteStream(stream: ByteStream, take: (part: Bytes) => void): Promise<void> {
  const reader = stream.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) take(checkPart(part.value));
  } catch (thrown) {
    await reader.cancel().catch(() => undefined);
    throw thrown;
  }
}

function markRead(stream: ByteStream): void {
  void stream.getReader().cancel();
}

/** The parts as a stream, which asks for one when it is read. */
function toStream(parts: AsyncGenerator<Bytes, undefined>, cancel: () => Promise<void>): ByteStream {
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      try {
        // A stream of bytes takes no empty part.
        let part = await parts.next();
        while (!part.done && part.value.byteLength === 0) part = await parts.next();
        // A copy: the stream detaches the buffer, which may be the pool of all others.
        if (!part.done) return controller.enqueue(new Uint8Array(part.value));
        controller.close();
        controller.byobRequest?.respond(0);
      } catch (error) {
        controller.error(error);
      }
    },
    cancel,
  }) as ByteStream;
}

/** What a request or a response takes as its body, and for copies the content of another one. */
export type GivenBody = RequestInit["body"] | BodyContent;

/** The parts of a body as they arrive, decompressed; it ends the connection when it is not read to its end. */
export interface ArrivingBody extends AsyncIterable<Uint8Array> {
  destroy(): unknown;
  /**
   * Calls `take` with each part, for less than an iteration costs. It rejects with what `take` throws.
   *
   * @returns the error of a body that broke
   */
  readTo?(take: (part: Uint8Array) => void): Promise<Error | undefined>;
}

/** A body as it is kept: text, bytes and a `Blob` can be read any number of times, the others once. */
export type BodySource = string | Bytes | Blob | AsyncIterable<Uint8Array>;

type Signal = Pick<AbortSource, "aborted" | "reason">;

/**
 * The content of a body, and the type that it gives its message (Fetch Standard, extract a body).
 *
 * @param signal its reason replaces the error of a body that breaks while it arrives
 * @throws `TypeError` for a stream that was read or is being read
 */
export function extractBody(given: GivenBody, signal?: Signal): { content: BodyContent; type: string | null } {
  if (given === undefined || given === null) return NOTHING;
  if (given instanceof BodyContent) return { content: given, type: null };
  const { source, type } = readSource(given);
  return { content: new BodyContent(source, signal), type };
}

function readSource(given: NonNullable<RequestInit["body"]>): { source: BodySource; type: string | null } {
  if (typeof given === "string") return { source: given, type: "text/plain;charset=UTF-8" };
  // The most frequent one, for which the rest costs more than to receive its head.
  if (isArriving(given)) return { source: given, type: null };
  // By name, because to touch the class FormData loads all of fetch on Node.
  switch (Object.prototype.toString.call(given).slice(8, -1)) {
    case "URLSearchParams":
      return { source: `${given}`, type: "application/x-www-form-urlencoded;charset=UTF-8" };
    case "FormData":
      return serializeForm(given as FormData);
    case "Blob":
    case "File":
      return { source: given as Blob, type: (given as Blob).type || null };
    case "ArrayBuffer":
      return { source: new Uint8Array((given as ArrayBuffer).slice(0)), type: null };
  }
  if (ArrayBuffer.isView(given))
    return { source: new Uint8Array(given.buffer, given.byteOffset, given.byteLength).slice(), type: null };
  if (typeof given !== "object" || !(Symbol.asyncIterator in given))
    return { source: `${given}`, type: "text/plain;charset=UTF-8" };
  if (isStream(given) && (given.locked || isDisturbed(given))) throw new TypeError("the stream of a body was read");
  return { source: given, type: null };
}

export function isRepeatable(source: BodySource | null): source is string | Bytes | Blob | null {
  return source === null || typeof source === "string" || source instanceof Uint8Array || source instanceof Blob;
}

/** The body of one request or response: what it is made of, and whether it was read. */
export class BodyContent {
  #source: BodySource | ArrivingBody | null;
  readonly #signal: Signal | undefined;
  /** Made when it is first needed, because it costs more than all else here. */
  #stream: ByteStream | undefined;
  #isUsed = false;

  /** @param signal see {@link extractBody} */
  constructor(source: BodySource | ArrivingBody | null, signal?: Signal) {
    this.#source = source;
    this.#signal = signal;
    if (!isRepeatable(source) && !isArriving(source) && isStream(source)) this.#stream = source;
  }

  get source(): BodySource | null {
    return this.#source;
  }

  /** Whether it was read or cancelled, be it in part. */
  get isUsed(): boolean {
    return this.#isUsed || isDisturbed(this.#stream);
  }

  get stream(): ByteStream | null {
    if (this.#source === null) return null;
    if (this.#stream === undefined) {
      this.#stream = this.#isUsed ? new ReadableStream() : this.#open();
      if (this.#isUsed) markRead(this.#stream);
    }
    return this.#stream;
  }

  /** @throws `TypeError` if it cannot be read */
  check(): void {
    if (this.isUsed || this.#stream?.locked) throw new TypeError("Body is unusable: Body has already been read");
  }

  /** Calls `take` with each part, once, to the end or until `take` throws. */
  async readTo(take: (part: Bytes) => void): Promise<void> {
    this.check();
    const source = this.#source;
    if (source === null) return;
    this.#isUsed = true;
    if (this.#stream) return readByteStream(this.#stream, take);
    // What has been read must not live as long as the message.
    if (!isRepeatable(source)) this.#source = "";
    if (!isArriving(source) || source.readTo === undefined) {
      for await (const part of this.#parts(source)) take(part);
      return;
    }
    const error = await source.readTo(take as (part: Uint8Array) => void);
    if (error !== undefined) throw this.#broken(error);
  }

  async discard(): Promise<void> {
    if (this.#stream) return this.#stream.cancel().catch(() => undefined);
    const source = this.#source;
    this.#isUsed = source !== null;
    if (source !== null && isArriving(source)) source.destroy();
  }

  /** The text of a body, which needs no decoder where it is made of text. */
  async readText(): Promise<string> {
    const source = this.#source;
    if (typeof source === "string" && this.#stream === undefined) {
      this.check();
      this.#isUsed = true;
      return (source.startsWith("\ufeff") ? source.slice(1) : source).toWellFormed();
    }
    const decoder = new TextDecoder();
    let text = "";
    await this.readTo((part) => {
      text += decoder.decode(part, { stream: true });
    });
    return text + decoder.decode();
  }

  /** A copy, before it is read; the parts of one that arrives are in memory until both have read them. */
  clone(): BodyContent {
    this.check();
    if (isRepeatable(this.#source)) return new BodyContent(this.#source);
    const [own, copy] = (this.stream as ByteStream).tee();
    this.#source = own;
    this.#stream = own;
    return new BodyContent(copy);
  }

  /** The same body for another message, after which this one is used. */
  transfer(): BodyContent {
    this.check();
    const isPassedOn = this.#stream === undefined || isRepeatable(this.#source);
    const source = isPassedOn ? this.#source : this.#stream?.pipeThrough(new TransformStream());
    this.#isUsed = source !== null;
    if (isPassedOn && this.#stream) markRead(this.#stream);
    return new BodyContent(source ?? null, this.#signal);
  }

  #open(): ByteStream {
    const source = this.#source as BodySource | ArrivingBody;
    if (source instanceof Blob) return source.stream() as ByteStream;
    if (typeof source === "string" || source instanceof Uint8Array) return new Blob([source]).stream() as ByteStream;
    const parts = this.#parts(source);
    return toStream(parts, async () => {
      if (isArriving(source)) source.destroy();
      else await parts.return(undefined);
    });
  }

  async *#parts(source: BodySource | ArrivingBody): AsyncGenerator<Bytes, undefined> {
    if (typeof source === "string") yield new TextEncoder().encode(source);
    else if (source instanceof Uint8Array) yield source;
    else if (source instanceof Blob) yield new Uint8Array(await source.arrayBuffer());
    else {
      try {
        for await (const part of source) yield checkPart(part);
      } catch (error) {
        throw isArriving(source) ? this.#broken(error) : error;
      }
    }
  }

  #broken(error: unknown): unknown {
    return this.#signal?.aborted ? this.#signal.reason : new TypeError("terminated", { cause: error });
  }
}

/** Shared by all messages without a body, which cannot be used. */
const NOTHING = { content: new BodyContent(null), type: null };

function isArriving(source: object | string): source is ArrivingBody {
  return typeof source === "object" && "destroy" in source && Symbol.asyncIterator in source;
}

/** A form as a body of the type `multipart/form-data` (HTML Standard, multipart/form-data encoding algorithm). */
function serializeForm(form: FormData): { source: Blob; type: string } {
  const boundary = `----form-${crypto.randomUUID()}`;
  const parts: (string | Blob)[] = [];
  for (const [name, value] of form) {
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${escapeQuoted(withCrlf(name))}"`;
    if (typeof value === "string") {
      parts.push(`${head}\r\n\r\n${withCrlf(value)}\r\n`);
    } else {
      const type = value.type || "application/octet-stream";
      parts.push(`${head}; filename="${escapeQuoted(value.name)}"\r\nContent-Type: ${type}\r\n\r\n`, value, "\r\n");
    }
  }
  return { source: new Blob([...parts, `--${boundary}--\r\n`]), type: `multipart/form-data; boundary=${boundary}` };
}

function withCrlf(text: string): string {
  return text.replace(/\r\n?|\n/g, "\r\n");
}

function escapeQuoted(text: string): string {
  return text.replace(/["\r\n]/g, encodeURIComponent);
}
