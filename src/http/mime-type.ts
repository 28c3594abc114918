import { TOKEN } from "./http-headers.js";

/** A media type (MIME Sniffing Standard, MIME type). */
export interface MimeType {
  /** Type and subtype in small letters. */
  readonly essence: string;
  /** By name in small letters. */
  readonly parameters: Map<string, string>;
}

const ESSENCE = /^[\t\n\r ]*([^/;]+)\/([^/;]*?)[\t\n\r ]*(?=;|$)/;
const PARAMETER = /;[\t\n\r ]*([^;=]*)(?:=(?:"((?:[^"\\]|\\[\s\S])*)(?:"|\\?$)[^;]*|([^;]*)))?/g;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** One of several values; a comma inside quotes separates none. */
const ONE_OF_SEVERAL = /(?:[^",]|"(?:[^"\\]|\\[\s\S])*(?:"|\\?$))+/g;

/**
 * The media type that a `content-type` declares (Fetch Standard, extract a MIME type): the last of several, with the
 * charset of one before it that has the same essence.
 */
export function mimeTypeOf(header: string | null): MimeType | undefined {
  let found: MimeType | undefined;
  for (const [value] of (header ?? "").matchAll(ONE_OF_SEVERAL)) {
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
  for (const [, name = "", quoted, plain] of text.slice(start.length).matchAll(PARAMETER)) {
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
