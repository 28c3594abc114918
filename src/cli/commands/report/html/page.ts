import { createHash } from "node:crypto";
import { VERSION } from "../../../../http/user-agent.js";
import type { Report } from "../model.js";
import { countText, numberText, shareText } from "../numbers.js";
import { findingsSection } from "./findings-section.js";
import { foreign, html, type Markup, trusted } from "./markup.js";
import { REPORT_STYLE } from "./style.js";
import { barCard } from "./tables.js";
import { whenSection } from "./when-section.js";
import { whereSection } from "./where-section.js";

/** Loads nothing, runs no script, and allows only the style below. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(REPORT_STYLE).digest("base64")}'`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

const MOST_ROWS = 10;

/** The report as one self-contained HTML page. */
export function reportPage(report: Report): string {
  const { pool_id, pool_title } = report;
  const page = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">
<title>Devices of pool ${pool_title ?? pool_id}</title><style>${trusted(REPORT_STYLE)}</style></head>
<body>${head(report)}
<main>${tiles(report)}
${findingsSection(report.findings)}${whenSection(report)}${whereSection(report)}${whatSection(report)}</main>
<footer><p>Made by agentauth ${VERSION}. All times are UTC. The page loads nothing and runs no script.</p>
<p>Country shapes: Natural Earth. Places on the map are to a degree.</p></footer>
</body></html>
`;
  return page.markup;
}

const moment = new Intl.DateTimeFormat("en", {
  dateStyle: "long",
  timeStyle: "short",
  timeZone: "UTC",
  hourCycle: "h23",
});

function head({ pool_id, pool_title, generated_at, complete, notes, devices }: Report): Markup {
  const read = moment.format(new Date(generated_at));
  const incomplete = html`<p class="incomplete">Incomplete: not all of the devices are in these numbers.</p>`;
  const list = html`<ul class="notes">${notes.map((note) => html`<li>${foreign(note)}</li>`)}</ul>`;
  return html`<header><p class="over">Device report</p><h1>Pool ${foreign(pool_title ?? pool_id)}</h1>
<p class="sub">${pool_title === null ? "" : html`${foreign(pool_id)}, `}${countText(devices.counted, "device")}, read <time datetime="${generated_at}">${read} UTC</time></p>
${complete ? "" : incomplete}${notes.length > 0 ? list : ""}</header>`;
}

function tiles({ devices, status, countries, networks, clients, fingerprints }: Report): Markup {
  const { counted, seen_within_7_days, seen_within_30_days } = devices;
  const active = status.top.find(({ value }) => value === "active")?.count ?? 0;
  const rows: [string, number, string][] = [
    ["Devices", counted, devices.total === null ? "read" : `of ${numberText(devices.total)} in the pool`],
    ["Active", active, shareText(active, counted)],
    ["Seen within 7 days", seen_within_7_days, shareText(seen_within_7_days, counted)],
    ["Within 30 days", seen_within_30_days, shareText(seen_within_30_days, counted)],
    ["Countries", countries.last_seen.distinct, countText(networks.distinct, "network")],
    ["Clients", clients.distinct, countText(fingerprints.distinct, "TLS fingerprint")],
  ];
  return html`<dl class="tiles">${rows.map(([label, value, note]) => html`<div><dt>${label}</dt><dd>${numberText(value)}</dd><small>${note}</small></div>`)}</dl>`;
}

function whatSection({ devices: { counted }, ...report }: Report): Markup {
  const table = { whole: counted, most: MOST_ROWS };
  const cards = [
    barCard({
      ...table,
      title: "Clients",
      about: "By the titles that they registered with",
      what: "Client",
      tally: report.clients,
    }),
    barCard({
      ...table,
      title: "Networks",
      about: "Autonomous systems, last seen",
      what: "Network",
      tally: report.networks,
    }),
    barCard({
      ...table,
      title: "TLS fingerprints",
      about: "JA4, last seen: it names a program, not a machine",
      what: "Fingerprint",
      tally: report.fingerprints,
      name: code,
    }),
  ];
  const short = [
    barCard({
      ...table,
      title: "Status",
      about: "Whether a device may still log in",
      what: "Status",
      tally: report.status,
    }),
    barCard({
      ...table,
      title: "Session types",
      about: "How devices reach the service",
      what: "Session type",
      tally: report.session_type,
    }),
    barCard({
      ...table,
      title: "Authentication profiles",
      about: "Of the registered clients",
      what: "Profile",
      tally: report.auth_profile,
    }),
  ];
  return html`<section aria-labelledby="what"><h2 id="what">What</h2><div class="two">${cards}<div class="stack">${short}</div></div></section>`;
}

function code(text: string): Markup {
  return html`<code>${foreign(text)}</code>`;
}
