import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { ErrorClass } from "../errors.js";
import type { CompletedLogin, LoginOutcome } from "../oauth/login/login-method.js";
import { escapeHtml, wholeCharacters } from "../redact.js";

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
