/** What of a request and of its response is passed on. */
import { HttpHeaders } from "../http/http-headers.js";
import type { Secret } from "../redact.js";
import type { BrokerGrant } from "./policy.js";

/** The name of a request's grant, and the rest of its path: `/` for the server itself. */
export interface ForwardTarget {
  readonly name: string;
  readonly rest: string;
}

/** Headers that belong to one connection (RFC 9110 section 7.6.1), or that the next request sets itself. */
const OF_CONNECTION = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** The broker's own, which a client does not choose: the token, its proof, and a body that can be looked through. */
const OF_BROKER = new Set(["accept-encoding", "authorization", "dpop", "forwarded", "origin", "referer"]);
/** What a server or a gateway may read in place of the body. */
const OF_BODY = /^mcp-(?:method|name|param-.*)$/;
/** A challenge would make a client look for the issuer by itself, and a cookie is a login that outlives the broker. */
const OF_LOGIN = new Set([
  "clear-site-data",
  "dpop-nonce",
  "set-cookie",
  "www-authenticate",
  "x-amzn-remapped-www-authenticate",
]);

/** Reads the path of a request; undefined for one that servers may read in different ways. */
export function readTarget(pathname: string): ForwardTarget | undefined {
  const [, name, rest = ""] = /^\/([^/]+)(\/.*)?$/s.exec(pathname) ?? [];
  if (name === undefined || !isPlain(rest)) return undefined;
  return { name, rest: rest === "" ? "/" : rest };
}

/** Whether a path has no dots, slashes or control characters in a second coat, and no empty segment but its last. */
function isPlain(path: string): boolean {
  const segments = path.split("/").slice(1);
  return segments.every((segment, nth) => {
    if (segment === "") return nth === segments.length - 1;
    // Parameters of a segment, as in `/..;/admin`, are left out by some servers before they read it.
    const [bare = ""] = segment.split(";", 1);
    try {
      const decoded = decodeURIComponent(bare);
      return !/^\.{0,2}$/.test(decoded) && !/[/\\%\p{Cc}]/u.test(decoded);
    } catch {
      return false;
    }
  });
}

/** The address of a request at its server. */
export function addressAt(server: string, rest: string, search: string): string {
  const url = new URL(server);
  if (rest !== "/") url.pathname = `${url.pathname.replace(/\/$/, "")}${rest}`;
  if (search.length > 1) url.search = url.search === "" ? search : `${url.search}&${search.slice(1)}`;
  return url.href;
}

/** Why the policy does not let a request pass; undefined if it does. */
export function refusalOf(
  { methods, paths }: BrokerGrant,
  { method, rest }: { method: string; rest: string },
): "method" | "path" | undefined {
  if (methods !== undefined && !methods.includes(method)) return "method";
  const isBelow = (path: string) => path === "/" || rest === path || rest.startsWith(path.replace(/\/?$/, "/"));
  return paths === undefined || paths.some(isBelow) ? undefined : "path";
}

/**
 * The headers of a request as the server gets them.
 *
 * @param judged those that say what its body says, where the broker has judged the body
 */
export function requestHeaders(headers: Headers, judged?: Readonly<Record<string, string>>): Headers {
  const isOfBody = (name: string) => judged !== undefined && OF_BODY.test(name);
  const passed = withoutOwn(headers, (name) => OF_CONNECTION.has(name) || OF_BROKER.has(name) || isOfBody(name));
  for (const [name, value] of Object.entries(judged ?? {})) passed.set(name, value);
  // A compressed body could carry the token past the mask.
  passed.set("accept-encoding", "identity");
  return passed;
}

/** The headers of a response as the client gets them, without those in which a server returns the token. */
export function responseHeaders(headers: Headers, holdsToken: (value: string) => boolean): Headers {
  return withoutOwn(
    headers,
    (name, value) =>
      OF_CONNECTION.has(name) ||
      OF_LOGIN.has(name) ||
      name === "content-encoding" ||
      holdsToken(value) ||
      holdsToken(name),
  );
}

function withoutOwn(headers: Headers, isOwn: (name: string, value: string) => boolean): Headers {
  const named = new Set((headers.get("connection") ?? "").split(",").map((name) => name.trim().toLowerCase()));
  const passed = new HttpHeaders();
  for (const [name, value] of headers) if (!named.has(name) && !isOwn(name, value)) passed.append(name, value);
  return passed;
}

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
