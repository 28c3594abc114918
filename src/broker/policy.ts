import { orUndefined, usageError } from "../errors.js";
import { isLoopbackHost, isPathWithin } from "../http/address.js";
import { HttpHeaders, TOKEN } from "../http/http-message.js";
import { isJsonObject, type JsonObject } from "../http/strict-json.js";
import { escapeText, quote, wholeCharacters } from "../redact.js";

/** What one name stands for, and what may be requested there. */
export interface BrokerGrant {
  /** The URL of the MCP server, or of an API that takes its tokens. */
  readonly server: string;
  /** The account whose login is used, as at `--account-hint`. Default: the profile's. */
  readonly account?: string;
  /** The scopes that the token must have, separated by blanks. */
  readonly scope?: string;
  /** The HTTP methods that are passed on. Default: all. */
  readonly methods?: readonly string[];
  /** The paths that are passed on, each with all below it; `/` is the URL of the server. Default: `/`, all. */
  readonly paths?: readonly string[];
  /**
   * The names of headers that are passed on beside those that MCP and HTTP caches need, such as `x-api-version`. A server may
   * read one as another method, path or user.
   */
  readonly headers?: readonly string[];
  /** The tools that are listed and called, as globs: `*` stands for any text. Default: all. */
  readonly tools?: readonly string[];
  /** The tools that are neither listed nor called, as globs; they win over `tools`. */
  readonly hideTools?: readonly string[];
  /** Requests that one client may send within a minute. Default: no limit. */
  readonly requestsPerMinute?: number;
  /** When the name ends (RFC 3339); after that it does not exist. */
  readonly until?: string;
}

/** Who may use the broker: one listener each. */
export interface BrokerClient {
  /**
   * `unix:<path>`, `127.0.0.1:<port>`, `[::1]:<port>`, or on Windows `pipe:<name>`; the port 0 is a free one. `systemd:<name>` is
   * a Unix socket that the parent process passes, listening (`LISTEN_FDS`).
   */
  readonly listen: string;
  /** The names that this client may use. Default: all. */
  readonly grants?: readonly string[];
}

/** What a broker passes on, and for whom. */
export interface BrokerPolicy {
  /** The servers by the names that clients use. */
  readonly grants: Readonly<Record<string, BrokerGrant>>;
  /** The clients by the names that events have. */
  readonly clients: Readonly<Record<string, BrokerClient>>;
}

const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const METHOD = /^[A-Z]{1,32}$/;
const NEVER_SENT = new Set(["CONNECT", "TRACE", "TRACK"]);
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

/** How each field of a grant is checked: the text says what is wrong with a value. */
const GRANT_FIELDS: Record<keyof BrokerGrant, (value: unknown) => string | undefined> = {
  server: serverProblem,
  account: textProblem,
  scope: textProblem,
  methods: listCheck((item) => METHOD.test(item) && !NEVER_SENT.has(item), 'of HTTP methods such as "POST"'),
  paths: listCheck((item) => /^\/[^?#\\]*$/.test(item), 'of paths that begin with "/"'),
  headers: listCheck(
    (item) => TOKEN.test(item) && canBePassed(item.toLowerCase()),
    "of headers that can be passed on, such as x-api-version",
  ),
  tools: listCheck((item) => item !== "", 'of globs such as "read_*"'),
  hideTools: listCheck((item) => item !== "", 'of globs such as "delete_*"'),
  requestsPerMinute: (value) =>
    Number.isSafeInteger(value) && Number(value) >= 1 ? undefined : "is not a whole number of at least 1",
  until: (value) =>
    typeof value === "string" && DATE_TIME.test(value) && !Number.isNaN(Date.parse(value))
      ? undefined
      : "is not a time such as 2026-12-31T23:59:59Z",
};
const CLIENT_FIELDS: Record<keyof BrokerClient, (value: unknown) => string | undefined> = {
  listen: (value) => (typeof value === "string" ? listenProblem(value) : "is not a text"),
  grants: listCheck((item) => item !== "", "of names"),
};

/**
 * Checks a policy, such as the content of a file.
 *
 * @param from where it is from, for messages
 * @throws `AgentAuthError` `usage` that names the field and the value
 */
export function checkPolicy(value: unknown, from: string): BrokerPolicy {
  const wrong = (what: string) => usageError(`${from}: ${what}`);
  const object = (member: unknown, name: string): JsonObject => {
    if (isJsonObject(member)) return member;
    throw wrong(`${name} is not an object`);
  };
  const checkFields = (member: JsonObject, name: string, fields: Record<string, (value: unknown) => unknown>) => {
    for (const [field, content] of Object.entries(member)) {
      const check = Object.hasOwn(fields, field) ? fields[field] : undefined;
      if (check === undefined)
        throw wrong(`${name} has the unknown field ${quote(field)}; its fields are ${Object.keys(fields).join(", ")}`);
      const problem = check(content);
      if (problem !== undefined) throw wrong(`${name}.${field} ${showValue(content)} ${problem}`);
    }
  };
  const named = (members: JsonObject, kind: string) => {
    for (const name of Object.keys(members)) {
      if (!NAME.test(name))
        throw wrong(
          `${kind} has the name ${quote(name)}: names are lower-case letters, digits, "-" and "_", at most 64`,
        );
    }
    return Object.entries(members);
  };
  const policy = object(value, "the policy");
  checkFields(policy, "the policy", { $schema: textProblem, grants: () => undefined, clients: () => undefined });
  const grants = object(policy["grants"], "grants");
  const clients = object(policy["clients"], "clients");
  for (const [name, member] of named(grants, "grants")) {
    checkFields(object(member, `grants.${name}`), `grants.${name}`, GRANT_FIELDS);
    if (!isJsonObject(member) || member["server"] === undefined) throw wrong(`grants.${name} has no server`);
  }
  for (const [name, member] of named(clients, "clients")) {
    checkFields(object(member, `clients.${name}`), `clients.${name}`, CLIENT_FIELDS);
    if (!isJsonObject(member) || member["listen"] === undefined) throw wrong(`clients.${name} has no listen`);
    const unknown = ((member["grants"] ?? []) as string[]).find((one) => !Object.hasOwn(grants, one));
    if (unknown !== undefined) throw wrong(`clients.${name}.grants names ${quote(unknown)}, which is not in grants`);
  }
  if (Object.keys(grants).length === 0) throw wrong("grants is empty");
  if (Object.keys(clients).length === 0) throw wrong("clients is empty");
  return { grants, clients } as unknown as BrokerPolicy;
}

/** Where a client is listened for. */
export type ListenAddress =
  | { readonly path: string }
  | { readonly host: string; readonly port: number }
  | { readonly inherited: string };

/** Reads the address of a listener; undefined for another text. */
export function listenAddress(text: string): ListenAddress | undefined {
  const [, inherited] = /^systemd:([\w.-]{1,255})$/.exec(text) ?? [];
  if (inherited !== undefined) return { inherited };
  const [, kind, path] = /^(unix|pipe):(.+)$/s.exec(text) ?? [];
  if (path !== undefined) return { path: kind === "pipe" ? `\\\\.\\pipe\\${path}` : path };
  const [, host, digits] = /^(\d+(?:\.\d+){3}|\[[\da-f:]+\]):(\d{1,5})$/i.exec(text) ?? [];
  const port = Number(digits);
  return host === undefined || port > 65_535 ? undefined : { host: host.replace(/[[\]]/g, ""), port };
}

function listenProblem(text: string): string | undefined {
  const address = listenAddress(text);
  if (address === undefined) return "is none of unix:<path>, systemd:<name> and 127.0.0.1:<port>";
  // Every program that reaches the port can use the tools of the user.
  if ("host" in address && address.host !== "127.0.0.1" && address.host !== "::1")
    return "is not an address of this machine alone";
  return undefined;
}

function serverProblem(value: unknown): string | undefined {
  if (typeof value !== "string" || !URL.canParse(value)) return "is not a URL";
  const { protocol, username, password, hash, hostname } = new URL(value);
  if (protocol !== "https:" && !(protocol === "http:" && isLoopbackHost(hostname)))
    return "does not begin with https://";
  if (username !== "" || password !== "") return "has credentials";
  return hash === "" ? undefined : "has a fragment";
}

function showValue(value: unknown): string {
  return typeof value === "string" ? quote(value, 80) : wholeCharacters(escapeText(JSON.stringify(value)), 80);
}

function textProblem(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? undefined : "is not a text";
}

function listCheck(isItem: (item: string) => boolean, what: string): (value: unknown) => string | undefined {
  return (value) =>
    Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === "string" && isItem(item))
      ? undefined
      : `is not a list ${what}`;
}

/** Headers that belong to one connection (RFC 9110 section 7.6.1), or that the next request sets itself. */
const OF_CONNECTION = new Set(
  (
    "connection content-length expect host keep-alive proxy-authenticate proxy-authorization proxy-connection te " +
    "trailer transfer-encoding upgrade"
  ).split(" "),
);
/** What a client says to a server, apart from its body. The rest may be read as a method, a path or a user. */
const PASSED = new Set(
  (
    "accept accept-language content-type idempotency-key if-match if-modified-since if-none-match " +
    "if-unmodified-since last-event-id mcp-protocol-version mcp-session-id traceparent user-agent"
  ).split(" "),
);
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
export function readTarget(pathname: string): { readonly name: string; readonly rest: string } {
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
    return orUndefined(() => decodeURIComponent(escapes)) ?? "";
  });
}

/** Why the policy does not let a request pass; undefined if it does. */
export function findRefusal(
  { methods, paths }: { readonly methods?: readonly string[]; readonly paths?: readonly string[] },
  { method, rest }: { method: string; rest: string },
): "method" | "path" | undefined {
  if (methods !== undefined && !methods.includes(method)) return "method";
  return paths?.every((path) => !isPathWithin(rest, path)) ? "path" : undefined;
}

/** Whether a grant may have a header passed on that is not one of {@link requestHeaders}. */
function canBePassed(name: string): boolean {
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
