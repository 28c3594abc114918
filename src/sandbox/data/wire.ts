/**
 * JSON text as the bytes that go over the wire, one character a byte. Pages are joined from thousands of pieces, and
 * an engine joins and copies such strings several times faster than those that hold characters beyond U+00FF.
 */

/** The UTF-8 bytes of a text, one character a byte. */
export function toWire(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}

/** The text that {@link toWire} was given. */
export function fromWire(wire: string): string {
  return wireBytes(wire).toString("utf8");
}

/** The bytes themselves. */
export function wireBytes(wire: string): Buffer {
  return Buffer.from(wire, "latin1");
}
