/** Answers about tokens, by the tokens' digests: no token is in it. What is used least makes room. */
export class TokenCache<T> {
  readonly #max: number;
  readonly #entries = new Map<string, { value: T; until: number }>();

  /** @param max how many answers are kept at most */
  constructor(max: number) {
    this.#max = max;
  }

  /** How many answers are kept. */
  get size(): number {
    return this.#entries.size;
  }

  /** The answer under a digest while it is good. @param now milliseconds on the clock that `put` was told by */
  get(digest: string, now: number): T | undefined {
    const entry = this.#entries.get(digest);
    if (!entry) return undefined;
    this.#entries.delete(digest);
    if (now >= entry.until) return undefined;
    this.#entries.set(digest, entry);
    return entry.value;
  }

  /** Keeps an answer until a time. */
  put(digest: string, value: T, until: number): void {
    this.#entries.delete(digest);
    const oldest = this.#entries.keys().next();
    if (this.#entries.size >= this.#max && !oldest.done) this.#entries.delete(oldest.value);
    this.#entries.set(digest, { value, until });
  }
}

/** The SHA-256 of a token, in hexadecimal. */
export async function digestOf(token: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token)));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
