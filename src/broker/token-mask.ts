import type { Secret } from "../redact.js";

/** The tokens that a server got last. More are sent while a response arrives only if it takes many refreshes. */
const KEPT = 8;
const MASK = 0x2a;

/**
 * Hides the tokens of one server in what it answers, byte by byte. A server that wants to hand out its token can write it in
 * another way; one that echoes the headers of a request does not.
 */
export class TokenMask {
  readonly #tokens = new Map<string, Buffer>();

  /** A token that was sent. */
  add(token: Secret): void {
    const text = token.reveal();
    if (this.#tokens.has(text)) return;
    this.#tokens.set(text, Buffer.from(text));
    const [oldest] = this.#tokens.keys();
    if (this.#tokens.size > KEPT && oldest !== undefined) this.#tokens.delete(oldest);
  }

  /** Whether a text contains a token, as it is or with percent signs. */
  isIn(text: string): boolean {
    const plain = text.includes("%")
      ? text.replace(/%([\da-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
      : text;
    // Header names are lower-case here.
    return [...this.#tokens.keys()].some((token) => {
      const folded = token.toLowerCase();
      return plain.includes(token) || text.includes(token) || text.includes(folded);
    });
  }

  /** The bytes with asterisks for tokens, a part at a time; what may be the beginning of a token waits for the next part. */
  over(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    let held = Buffer.alloc(0);
    return body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform: (part, controller) => {
          const joined = Buffer.concat([held, part]);
          this.#hide(joined);
          const ready = joined.length - this.#beginning(joined);
          held = joined.subarray(ready);
          controller.enqueue(joined.subarray(0, ready));
        },
        flush: (controller) => controller.enqueue(held),
      }),
    );
  }

  #hide(bytes: Buffer): void {
    for (const token of this.#tokens.values()) {
      for (let at = bytes.indexOf(token); at !== -1; at = bytes.indexOf(token, at))
        bytes.fill(MASK, at, at + token.length);
    }
  }

  /** The length of the longest end that is the beginning of a token. */
  #beginning(bytes: Buffer): number {
    let longest = 0;
    for (const token of this.#tokens.values()) {
      const [first = 0] = token;
      const from = Math.max(0, bytes.length - token.length + 1);
      for (let at = bytes.indexOf(first, from); at !== -1; at = bytes.indexOf(first, at + 1)) {
        const length = bytes.length - at;
        if (token.compare(bytes, at, bytes.length, 0, length) === 0) longest = Math.max(longest, length);
      }
    }
    return longest;
  }
}
