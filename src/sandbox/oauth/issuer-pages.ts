import { createHash } from "node:crypto";
import type { Configuration, ErrorOut, KoaContextWithOIDC } from "#packages/oidc-provider";
import { parseUrl } from "../../http/address.js";
import { escapeHtml } from "../../redact.js";
import type { User } from "./issuer-settings.js";

/** The client and the access that it requests: untrusted texts, which the pages escape. */
export interface AccessRequest {
  clientName: string;
  redirectUri: string | undefined;
  resource: string | undefined;
  scopes: readonly string[];
}

const MAX_TEXT = 200;

/** The whole style of the sandbox's pages: the policy of the pages allows this text and no other, and no script. */
const PAGE_STYLE = `
:root{color-scheme:light dark;--bg:#f4f5f8;--card:#fff;--ink:#171a21;--dim:#5b6472;--line:#d9dde5;--edge:#868f9f;
--go:#2456d6;--go-ink:#fff;--ring:#7aa2ff}
@media (prefers-color-scheme:dark){:root{--bg:#0f1218;--card:#181c25;--ink:#eceff5;--dim:#9aa4b5;--line:#2d3442;
--edge:#6b7488;--go:#6f9bff;--go-ink:#0b1020;--ring:#a9c4ff}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1.5rem;background:var(--bg);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{width:100%;max-width:27rem;background:var(--card);border:1px solid var(--line);border-radius:16px;padding:2rem;
box-shadow:0 12px 40px rgb(0 0 0/.08)}
h1{margin:0 0 .5rem;font-size:1.35rem;line-height:1.25;overflow-wrap:anywhere}
p{margin:0 0 1rem;color:var(--dim);overflow-wrap:anywhere}
strong{color:var(--ink)}
dl{margin:1.25rem 0;border:1px solid var(--line);border-radius:12px}
dl>div{padding:.7rem 1rem}
dl>div+div{border-top:1px solid var(--line)}
dt{font-size:.8rem;color:var(--dim)}
dd{margin:0;overflow-wrap:anywhere}
ul{margin:.25rem 0 0;padding:0;list-style:none;display:flex;flex-wrap:wrap;gap:.4rem}
code{font:.875rem ui-monospace,SFMono-Regular,Menlo,monospace}
li code{padding:.15rem .5rem;border:1px solid var(--line);border-radius:999px}
form{display:grid;gap:.6rem}
form.two{grid-template-columns:1fr 1fr}
button,input{font:inherit;width:100%;padding:.7rem 1rem;border:1px solid var(--edge);border-radius:10px;
background:transparent;color:inherit}
button{cursor:pointer;font-weight:600;text-align:center}
button.user{text-align:left;font-weight:400}
button.user b{display:block}
button.user small{color:var(--dim)}
button.go{background:var(--go);border-color:var(--go);color:var(--go-ink)}
button:hover{border-color:var(--go)}
:focus-visible{outline:3px solid var(--ring);outline-offset:2px}
label{font-size:.875rem;color:var(--dim)}
footer{margin-top:1.5rem;font-size:.8rem;color:var(--dim)}
@media (max-width:24rem){main{padding:1.25rem}form.two{grid-template-columns:1fr}}
@media (prefers-reduced-motion:no-preference){button{transition:border-color .12s}}
`;

const STYLE_HASH = createHash("sha256").update(PAGE_STYLE).digest("base64");

/**
 * The headers of every page.
 *
 * @param redirectUri where the form of the page can redirect, besides to this server: browsers check redirects after
 * a form against the policy too
 */
export function pageHeaders(redirectUri?: string): Record<string, string> {
  const targets = ["'self'", ...(redirectUri === undefined ? [] : [formSource(redirectUri)])].join(" ");
  return {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy":
      `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action ${targets}; ` +
      "base-uri 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    // With no-referrer, browsers would send `Origin: null` with the page's own form, which the sandbox rejects.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
  };
}

export function loginPage(users: readonly User[], request: AccessRequest): string {
  const buttons = users.map(
    ({ id, name, email }) =>
      `<button class="user" name="account" value="${toHtml(id)}"><b>Log in as ${toHtml(name)}</b>` +
      `<small>${toHtml(email)}</small></button>`,
  );
  return renderPage(
    "Log in",
    `<p>to continue to <strong>${toHtml(request.clientName)}</strong></p><form method="post">${buttons.join("")}` +
      '<button name="decision" value="deny">Cancel</button></form>',
  );
}

/** The page on which the user allows or denies the access of a client. */
export function consentPage(user: string, { clientName, redirectUri, resource, scopes }: AccessRequest): string {
  const rows = [
    renderRow("It wants to use", resource === undefined ? "" : `<code>${toHtml(resource)}</code>`),
    renderRow(
      "With the scopes",
      scopes.length === 0 ? "" : `<ul>${scopes.map((scope) => `<li><code>${toHtml(scope)}</code></li>`).join("")}</ul>`,
    ),
    renderRow("You will be sent to", redirectUri === undefined ? "" : `<code>${toHtml(readHost(redirectUri))}</code>`),
  ];
  return renderPage(
    `Allow ${truncate(clientName)}?`,
    `<p>You are logged in as <strong>${toHtml(user)}</strong>. This client asks to act for you.</p>` +
      `<dl>${rows.join("")}</dl><form class="two" method="post">` +
      '<button name="decision" value="deny">Deny</button>' +
      '<button class="go" name="decision" value="allow">Allow</button></form>',
  );
}

/** The page for an error that must not be sent to the redirect URI. */
export function errorPage({ error, error_description = "" }: ErrorOut): string {
  const description = error_description === "" ? "" : `<p>${toHtml(error_description)}</p>`;
  return renderPage("This did not work", `${description}<p><code>${toHtml(error)}</code></p>`);
}

export function messagePage(title: string, text: string): string {
  return renderPage(title, `<p>${toHtml(text)}</p>`);
}

/** The page that asks whether to log out. @param form the form of oidc-provider */
export function logoutPage(form: string): string {
  const buttons = '<button>Stay logged in</button><button class="go" name="logout" value="yes">Log out</button>';
  return renderPage("Log out?", `<p>You are logged in at the sandbox.</p>${renderHiddenForm(form, buttons, "two")}`);
}

export function showPage(ctx: KoaContextWithOIDC, page: string): void {
  ctx.type = "html";
  ctx.body = page;
}

/** The pages of the device authorization grant. */
export const DEVICE_PAGES: NonNullable<Configuration["features"]>["deviceFlow"] = {
  userCodeInputSource(ctx, form, _out, error) {
    const wrong = error === undefined ? "" : "<p>This code is not valid. Check it and try again.</p>";
    const input =
      '<label for="code">The code that your device shows</label>' +
      '<input id="code" name="user_code" autocomplete="off" autofocus required><button class="go">Continue</button>';
    showPage(ctx, renderPage("Connect a device", wrong + renderHiddenForm(form, input)));
  },
  userCodeConfirmSource(ctx, form, client, _info, code) {
    const name = toHtml(client.clientName ?? client.clientId);
    const buttons = '<button name="abort" value="yes">Cancel</button><button class="go">Continue</button>';
    const text = `<p><strong>${name}</strong> shows this code:</p><p><code>${toHtml(code)}</code></p>`;
    showPage(ctx, renderPage("Is this the code?", text + renderHiddenForm(form, buttons, "two")));
  },
  successSource: (ctx) => showPage(ctx, messagePage("Your device is connected", "This page can be closed.")),
};

function renderPage(title: string, body: string): string {
  return (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">' +
    '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="robots" content="noindex">' +
    `<title>${toHtml(title)}</title><style>${PAGE_STYLE}</style></head><body><main><h1>${toHtml(title)}</h1>${body}` +
    "<footer>A sandbox with sample users. No password is needed.</footer></main></body></html>"
  );
}

function renderHiddenForm(form: string, content: string, style = ""): string {
  const { action = "", fields = {} } = readHiddenForm(form) ?? {};
  const hidden = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${escapeHtml(name)}" value="${escapeHtml(value)}">`,
  );
  // The policy allows forms to the origin of the page, whose host name can differ from the issuer's.
  const target = escapeHtml(parseUrl(action)?.pathname ?? action);
  return `<form class="${style}" method="post" action="${target}">${hidden.join("")}${content}</form>`;
}

function renderRow(term: string, description: string): string {
  return description === "" ? "" : `<div><dt>${term}</dt><dd>${description}</dd></div>`;
}

/** Untrusted text as HTML: control characters made visible, shortened, escaped. */
function toHtml(text: string): string {
  return escapeHtml(truncate(text));
}

function truncate(text: string): string {
  const characters = [...text];
  return characters.length > MAX_TEXT ? `${characters.slice(0, MAX_TEXT).join("")}…` : text;
}

function readHost(uri: string): string {
  const { protocol, host } = new URL(uri);
  return host === "" ? protocol : host;
}

function formSource(uri: string): string {
  const { protocol, origin, hostname } = new URL(uri);
  // CSP cannot express an IPv6 address, and a private-use URI scheme has no origin.
  return /^https?:$/.test(protocol) && !hostname.startsWith("[") ? origin : protocol;
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" };

/** Reads the hidden fields of the first form in a page of oidc-provider; `undefined` where there is no form. */
export function readHiddenForm(html: string) {
  const action = /<form [^>]*action="([^"]*)"/.exec(html)?.[1];
  if (action === undefined) return undefined;
  const inputs = html.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g);
  return {
    action: unescapeHtml(action),
    fields: Object.fromEntries([...inputs].map(([, name = "", value = ""]) => [name, unescapeHtml(value)])),
  };
}

function unescapeHtml(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (entity, name: string) => ENTITIES[name] ?? entity);
}
