import { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import { networkError } from "./network-error.js";
import { requestIdOf, shownUrl } from "./reply.js";
import { parseStrictJson, StrictJsonError } from "./strict-json.js";

const strictUtf8 = new TextDecoder("utf-8", { fatal: true });
const lenientUtf8 = new TextDecoder("utf-8");
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json[ \t]*(?:;|$)/i;

/** Whether an answer says that its body is JSON. */
export function saysJson(headers: Headers): boolean {
  return JSON_TYPE.test(headers.get("content-type") ?? "");
}

/**
 * Reads a body to its end, but never more than `cap` bytes after decompression.
 *
 * @throws `AgentAuthError` `body_too_large`, `bad_content_type` (more than one content coding), or a network error
 */
export async function readBytes(response: Response, url: string, cap: number): Promise<Uint8Array> {
  const declared = Number(response.headers.get("content-length") ?? Number.NaN);
  const coding = response.headers.get("content-encoding");
  if (coding?.includes(",")) {
    await cancel(response);
    throw refusal("bad_content_type", `the answer is compressed more than once (content-encoding ${quote(coding)})`, {
      response,
      url,
    });
  }
  if (declared > cap) {
    await cancel(response);
    throw tooLarge(response, url, cap);
  }
  try {
    // A declared length is enforced by HTTP itself, so the quick way is safe where nothing is decompressed.
    if (coding === null && declared >= 0) {
      const bytes = new Uint8Array(await response.arrayBuffer());
      if (bytes.byteLength > cap) throw tooLarge(response, url, cap);
      return bytes;
    }
    return await readStream(response, url, cap);
  } catch (thrown) {
    throw networkError(thrown, url);
  }
}

async function readStream(response: Response, url: string, cap: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = response.body?.getReader();
  for (;;) {
    const part = await reader?.read();
    if (part === undefined || part.done) break;
    length += part.value.byteLength;
    if (length > cap) {
      await reader?.cancel().catch(() => undefined);
      throw tooLarge(response, url, cap);
    }
    parts.push(part.value);
  }
  const only = parts[0];
  if (parts.length === 1 && only) return only;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.byteLength;
  }
  return whole;
}

/**
 * The text of a body. JSON must be well-formed UTF-8; text that is only quoted in an error may be anything.
 *
 * @throws `AgentAuthError` `bad_json`
 */
export function decodeText(bytes: Uint8Array, response: Response, url: string, strict: boolean): string {
  if (!strict) return lenientUtf8.decode(bytes);
  try {
    return strictUtf8.decode(bytes);
  } catch (cause) {
    throw refusal("bad_json", "the body is not UTF-8, as JSON must be (RFC 8259 section 8.1)", {
      response,
      url,
      cause,
      // An answer that was cut may end inside a character: no less passing than cut JSON.
      retryable: true,
    });
  }
}

/**
 * Parses a JSON body.
 *
 * @throws `AgentAuthError` `bad_json`, retryable, since a cut answer is most often an accident on the way
 */
export function parseJson(text: string, response: Response, url: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Neither the parser's words nor a part of the body: both may quote a secret that the cut left bare.
    throw refusal("bad_json", `the body is not JSON: ${whyNotJson(text)}`, { response, url, retryable: true });
  }
}

function whyNotJson(text: string): string {
  try {
    parseStrictJson(text);
  } catch (why) {
    if (why instanceof StrictJsonError) return why.message;
  }
  return `${text.length} characters that cannot be parsed`;
}

/** Lets go of a body that nobody will read, so that its connection does not stay occupied. */
export async function cancel(response: Response): Promise<void> {
  await response.body?.cancel().catch(() => undefined);
}

function tooLarge(response: Response, url: string, cap: number): AgentAuthError {
  return refusal("body_too_large", `the answer is larger than ${cap} bytes`, {
    response,
    url,
    hint: "ask for smaller pages",
  });
}

interface Refusal {
  response: Response;
  url: string;
  cause?: unknown;
  retryable?: boolean;
  hint?: string;
}

/** An error of class `refused` about one answer. */
export function refusal(code: string, message: string, about: Refusal): AgentAuthError {
  return new AgentAuthError(code, `${shownUrl(about.url)}: ${message}`, {
    class: "refused",
    status: about.response.status,
    requestId: requestIdOf(about.response.headers),
    url: shownUrl(about.url),
    response: about.response,
    cause: about.cause,
    retryable: about.retryable,
    hint: about.hint,
  });
}
