import type { BufferedResponse } from "../../http/buffered-response.js";

const MAX_LIFE_S = 24 * 60 * 60;
const MAX_DOCUMENTS = 100;

/** In-memory cache of metadata documents, each for as long as its headers allow (RFC 9111), at most a day. */
export class DocumentCache {
  readonly #documents = new Map<string, { reply: BufferedResponse; until: number }>();

  /** The document of an address if it is fresh. @param now Unix milliseconds */
  get(url: string, now: number): BufferedResponse | undefined {
    const cached = this.#documents.get(url);
    return cached && now < cached.until ? cached.reply : undefined;
  }

  /** Stores a response if its headers allow it, and drops the previous one in any case. */
  put(url: string, reply: BufferedResponse, now: number): void {
    this.#documents.delete(url);
    const life = reply.response.ok ? computeFreshSeconds(reply.response.headers) : 0;
    if (life <= 0) return;
    const oldest = this.#documents.keys().next();
    if (this.#documents.size >= MAX_DOCUMENTS && !oldest.done) this.#documents.delete(oldest.value);
    this.#documents.set(url, { reply, until: now + life * 1000 });
  }

  /** Drops everything: the documents of a failed login must not be used for the next one. */
  clear(): void {
    this.#documents.clear();
  }
}

/** Seconds that a response is fresh: `max-age` less `Age`; 0 without `max-age` (no heuristics). */
function computeFreshSeconds(headers: Headers): number {
  const directives = (headers.get("cache-control") ?? "").toLowerCase().split(",");
  const names = directives.map((directive) => directive.trim());
  if (names.some((name) => /^(?:no-store|no-cache)\b/.test(name))) return 0;
  const ages = names.flatMap((name) => /^max-age="?(\d{1,10})"?$/.exec(name)?.[1] ?? []);
  // If two values differ, the shorter one is safe.
  const maxAge = ages.length === 0 ? 0 : Math.min(...ages.map(Number));
  const age = Number(headers.get("age") ?? 0);
  return Math.min(MAX_LIFE_S, maxAge) - (Number.isFinite(age) && age > 0 ? age : 0);
}
