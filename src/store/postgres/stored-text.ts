const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** The UTF-8 bytes of a name in hexadecimal: a name may hold U+0000, and every client passes text on unchanged. */
export function toHex(name: string): string {
  let hex = "";
  for (const byte of new TextEncoder().encode(name)) hex += HEX[byte];
  return hex;
}

/** The name that {@link toHex} wrote. */
export function fromHex(hex: string): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(
    Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16)),
  );
}

/** A text that PostgreSQL can store: its `text` and its `jsonb` cannot hold U+0000. Sealed records have no `%`. */
export function toText(value: string): string {
  return value.replaceAll("%", "%25").replaceAll("\0", "%00");
}

/** The text that {@link toText} wrote. */
export function fromText(text: string): string {
  return text.replaceAll("%00", "\0").replaceAll("%25", "%");
}
