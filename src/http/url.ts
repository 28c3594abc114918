/**
 * Reads an absolute URL, or one relative to a base.
 *
 * No module uses `URL.canParse`: in optimised code, Node.js 20 returns `false` for a host with a letter such as `ü`.
 *
 * @returns undefined for any other value
 */
export function parseUrl(value: unknown, base?: URL): URL | undefined {
  if (typeof value !== "string") return undefined;
  try {
    return new URL(value, base);
  } catch {
    return undefined;
  }
}

/**
 * Text with its percent-encoded characters decoded; a "%" that encodes nothing stays as it is, as in the URL standard.
 */
export function percentDecoded(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (encoded) => {
    try {
      return decodeURIComponent(encoded);
    } catch {
      return encoded;
    }
  });
}
