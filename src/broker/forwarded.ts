/** What of a request and of its response is passed on. */
import { isPathWithin } from "../http/address.js";
import { HttpHeaders } from "../http/http-headers.js";

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
/** What a client says to a server, apart from its body. The rest may be read as a method, a path or a user. */
const PASSED = new Set([
  "accept",
  "accept-language",
  "content-type",
  "idempotency-key",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-unmodified-since",
  "last-event-id",
  "mcp-protocol-version",
  "mcp-session-id",
  "traceparent",
  "user-agent",
]);
/** The broker's own: the token, its proof, and a body that can be looked through as a whole. */
const OF_BROKER = new Set(["accept-encoding", "authorization", "dpop", "if-range", "range"]);
/** What a server or a gateway may read in place of the body. */
const OF_BODY = /^mcp-(?:method|name|param-.*)$/;
/** A challenge would make a client look for the issuer by itself, and a cookie is a login that outlives the broker. */
const LOGIN_HEADERS = new Set([
  "clear-site-data",
  "dpop-nonce",
  "set-cookie",
  "www-authenticate",
  "x-amzn-remapped-www-authenticate",
]);

/** Reads the path of a request. Without a name it is empty, which no grant has. */
export function readTarget(pathname: string): ForwardTarget {
  const [, name = "", rest = "/"] = /^\/([^/]*)(\/.*)?$/s.exec(pathname) ?? [];
  return { name, rest };
}

/**
 * Whether a path has no dots, slashes or control characters in a second coat, and no empty segment but its last. Servers
 * read percent signs, compatible characters (NFKC) and the parameters of a segment, as in `/..;/admin`, in their own order.
 */
export function isPlain(path: string): boolean {
  const segments = path.split("/").slice(1);
  return segments.every((segment, nth) => {
    if (segment === "") return nth === segments.length - 1;
    try {
      const decoded = decodeURIComponent(segment).normalize("NFKC");
      const [bare = "", ...parameters] = decoded.replace(INVISIBLE, "").split(";");
      return !/[/\\%\p{Cc}]/u.test(decoded) && !isDots(bare) && !parameters.some((text) => text !== "" && isDots(text));
    } catch {
      return false;
    }
  });
}

const INVISIBLE = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;

/** Some systems leave out blanks and dots at the end of a name. */
function isDots(text: string): boolean {
  return /^[.\s]*$/.test(text);
}

/**
 * The address of a request at its server; undefined for a query that gives a name of the server's own address again: servers
 * take the first, the last, or both.
 */
export function addressAt(server: string, rest: string, search: string): string | undefined {
  const url = new URL(server);
  if (rest !== "/") url.pathname = `${url.pathname.replace(/\/$/, "")}${rest}`;
  if (search.length <= 1) return url.href;
  if (url.search.length > 1) {
    const own = new Set(namesIn(url.search));
    if (namesIn(search).some((name) => own.has(name))) return undefined;
    url.search = `${url.search}&${search.slice(1)}`;
  } else url.search = search;
  return url.href;
}

/** The names in a query as lenient servers read them: `;` separates too, `a[]` and `A.b` are `a`, `a.b` is `a_b` and `a-b`. */
function namesIn(search: string): string[] {
  const pairs = search.slice(1).split(/[&;]/);
  return pairs.flatMap((pair) => {
    let name = pair.split("=", 1)[0] ?? "";
    for (let nth = 0; nth < 3 && name.includes("%"); nth++) name = decoded(name);
    const text = name.normalize("NFKC").toLowerCase().replace(INVISIBLE, "").trim();
    return [/(?<=.)\[/, /(?<=.)[[.]/].map((end) => (text.split(end, 1)[0] ?? "").replace(/[^\p{L}\p{N}]/gu, ""));
  });
}

/** A text without percent signs, as far as it can be read. */
function decoded(text: string): string {
  return text.replace(/(?:%[\da-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return "";
    }
  });
}

/** Why the policy does not let a request pass; undefined if it does. */
export function refusalOf(
  { methods, paths }: { readonly methods?: readonly string[]; readonly paths?: readonly string[] },
  { method, rest }: { method: string; rest: string },
): "method" | "path" | undefined {
  if (methods !== undefined && !methods.includes(method)) return "method";
  return paths?.every((path) => !isPathWithin(rest, path)) ? "path" : undefined;
}

/** Whether a grant may have a header passed on that is not one of {@link requestHeaders}. */
export function canBePassed(name: string): boolean {
  return !OF_CONNECTION.has(name) && !OF_BROKER.has(name) && !OF_BODY.test(name);
}

/**
 * The headers of a request as the server gets them.
 *
 * @param more the headers that the grant names
 * @param judged those that say what its body says, where the broker has judged the body
 */
export function requestHeaders(
  headers: Headers,
  more: ReadonlySet<string>,
  judged?: Readonly<Record<string, string>>,
): Headers {
  const isPassed = (name: string) => PASSED.has(name) || more.has(name) || (judged === undefined && OF_BODY.test(name));
  const passed = withoutOwn(headers, (name) => !isPassed(name));
  for (const [name, value] of Object.entries(judged ?? {})) passed.set(name, value);
  // A compressed body could carry the token past the mask.
  passed.set("accept-encoding", "identity");
  return passed;
}

/** The headers of a response as the client gets them, without those in which a server returns a token. */
export function responseHeaders(headers: Headers, holdsToken: (text: string) => boolean): Headers {
  const passed = withoutOwn(
    headers,
    (name) => OF_CONNECTION.has(name) || LOGIN_HEADERS.has(name) || name === "content-encoding",
  );
  // Most responses hold none.
  if (!holdsToken([...passed].flat().join("\n"))) return passed;
  return withoutOwn(passed, (name, value) => holdsToken(value) || holdsToken(name));
}

function withoutOwn(headers: Headers, isOwn: (name: string, value: string) => boolean): Headers {
  const named = new Set((headers.get("connection") ?? "").split(",").map((name) => name.trim().toLowerCase()));
  const passed = new HttpHeaders();
  for (const [name, value] of headers) if (!named.has(name) && !isOwn(name, value)) passed.append(name, value);
  return passed;
}
