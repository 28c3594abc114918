import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ErrorClass } from "../errors.js";
import type { CompletedLogin, LoginOutcome } from "../oauth/login/login-method.js";
import { escapeHtml, wholeCharacters } from "../redact.js";

/** The parameters that decide what a callback means: a repeated one makes it ambiguous. */
const SINGLE = ["state", "code", "iss", "error"] as const;

/** The first of the deciding parameters that is there more than once (RFC 6749 section 3.1 forbids it). */
export function repeatedParameter(parameters: URLSearchParams): string | undefined {
  return SINGLE.find((name) => parameters.getAll(name).length > 1);
}

/** Compares in constant time. */
export function sameSecret(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}

export interface BrowserPage {
  status: number;
  html: string;
  headers?: Readonly<Record<string, string>>;
}

const STYLE = [
  ":root{color-scheme:light dark;--back:#f4f5f7;--card:#fff;--text:#1c2024;--soft:#60646c;--line:#e0e1e6}",
  "@media(prefers-color-scheme:dark){:root{--back:#111113;--card:#18191b;--text:#edeef0;--soft:#b0b4ba;--line:#2e3135}}",
  "body{margin:0;min-height:100vh;display:grid;place-items:center;background:var(--back);color:var(--text);",
  "font:16px/1.5 system-ui,sans-serif}",
  "main{box-sizing:border-box;width:min(28rem,100% - 2rem);padding:2rem;background:var(--card);",
  "border:1px solid var(--line);border-radius:12px}",
  "h1{margin:0 0 .5rem;font-size:1.25rem}p{margin:0;color:var(--soft)}",
  "dl{display:grid;grid-template-columns:auto 1fr;gap:.25rem 1rem;margin:0 0 1rem}dt{color:var(--soft)}",
  "dd{margin:0;min-width:0;overflow-wrap:anywhere}",
].join("");

/** Made with the first page: the digest loads `node:crypto`. */
const pageHeaders = () => ({
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": [
    "default-src 'none'",
    `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join("; "),
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  connection: "close",
});

/** Sends a page; the connection ends with it. */
export function sendPage(response: ServerResponse, page: BrowserPage): void {
  response.writeHead(page.status, {
    ...pageHeaders(),
    ...page.headers,
    "content-length": Buffer.byteLength(page.html),
  });
  response.end(page.html);
}

/** The texts are constants: nothing from a request is ever part of a page. `facts` is markup. */
function buildPage(
  status: number,
  title: string,
  text: string,
  headers?: BrowserPage["headers"],
  facts = "",
): BrowserPage {
  const html = [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width,initial-scale=1">',
    `<title>${title}</title><style>${STYLE}</style></head>`,
    `<body><main><h1>${title}</h1>${facts}<p>${text}</p></main></body></html>\n`,
  ].join("");
  return headers === undefined ? { status, html } : { status, html, headers };
}

export const FORBIDDEN = buildPage(
  403,
  "Not allowed",
  "This address only answers the browser that returns from the login.",
);
export const NOT_FOUND = buildPage(404, "Nothing here", "This address only takes the response to a login.");
export const ONLY_GET = buildPage(405, "Not allowed", "This address only answers GET.", { allow: "GET" });
export const NOT_OURS = buildPage(
  400,
  "Not the expected response",
  "This does not belong to the login in progress. Nothing was changed. You can close this window.",
);
export const ALREADY_ANSWERED = buildPage(
  409,
  "Already answered",
  "This login already has its response. You can close this window.",
);

/** What a browser shows that does not follow a redirect to the login page. */
export const TO_LOGIN = "Opening the login page.";

/** Redirects the browser; after a callback, so that the code leaves its address bar and its history. */
export function movedTo(address: string, text = "Completing the login."): BrowserPage {
  return buildPage(303, "One moment", text, { location: address });
}

/** The longest text of a server or an issuer on a page, in characters. */
const MAX_FACT = 200;

/** Who is logged in where, once. */
function loggedIn(login: CompletedLogin | undefined): BrowserPage {
  const facts = Object.entries({ Server: login?.server, Issuer: login?.issuer, Account: login?.account });
  const rows = facts.map(([name, value]) =>
    value === undefined ? "" : `<dt>${name}</dt><dd><bdi>${escapeHtml(cutFact(value))}</bdi></dd>`,
  );
  const list = login === undefined ? "" : `<dl>${rows.join("")}</dl>`;
  return buildPage(200, "You are logged in", "You can close this window.", undefined, list);
}

function cutFact(text: string): string {
  return text.length > MAX_FACT ? `${wholeCharacters(text, MAX_FACT)}…` : text;
}

const RECEIVED = buildPage(
  200,
  "Almost done",
  "The response to your login was received. The program that asked you to log in completes it: see there whether it " +
    "succeeded. You can close this window.",
);

const REASONS: Readonly<Record<ErrorClass, string>> = {
  auth: "The authorization server denied access.",
  refused: "The response broke a security rule, and nothing of it was used.",
  unavailable: "The authorization server could not be reached.",
  remote: "The server rejected the request.",
  store: "The login could not be saved on this computer.",
  aborted: "The login was cancelled in the terminal.",
  usage: "A setting is wrong.",
  partial: "The login was not completed.",
  internal: "The program that asked you to log in failed.",
};

/** The outcome of a login, or `received` where another program completes it. */
export type ShownOutcome = LoginOutcome | "received";

/** The last page of a login: success, or the class of the failure. */
export function outcomePage(outcome: ShownOutcome): BrowserPage {
  if (outcome === "received") return RECEIVED;
  if (outcome.ok) return loggedIn(outcome.login);
  const reason = REASONS[outcome.error.class] ?? REASONS.internal;
  return buildPage(200, "The login failed", `${reason} See the terminal for details. You can close this window.`);
}

/** This many wrong callbacks indicate an attack. */
const PROBE_COUNT = 50;
/** Time that a browser has to request the page that it was redirected to. */
const NEXT_PAGE_MS = 2_000;

/** The progress of the browser that sent a callback. */
export type BrowserState = "expected" | "redirected" | "waiting" | "served" | "gone";

/** What changes that. */
export type BrowserEvent = "callback" | "callbackLost" | "pageRequested" | "pageSent" | "pageLost" | "anotherRequest";

/**
 * The state to which an event leads; an event that is not in the row of a state changes nothing.
 *
 *     state       the browser                         leaves it by
 *     expected    has sent no callback yet            callback: to redirected
 *     redirected  is loading the last page            pageRequested: to waiting; callbackLost: to gone
 *     waiting     has requested it, and reads nothing pageSent: to served; pageLost, its last connection: to gone
 *                 before the outcome is known
 *     served      has the outcome                     pageRequested, a reload: to waiting
 *     gone        left without the outcome            pageRequested, it came back: to waiting
 *
 * A browser that is redirected or waiting can be sent to another authorization request instead (anotherRequest): another
 * callback is then expected.
 */
export const TRANSITIONS: Readonly<Record<BrowserState, Partial<Record<BrowserEvent, BrowserState>>>> = {
  expected: { callback: "redirected" },
  redirected: { pageRequested: "waiting", callbackLost: "gone", anotherRequest: "expected" },
  waiting: { pageSent: "served", pageLost: "gone", anotherRequest: "expected" },
  served: { pageRequested: "waiting" },
  gone: { pageRequested: "waiting" },
};

/** How a {@link CallbackHandler} answers. */
export interface CallbackHandlerOptions {
  /** The values of the Host header that a browser may send, such as `127.0.0.1:49152`. */
  hosts: ReadonlySet<string>;
  /** The path of the callback. */
  path: string;
  /** The same for browsers, where a proxy changes it. */
  publicPath: string;
  /** Called once when 50 wrong callbacks came: something on this machine, or a web page, tries to inject one. */
  onProbe: () => void;
  /** Called once with an error that came without a state: an authorization server sends one back (RFC 6749 section 4.1.2.1). */
  onStatelessError: (error: string) => void;
  /** Called once with the path of a callback that came, with the right state, to another one than `path`. */
  onOtherPath: (path: string) => void;
  /** Called with a connection that must stay open until the login has ended. */
  keepAlive: (socket: Socket) => void;
}

/**
 * Answers the requests that reach a callback listener. The first callback with the right state wins, and its browser is
 * redirected to a page that is answered when the login has ended; {@link TRANSITIONS} has the states of the browser. No
 * other request changes anything.
 */
export class CallbackHandler {
  readonly #options: CallbackHandlerOptions;
  readonly #link = new ShortLink();
  #done = newDonePage();
  /** Where the browser of an earlier callback is sent, and the page that it may still request. */
  #redirect: { from: string; to: string; isSent: () => void } | undefined;
  readonly #waiting = new Set<ServerResponse>();
  #expected: { state: string; resolve: (parameters: URLSearchParams) => void } | undefined;
  #wrong = 0;
  #hasReportedError = false;
  #hasReportedPath = false;
  #outcome: ShownOutcome | undefined;
  #browser: BrowserState = "expected";
  /** Called when the browser is served or gone. */
  #onEnd: () => void = () => {};

  constructor(options: CallbackHandlerOptions) {
    this.#options = options;
  }

  /** How far the browser of the last callback is. */
  get browser(): BrowserState {
    return this.#browser;
  }

  /** Waits for the callback with this state. Before this call, every callback is wrong. */
  expect(state: string): Promise<URLSearchParams> {
    return new Promise((resolve) => {
      this.#expected = { state, resolve };
    });
  }

  /**
   * Redirects the browser of a callback to another authorization request; another callback is then expected.
   *
   * @returns whether the browser requested its page in time, and so was redirected; undefined where there is no browser
   */
  redirectAgain(url: string): Promise<boolean> | undefined {
    if (!this.#on("anotherRequest")) return undefined;
    const sent = new Promise<boolean>((resolve) => {
      const tooLate = setTimeout(resolve, NEXT_PAGE_MS, false).unref();
      const isSent = () => {
        clearTimeout(tooLate);
        resolve(true);
      };
      this.#redirect = { from: this.#done, to: url, isSent };
    });
    this.#done = newDonePage();
    for (const response of this.#waiting) this.#answerRedirect(response);
    this.#waiting.clear();
    return sent;
  }

  /**
   * Makes a short path lead to the login page until the callback is there; the path is the same on every call.
   *
   * @returns the path; undefined where it no longer works, since something searched for it
   */
  shortPathTo(url: string, onWithdrawn: () => void): string | undefined {
    return this.#link.leadTo(url, onWithdrawn) ? this.#link.path : undefined;
  }

  handle(request: IncomingMessage, response: ServerResponse): void {
    const target = request.url ?? "";
    const { hosts, path } = this.#options;
    const isKnown = readPath(target) === path || this.#link.isAt(readPath(target));
    const refusal = refusalPageFor(request, hosts, isKnown);
    if (refusal === NOT_FOUND) this.#missed(target);
    if (refusal !== undefined) sendPage(response, refusal);
    else if (this.#link.isAt(readPath(target))) sendPage(response, this.#toLogin());
    else if (target === path + this.#redirect?.from) this.#answerRedirect(response);
    else if (target === path + this.#done && this.#browser !== "expected") this.#serveDone(request, response);
    else sendPage(response, this.#receive(readQuery(target), response));
  }

  #missed(target: string): void {
    this.#link.miss();
    if (this.#hasReportedPath || !this.#isExpected(readQuery(target))) return;
    this.#hasReportedPath = true;
    this.#options.onOtherPath(readPath(target));
  }

  #isExpected(parameters: URLSearchParams): boolean {
    const state = parameters.get("state");
    return this.#expected !== undefined && state !== null && sameSecret(state, this.#expected.state);
  }

  /** Sends the outcome to the browser. Resolves once it was sent, or where there is no browser. */
  finish(outcome: ShownOutcome): Promise<void> {
    this.#outcome = outcome;
    for (const response of this.#waiting) sendPage(response, outcomePage(outcome));
    if (this.#browser !== "redirected" && this.#browser !== "waiting") return Promise.resolve();
    return new Promise((resolve) => {
      this.#onEnd = resolve;
    });
  }

  #toLogin(): BrowserPage {
    const { target } = this.#link;
    return target === undefined || this.#browser !== "expected" ? ALREADY_ANSWERED : movedTo(target, TO_LOGIN);
  }

  #receive(parameters: URLSearchParams, response: ServerResponse): BrowserPage {
    if (!this.#isExpected(parameters) || repeatedParameter(parameters) !== undefined) {
      if (++this.#wrong === PROBE_COUNT) this.#options.onProbe();
      const error = parameters.get("error");
      if (error !== null && !parameters.has("state") && !this.#hasReportedError) {
        this.#hasReportedError = true;
        this.#options.onStatelessError(error);
      }
      return NOT_OURS;
    }
    if (!this.#on("callback")) return ALREADY_ANSWERED;
    const page = this.#done;
    response.once("close", () => {
      if (!response.writableFinished && page === this.#done) this.#on("callbackLost");
    });
    this.#expected?.resolve(parameters);
    return movedTo(this.#options.publicPath + page);
  }

  #serveDone(request: IncomingMessage, response: ServerResponse): void {
    this.#on("pageRequested");
    this.#waiting.add(response);
    this.#options.keepAlive(request.socket);
    response.once("close", () => {
      // A browser that was sent to another request has left the page for good.
      if (!this.#waiting.delete(response)) return;
      if (response.writableFinished) this.#on("pageSent");
      else if (this.#waiting.size === 0) this.#on("pageLost");
    });
    if (this.#outcome !== undefined) sendPage(response, outcomePage(this.#outcome));
  }

  #answerRedirect(response: ServerResponse): void {
    if (this.#redirect === undefined) return;
    sendPage(response, movedTo(this.#redirect.to));
    this.#redirect.isSent();
  }

  /** Changes the state by an event; false where the event changes nothing. */
  #on(event: BrowserEvent): boolean {
    const next = TRANSITIONS[this.#browser][event];
    if (next === undefined) return false;
    this.#browser = next;
    if (next === "served" || next === "gone") this.#onEnd();
    return true;
  }
}

/** The last page, as a query of the callback's own path: a proxy may bring no other one here. */
function newDonePage(): string {
  return `?done=${randomBytes(16).toString("base64url")}`;
}

/**
 * Checks that a request can be a browser's own navigation to one of our paths.
 *
 * Any web page can make a browser send requests here, but it can choose neither the Host nor hide where the request
 * comes from and what it is for.
 *
 * @param isKnown whether its path exists, compared byte for byte
 * @returns the page that refuses the request, or nothing
 */
function refusalPageFor(
  request: IncomingMessage,
  hosts: ReadonlySet<string>,
  isKnown: boolean,
): BrowserPage | undefined {
  const target = request.url ?? "";
  const headerValues = (name: string) => request.headersDistinct[name] ?? [];
  const [host, ...moreHosts] = headerValues("host");
  // An absolute-form target is for proxies; its host would overrule the Host header (RFC 9112 section 3.2.2).
  if (!target.startsWith("/")) return FORBIDDEN;
  if (host === undefined || moreHosts.length > 0 || !hosts.has(host)) return FORBIDDEN;
  if (headerValues("origin").length > 0) return FORBIDDEN;
  if (headerValues("sec-fetch-dest").some((destination) => destination !== "document")) return FORBIDDEN;
  // A prefetch would use up the single callback before the user sees its result.
  if (headerValues("sec-purpose").length > 0 || headerValues("purpose").length > 0) return FORBIDDEN;
  if (!isKnown) return NOT_FOUND;
  if (request.method !== "GET") return ONLY_GET;
  const hasBody =
    headerValues("transfer-encoding").length > 0 || headerValues("content-length").some((length) => length !== "0");
  return hasBody ? NOT_OURS : undefined;
}

/** The path of a request target, unchanged: nothing decoded, no dots resolved. */
function readPath(target: string): string {
  return target.split("?", 1)[0] ?? "";
}

function readQuery(target: string): URLSearchParams {
  return new URLSearchParams(target.slice(readPath(target).length));
}

/** 12 characters: short enough for a line of 40 columns, and 2^72 paths to guess. */
const PATH_BYTES = 9;
/** This many requests for other paths indicate a search for the link; a browser sends one or two, for its icon. */
const MOST_MISSES = 50;

/**
 * A short address of the callback listener that leads to the login page, for a user who copies it from a terminal.
 *
 * The address of the login page has the `state`, and who knows the state can send a callback of another account. So the
 * path is a secret like the state: it is random, compared in constant time, and answered like any unknown path until it is
 * right. After 50 requests for unknown paths, the link stops working for the rest of the login: a program on this machine
 * that searches for it gets 50 attempts, and the user the long address instead.
 */
class ShortLink {
  readonly path = `/${randomBytes(PATH_BYTES).toString("base64url")}`;
  #target: string | undefined;
  #misses = 0;
  #onWithdrawn: () => void = () => {};

  /** The address that it leads to; undefined where it leads nowhere. */
  get target(): string | undefined {
    return this.#target;
  }

  /**
   * Leads to an address from now on.
   *
   * @param onWithdrawn called once when the link stops working because something searches for it
   * @returns whether it does; not after it was withdrawn
   */
  leadTo(target: string, onWithdrawn: () => void): boolean {
    if (this.#misses >= MOST_MISSES) return false;
    this.#target = target;
    this.#onWithdrawn = onWithdrawn;
    return true;
  }

  /** Whether a path is that of the link, while it leads somewhere. */
  isAt(path: string): boolean {
    return this.#target !== undefined && sameSecret(path, this.path);
  }

  /** Counts a request for a path that does not exist. */
  miss(): void {
    if (this.#target === undefined || ++this.#misses < MOST_MISSES) return;
    this.#target = undefined;
    this.#onWithdrawn();
  }
}
