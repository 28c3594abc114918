import { type Advice, AgentAuthError, errorMessage, orUndefined } from "../errors.js";
import { quote } from "../redact.js";
import { shownUrl } from "./address.js";
import { type ByteStream, HttpResponse } from "./http-message.js";
import { networkError } from "./network-error.js";
import { isJsonObject, parseAnyJson, parseStrictJson, StrictJsonError } from "./strict-json.js";

/** A whole response: headers and a body that has been read, capped and decoded. */
export interface BufferedResponse {
  /** Status, headers and address; its own body has been consumed. */
  readonly response: Response;
  readonly status: number;
  readonly url: string;
  text: string;
  /** The parsed body where the response is declared as JSON, else undefined. */
  json: unknown;
  /** The request id that the service sent, for its operators. */
  readonly requestId: string | undefined;
}

/**
 * Lets go of a body that was used. The promises of a call that waited are old to the garbage collector: what they hold
 * survives until a full collection. Of 50 listings at once, that was every page, and a third of the CPU.
 */
export function forgetBody(reply: BufferedResponse): void {
  reply.text = "";
  reply.json = undefined;
}

/** The context of one call, passed through the layers of the transport. */
export interface Call {
  /** Aborts the call: the caller's signal and the deadline in one. */
  readonly limit: AbortSignal;
  /** Milliseconds on the transport's clock at which the call must have ended. */
  readonly endsAt: number;
  /** Headers that replace those of the request: cheaper than a second request that differs in its headers alone. */
  readonly headers?: Headers;
  /** Milliseconds of one attempt, in place of the transport's. */
  readonly timeoutMs?: number | undefined;
  /** Retries after the first attempt, in place of the transport's. */
  readonly maxRetries?: number | undefined;
  /** Masks the secrets of the request, which its server may repeat, in place of the transport's. */
  readonly mask?: ((text: string) => string) | undefined;
}

/** A layer of the transport: sends a request, returns the whole response or throws an `AgentAuthError`. */
export type Send = (request: Request, call: Call) => Promise<BufferedResponse>;

/** An event on the wire, for traces. It never carries a header, a body or a credential; `url` is without its query. */
export type HttpEvent =
  | { type: "request"; method: string; url: string; query: string }
  | { type: "response"; method: string; url: string; status: number; ms: number; requestId: string | undefined }
  | { type: "failure"; method: string; url: string; code: string; message: string; ms: number }
  | { type: "retry"; url: string; attempt: number; waitMs: number; reason: string };

// Services use different names for it; the first one present wins.
const REQUEST_ID_HEADERS = ["x-request-id", "request-id", "x-amzn-requestid", "x-correlation-id", "cf-ray"] as const;

export function readRequestId(headers: Headers): string | undefined {
  for (const name of REQUEST_ID_HEADERS) {
    const value = headers.get(name);
    if (value) return value.slice(0, 200);
  }
  return undefined;
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json[ \t]*(?:;|$)/i;

export function saysJson(headers: Headers): boolean {
  return JSON_TYPE.test(headers.get("content-type") ?? "");
}

export function isEventStream({ headers }: Response): boolean {
  return /^text\/event-stream\b/i.test(headers.get("content-type") ?? "");
}

/**
 * Reads a body to its end as text, but never more than `cap` bytes after decompression.
 *
 * Decoded part by part, because V8 is slow at decoding a whole page as soon as one character in it is not ASCII; and only
 * when all parts are there, because they are outside the heap: many texts that are incomplete are copied by each collection.
 *
 * @param strict whether the body must be well-formed UTF-8, as JSON must; text that is only quoted may be anything
 * @throws `AgentAuthError` `body_too_large`, `bad_content_type` (more than one content coding), `bad_json`, or a
 * network error
 */
export async function readText(response: Response, url: string, cap: number, strict: boolean): Promise<string> {
  const declared = Number(response.headers.get("content-length") ?? Number.NaN);
  const coding = response.headers.get("content-encoding");
  if (coding?.includes(",")) {
    await discardBody(response);
    const message = `the response is compressed more than once (content-encoding ${quote(coding)})`;
    throw badResponse("bad_content_type", message, { response, url });
  }
  if (declared > cap) {
    await discardBody(response);
    throw tooLarge(response, url, cap);
  }
  const parts: Uint8Array[] = [];
  let length = 0;
  const take = (part: Uint8Array) => {
    length += part.byteLength;
    if (length > cap) throw tooLarge(response, url, cap);
    parts.push(part);
  };
  try {
    if (response instanceof HttpResponse) await response.readTo(take);
    else if (response.body !== null) await readByteStream(response.body as ByteStream, take);
  } catch (thrown) {
    throw networkError(thrown, url);
  }
  try {
    const decoder = new TextDecoder("utf-8", { fatal: strict });
    const texts = parts.map((part) => decoder.decode(part, { stream: true }));
    return texts.join("") + decoder.decode();
  } catch (cause) {
    // A response that was cut may end inside a character: as transient as cut JSON.
    const message = "the body is not UTF-8, as JSON must be (RFC 8259 section 8.1)";
    throw badResponse("bad_json", message, { response, url, cause, retryable: true });
  }
}

/** Calls `take` with each part of a stream, to its end or until `take` throws; the stream stays locked. */
async function readByteStream(stream: ByteStream, take: (part: Uint8Array) => void): Promise<void> {
  const reader = stream.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      if (!(part.value instanceof Uint8Array)) throw new TypeError("a part of the body is not a Uint8Array");
      take(part.value);
    }
  } catch (thrown) {
    await reader.cancel().catch(() => undefined);
    throw thrown;
  }
}

/**
 * Parses a JSON body.
 *
 * @throws `AgentAuthError` `bad_json`, retryable, because a cut response is most often a transport fault
 */
export function parseJson(text: string, response: Response, url: string): unknown {
  try {
    return parseAnyJson(text);
  } catch {
    // Quotes neither the parser's message nor the body: both may hold a secret that masking does not recognise when cut.
    throw badResponse("bad_json", `the body is not JSON: ${whyNotJson(text)}`, { response, url, retryable: true });
  }
}

/** The body of an error response, where it is JSON; a body that is not must not hide the error. */
export function parseIfJson(text: string): unknown {
  return orUndefined(() => parseAnyJson(text));
}

function whyNotJson(text: string): string {
  try {
    parseStrictJson(text);
  } catch (why) {
    if (why instanceof StrictJsonError) return why.message;
  }
  return `${text.length} characters that cannot be parsed`;
}

/** Discards a body that is not read, so that its connection does not stay occupied. */
export async function discardBody(response: Response): Promise<void> {
  if (response instanceof HttpResponse) return response.discard();
  await response.body?.cancel().catch(() => undefined);
}

function tooLarge(response: Response, url: string, cap: number): AgentAuthError {
  const message = `the response is larger than ${cap} bytes`;
  const remedy = { action: "configure", option: "pageSize" } as const;
  return badResponse("body_too_large", message, { response, url, hint: "ask for smaller pages", remedy });
}

interface RefusalContext extends Advice {
  response: Response;
  url: string;
  cause?: unknown;
  retryable?: boolean;
}

export function badResponse(code: string, message: string, context: RefusalContext): AgentAuthError {
  const { response, cause, retryable, hint, remedy } = context;
  const url = shownUrl(context.url);
  const details = { status: response.status, requestId: readRequestId(response.headers), url, response };
  return new AgentAuthError(code, `${url}: ${message}`, {
    class: "refused",
    ...details,
    cause,
    retryable,
    hint,
    remedy,
  });
}

/**
 * Parses an OAuth document: of a JSON media type, without duplicate names, not nested too deep.
 *
 * @throws `AgentAuthError` `bad_content_type`, `bad_json`, `bad_envelope`
 */
export function strictObject(reply: BufferedResponse): Record<string, unknown> {
  if (!saysJson(reply.response.headers)) {
    const type = reply.response.headers.get("content-type") ?? "nothing";
    const message = `the response says it is ${type.slice(0, 80)}, not application/json`;
    const hint = /\bhtml\b/i.test(type)
      ? "a proxy or a login page may have answered instead"
      : "the server's owner must send it as application/json (RFC 8259 section 11)";
    throw badResponse("bad_content_type", message, { ...reply, hint });
  }
  let value: unknown;
  try {
    value = parseStrictJson(reply.text);
  } catch (cause) {
    const reason = errorMessage(cause);
    throw badResponse("bad_json", `not acceptable JSON: ${reason}`, { ...reply, cause });
  }
  if (!isJsonObject(value)) throw badResponse("bad_envelope", "the body is not a JSON object", reply);
  return value;
}

/** The response, which must not be compressed: the request did not accept that. */
export function requireUncompressed(reply: BufferedResponse): BufferedResponse {
  const coding = reply.response.headers.get("content-encoding");
  if (coding === null || coding === "identity") return reply;
  throw badResponse("bad_content_type", "the response is compressed although that was not asked for", reply);
}
