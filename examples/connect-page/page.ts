// The page. `html` escapes every text in it.
import type { Connection } from "agentauth";
import { html } from "hono/html";

export const STYLE = `
:root { color-scheme: light dark; --back: #f4f5f7; --card: #fff; --text: #1c2024; --soft: #60646c; --line: #e0e1e6;
  --good: #18794e; --warn: #ad5700; --action: #0d63ce; --on-action: #fff }
@media (prefers-color-scheme: dark) { :root { --back: #111113; --card: #18191b; --text: #edeef0; --soft: #b0b4ba;
  --line: #2e3135; --good: #3dd68c; --warn: #ffa057; --action: #70b8ff; --on-action: #111113 } }
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; padding: 2rem 1rem; background: var(--back); color: var(--text);
  font: 16px/1.5 system-ui, sans-serif }
main { max-width: 40rem; margin: 0 auto; padding: 1.5rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 12px }
h1 { margin: 0 0 .25rem; font-size: 1.25rem }
p { margin: 0; color: var(--soft) }
ul { list-style: none; margin: 1.5rem 0 0; padding: 0 }
li { display: flex; flex-wrap: wrap; align-items: center; gap: .75rem; padding: 1rem 0; border-top: 1px solid var(--line) }
li:last-child { padding-bottom: 0 }
li > div { flex: 1 1 14rem; min-width: 0 }
bdi { display: block; font-weight: 600; overflow-wrap: anywhere }
.valid, .expired { color: var(--good) }
.needs_login, .lost_refresh { color: var(--warn) }
form { flex: none; display: flex; gap: .5rem; margin: 0 }
button { font: inherit; min-height: 2.75rem; padding: 0 1rem; border: 1px solid var(--line); border-radius: 8px;
  background: transparent; color: var(--text); cursor: pointer }
button.main { border-color: transparent; background: var(--action); color: var(--on-action) }
button:hover { filter: brightness(.95) }
button:focus-visible { outline: 2px solid var(--action); outline-offset: 2px }
.error { margin-top: 1rem; padding: .75rem 1rem; border: 1px solid var(--warn); border-radius: 8px; color: var(--text) }
@media (max-width: 30rem) { form, button { width: 100% } }
`;

const STATES: Record<Connection["state"], string> = {
  valid: "Connected",
  expired: "Connected",
  lost_refresh: "Connected, but a login may be needed soon",
  needs_login: "Log in again",
};

const ERRORS: Record<string, string> = {
  access_denied: "The server was not connected: access was denied.",
  login_not_found: "The login took too long. Connect the server again.",
};

interface Shown {
  user: string;
  servers: readonly string[];
  connections: readonly Connection[];
  /** The code of the login that failed. */
  error: string | undefined;
}

export function connectPage({ user, servers, connections, error }: Shown): Html {
  // The servers in their own order, then those that are not offered any more.
  const all = new Set([...servers, ...connections.map(({ server }) => server)]);
  const rows = [...all].flatMap((server) => {
    const own = connections.filter((one) => one.server === server);
    return own.length === 0 ? unconnectedRow(server) : own.map(connectionRow);
  });
  const failure = error === undefined ? "" : (ERRORS[error] ?? "The server was not connected. Try again later.");
  return html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>Connections</title><link rel="stylesheet" href="/style.css"><link rel="icon" href="data:,"></head>
<body><main><h1>Connections</h1><p>The servers that Example platform uses for ${user}.</p>
${failure && html`<p class="error" role="alert">${failure}</p>`}<ul>${rows}</ul></main></body></html>`;
}

type Html = ReturnType<typeof html>;

function connectionRow({ server, account, state }: Connection): Html {
  const end = html`<form method="post" action="/disconnect">${hidden({ server, account: account ?? "" })}
<button aria-label="Disconnect ${nameOf(server)}">Disconnect</button></form>`;
  const again = state === "needs_login" ? connectForm(server) : "";
  return row(server, html`<p class="${state}">${STATES[state]}</p>`, html`${again}${end}`);
}

function unconnectedRow(server: string): Html {
  return row(server, html`<p>Not connected</p>`, connectForm(server));
}

function connectForm(server: string): Html {
  return html`<form method="post" action="/connect">${hidden({ server })}
<button class="main" aria-label="Connect ${nameOf(server)}">Connect</button></form>`;
}

function row(server: string, state: Html, forms: Html): Html {
  return html`<li><div><bdi>${nameOf(server)}</bdi>${state}</div>${forms}</li>`;
}

function hidden(fields: Record<string, string>): Html[] {
  return Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`);
}

function nameOf(server: string): string {
  return server.replace(/^https?:\/\//, "");
}
