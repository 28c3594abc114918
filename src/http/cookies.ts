import { isPathWithin } from "./address.js";
import { Lru } from "./lru.js";

/** The bounds of a jar (RFC 6265 section 6.1 asks for the length). */
const MAX_COOKIES = 20;
const MAX_LENGTH = 4096;
const MAX_JARS = 1000;
const COOKIE = /^([^=;\s]+)=([^;]*)/;

/**
 * The cookies of one origin for one login. Load balancers name the node of a session in a cookie: without it, each request
 * may reach a node that does not know the session. They are kept in memory alone, and end with the program.
 */
export class Cookies {
  readonly #cookies = new Map<string, { value: string; path: string; until: number }>();

  /** The `Cookie` header of a request; undefined for none. @param own that of the caller, whose cookies come first */
  header(url: string, own: string | null): string | undefined {
    const { pathname } = new URL(url);
    const names = new Set(own?.split(";").map((pair) => pair.split("=", 1)[0]?.trim()));
    const added = [...this.#cookies].filter(
      ([name, { path, until }]) => until > Date.now() && !names.has(name) && isPathWithin(pathname, path),
    );
    const pairs = added.map(([name, { value }]) => `${name}=${value}`);
    return [...(own ? [own] : []), ...pairs].join("; ") || undefined;
  }

  learn(headers: Headers): void {
    for (const line of headers.getSetCookie?.() ?? []) {
      const [, name, value = ""] = COOKIE.exec(line) ?? [];
      if (name === undefined || name.length + value.length > MAX_LENGTH) continue;
      this.#cookies.delete(name);
      const path = /;\s*path=(\/[^;]*)/i.exec(line)?.[1]?.trim() ?? "/";
      const until = parseExpiry(line);
      if (until > Date.now()) this.#cookies.set(name, { value: value.trim(), path, until });
      const [oldest] = this.#cookies.keys();
      if (this.#cookies.size > MAX_COOKIES && oldest !== undefined) this.#cookies.delete(oldest);
    }
  }
}

/** Unix milliseconds until which a cookie is sent (RFC 6265 section 5.3). */
function parseExpiry(line: string): number {
  const maxAge = /;\s*max-age=(-?\d+)/i.exec(line)?.[1];
  if (maxAge !== undefined) return Date.now() + Number(maxAge) * 1000;
  const expires = Date.parse(/;\s*expires=([^;]*)/i.exec(line)?.[1] ?? "");
  return Number.isNaN(expires) ? Number.POSITIVE_INFINITY : expires;
}

/** The cookies of many logins, none of which gets those of another. */
export class CookieJars {
  readonly #jars = new Lru<Cookies>(MAX_JARS);

  /** The jar with a name, which says whose cookies they are, and of which origin. */
  get(...name: readonly unknown[]): Cookies {
    const key = JSON.stringify(name);
    const known = this.#jars.get(key);
    if (known !== undefined) return known;
    const jar = new Cookies();
    this.#jars.set(key, jar);
    return jar;
  }
}
