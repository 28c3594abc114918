import { HttpFormData } from "./http-form-data.js";
import { TOKEN } from "./http-headers.js";

/** A media type (MIME Sniffing Standard, MIME type). */
export interface MimeType {
  /** Type and subtype in small letters. */
  readonly essence: string;
  /** By name in small letters. */
  readonly parameters: Map<string, string>;
}

const ESSENCE = /^[\t\n\r ]*([^/;]+)\/([^/;]*?)[\t\n\r ]*(?=;|$)/;
const MIME_PARAMETER = /;[\t\n\r ]*([^;=]*)(?:=(?:"((?:[^"\\]|\\[\s\S])*)(?:"|\\?$)[^;]*|([^;]*)))?/g;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** One of several values; a comma inside quotes separates none. */
const ONE_OF_SEVERAL = /(?:[^",]|"(?:[^"\\]|\\[\s\S])*(?:"|\\?$))+/g;

/**
 * The media type that a `content-type` declares (Fetch Standard, extract a MIME type): the last of several, with the
 * charset of one before it that has the same essence.
 */
export function mimeTypeOf(header: string | null): MimeType | undefined {
  let found: MimeType | undefined;
  for (const [value] of header?.matchAll(ONE_OF_SEVERAL) ?? []) {
    const parsed = parseMimeType(value);
    if (parsed === undefined || parsed.essence === "*/*") continue;
    const charset = found?.essence === parsed.essence ? found.parameters.get("charset") : undefined;
    if (charset !== undefined && !parsed.parameters.has("charset")) parsed.parameters.set("charset", charset);
    found = parsed;
  }
  return found;
}

function parseMimeType(text: string): MimeType | undefined {
  const [start = "", type = "", subtype = ""] = ESSENCE.exec(text) ?? [];
  if (!TOKEN.test(type) || !TOKEN.test(subtype)) return undefined;
  const parameters = new Map<string, string>();
  for (const [, name = "", quoted, plain] of text.slice(start.length).matchAll(MIME_PARAMETER)) {
    const value = quoted?.replace(/\\([\s\S])/g, "$1") ?? (plain?.replace(/[\t\n\r ]+$/, "") || undefined);
    const key = name.toLowerCase();
    if (value !== undefined && TOKEN.test(key) && VALUE.test(value) && !parameters.has(key)) parameters.set(key, value);
  }
  return { essence: `${type}/${subtype}`.toLowerCase(), parameters };
}

/** A media type as text; empty for none. */
export function serializeMimeType(type: MimeType | undefined): string {
  const parameters = [...(type?.parameters ?? [])].map(
    ([name, value]) => `;${name}=${TOKEN.test(value) ? value : `"${value.replace(/["\\]/g, "\\$&")}"`}`,
  );
  return `${type?.essence ?? ""}${parameters.join("")}`;
}

const UTF8 = new TextEncoder();
const LINE = UTF8.encode("\r\n");
const EMPTY_LINE = UTF8.encode("\r\n\r\n");
const HEADER = /^[\t ]*([^\t :]+)[\t ]*:[\t ]*([^\0\r\n]*?)[\t ]*$/;
const DISPOSITION = /^form-data(?=[\t ]*(?:;|$))/i;
const PARAMETER = /[\t ]*;[\t ]*([^\t ;=]+)=(?:"([^"]*)"|([^\t ;"]+))|[\t ]*;?$/gy;

/** A form as a body of the type `multipart/form-data` (HTML Standard, multipart/form-data encoding algorithm). */
export function serializeForm(form: FormData): { source: Blob; type: string } {
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

/**
 * The form that a body holds.
 *
 * @param given the value of `Content-Type`
 * @throws `TypeError` for a body that is no form of one of the two types, `multipart/form-data` and urlencoded
 */
export function readFormBody(bytes: Uint8Array<ArrayBuffer>, given: string | null): HttpFormData {
  const type = mimeTypeOf(given);
  if (type?.essence === "multipart/form-data") return parseForm(bytes, type.parameters.get("boundary") ?? "");
  if (type?.essence !== "application/x-www-form-urlencoded") {
    throw new TypeError("formData() reads a body of the type multipart/form-data or application/x-www-form-urlencoded");
  }
  const form = new HttpFormData();
  for (const [name, value] of new URLSearchParams(decodeBytes(bytes))) form.append(name, value);
  return form;
}

function parseForm(bytes: Uint8Array<ArrayBuffer>, boundary: string): HttpFormData {
  const form = new HttpFormData();
  const delimiter = UTF8.encode(`\r\n--${boundary}`);
  // The first one begins the body.
  let at = delimiter.length - LINE.length;
  if (boundary === "" || indexOf(bytes, delimiter.subarray(LINE.length), 0) !== 0) throw malformedFormError();
  for (;;) {
    const lineEnd = indexOf(bytes, LINE, at);
    const rest = decodeBytes(bytes.subarray(at, lineEnd < 0 ? undefined : lineEnd));
    if (/^--[\t ]*$/.test(rest)) return form;
    const headEnd = indexOf(bytes, EMPTY_LINE, lineEnd);
    const valueEnd = indexOf(bytes, delimiter, headEnd + EMPTY_LINE.length);
    if (!/^[\t ]*$/.test(rest) || lineEnd < 0 || headEnd <= lineEnd || valueEnd < 0) throw malformedFormError();
    const { name, filename, type } = parseHead(decodeBytes(bytes.subarray(lineEnd + LINE.length, headEnd)));
    const value = bytes.slice(headEnd + EMPTY_LINE.length, valueEnd);
    form.append(
      name,
      filename === undefined ? decodeBytes(value) : new File([value], filename, { type, lastModified: 0 }),
    );
    at = valueEnd + delimiter.length;
  }
}

/** What the headers of a part say. */
function parseHead(text: string): { name: string; filename: string | undefined; type: string } {
  const headers = new Map<string, string>();
  for (const line of text.split("\r\n")) {
    const [, name = "", value = ""] = HEADER.exec(line) ?? [];
    if (!TOKEN.test(name)) throw malformedFormError();
    headers.set(name.toLowerCase(), value);
  }
  const disposition = headers.get("content-disposition") ?? "";
  const [start] = DISPOSITION.exec(disposition) ?? [];
  const parameters = new Map<string, string>();
  let length = 0;
  for (const [matched, name, quoted, plain] of disposition.slice(start?.length).matchAll(PARAMETER)) {
    length += matched.length;
    if (name !== undefined) parameters.set(name.toLowerCase(), quoted ?? plain ?? "");
  }
  const name = parameters.get("name");
  if (start === undefined || name === undefined || start.length + length < disposition.length)
    throw malformedFormError();
  const type = headers.get("content-type");
  return {
    name,
    filename: parameters.get("filename"),
    type: type === undefined ? "text/plain" : serializeMimeType(mimeTypeOf(type)),
  };
}

function indexOf(bytes: Uint8Array, wanted: Uint8Array, from: number): number {
  const [first = 0] = wanted;
  for (let at = bytes.indexOf(first, from); at >= 0; at = bytes.indexOf(first, at + 1)) {
    if (wanted.every((byte, index) => bytes[at + index] === byte)) return at;
  }
  return -1;
}

function decodeBytes(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

function malformedFormError(): TypeError {
  return new TypeError("the body is no multipart/form-data with this boundary");
}
