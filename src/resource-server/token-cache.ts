import { toBase64url } from "../http/base64url.js";

/** Results about tokens, by their digests: it holds no token. Evicts the least recently used. */
export class TokenCache<T> {
  readonly #max: number;
  readonly #entries = new Map<string, { value: T; until: number }>();

  /** @param max the maximum number of entries */
  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The entry of a digest while it is valid. @param now milliseconds on the same clock as `until` of `put` */
  get(digest: string, now: number): T | undefined {
    const entry = this.#entries.get(digest);
    if (!entry) return undefined;
    this.#entries.delete(digest);
    if (now >= entry.until) return undefined;
    this.#entries.set(digest, entry);
    return entry.value;
  }

  /** Stores an entry until a time. */
  put(digest: string, value: T, until: number): void {
    this.#entries.delete(digest);
    const oldest = this.#entries.keys().next();
    if (this.#entries.size >= this.#max && !oldest.done) this.#entries.delete(oldest.value);
    this.#entries.set(digest, { value, until });
  }
}

/** `node:crypto`, whose hash costs a fortieth of that of Web Crypto, where there is one. */
interface WithNodeCrypto {
  process?: { getBuiltinModule?: (name: "node:crypto") => { hash?: Hash } | undefined };
}
type Hash = (algorithm: "sha256", text: string, encoding: "base64url") => string;

/** The SHA-256 of a token in base64url: the `ath` of its proofs (RFC 9449 section 4.2). */
export async function digestOf(token: string): Promise<string> {
  const node = (globalThis as WithNodeCrypto).process?.getBuiltinModule?.("node:crypto");
  if (node?.hash) return node.hash("sha256", token, "base64url");
  return toBase64url(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token))));
}
