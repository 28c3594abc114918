import { HttpFormData } from "./http-form-data.js";
import { TOKEN } from "./http-headers.js";
import { mimeTypeOf, serializeMimeType } from "./mime-type.js";

const LINE = encode("\r\n");
const EMPTY_LINE = encode("\r\n\r\n");
const HEADER = /^[\t ]*([^\t :]+)[\t ]*:[\t ]*([^\0\r\n]*?)[\t ]*$/;
const DISPOSITION = /^form-data(?=[\t ]*(?:;|$))/i;
const PARAMETER = /[\t ]*;[\t ]*([^\t ;=]+)=(?:"([^"]*)"|([^\t ;"]+))|[\t ]*;?$/gy;

/**
 * The form that a body holds.
 *
 * @param given the value of `Content-Type`
 * @throws `TypeError` for a body that is no form of one of the two types, `multipart/form-data` and urlencoded
 */
export function readForm(bytes: Uint8Array<ArrayBuffer>, given: string | null): HttpFormData {
  const type = mimeTypeOf(given);
  if (type?.essence === "multipart/form-data") return parseMultipart(bytes, type.parameters.get("boundary") ?? "");
  if (type?.essence !== "application/x-www-form-urlencoded") {
    throw new TypeError("formData() reads a body of the type multipart/form-data or application/x-www-form-urlencoded");
  }
  const form = new HttpFormData();
  for (const [name, value] of new URLSearchParams(decode(bytes))) form.append(name, value);
  return form;
}

/** The form that a body of the type `multipart/form-data` holds. */
function parseMultipart(bytes: Uint8Array<ArrayBuffer>, boundary: string): HttpFormData {
  const form = new HttpFormData();
  const delimiter = encode(`\r\n--${boundary}`);
  // The first one begins the body.
  let at = delimiter.length - LINE.length;
  if (boundary === "" || indexOf(bytes, delimiter.subarray(LINE.length), 0) !== 0) throw malformed();
  for (;;) {
    const lineEnd = indexOf(bytes, LINE, at);
    const rest = decode(bytes.subarray(at, lineEnd < 0 ? undefined : lineEnd));
    if (/^--[\t ]*$/.test(rest)) return form;
    const headEnd = indexOf(bytes, EMPTY_LINE, lineEnd);
    const valueEnd = indexOf(bytes, delimiter, headEnd + EMPTY_LINE.length);
    if (!/^[\t ]*$/.test(rest) || lineEnd < 0 || headEnd <= lineEnd || valueEnd < 0) throw malformed();
    const { name, filename, type } = parseHead(decode(bytes.subarray(lineEnd + LINE.length, headEnd)));
    const value = bytes.slice(headEnd + EMPTY_LINE.length, valueEnd);
    form.append(name, filename === undefined ? decode(value) : new File([value], filename, { type, lastModified: 0 }));
    at = valueEnd + delimiter.length;
  }
}

/** What the headers of a part say. */
function parseHead(text: string): { name: string; filename: string | undefined; type: string } {
  const headers = new Map<string, string>();
  for (const line of text.split("\r\n")) {
    const [, name = "", value = ""] = HEADER.exec(line) ?? [];
    if (!TOKEN.test(name)) throw malformed();
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
  if (start === undefined || name === undefined || start.length + length < disposition.length) throw malformed();
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

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

function malformed(): TypeError {
  return new TypeError("the body is no multipart/form-data with this boundary");
}
