import { createHash } from "node:crypto";
import { VERSION } from "../../../http/version.js";
import { escapeHtml } from "../../../redact.js";
import { countText, groupThousands } from "../../output/value.js";
import { type Chart, type ChartRow, chartsOf, restOf, shareText } from "./charts.js";
import { activeText, notJudgedText } from "./findings.js";
import type { Finding, Report } from "./model.js";
import { REPORT_STYLE } from "./style.js";

/** Loads nothing, runs no script, and allows only the style below. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(REPORT_STYLE).digest("base64")}'`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/** Rows of a chart; the others are behind a line that opens them. */
const MOST_ROWS = 12;

/** The report as one self-contained HTML page. */
export function reportPage(report: Report): string {
  const { pool_id, pool_title, devices, findings } = report;
  const sections = chartsOf(report).map(([heading, charts]) => chartSection(heading, charts, devices.counted));
  const page = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">
<title>Devices of pool ${pool_title ?? pool_id}</title><style>${trustMarkup(REPORT_STYLE)}</style></head>
<body>${headerOf(report)}
<main>${renderTiles(report)}
${findingsSection(findings)}${sections}</main>
<footer><p>Made by agentauth ${VERSION}. All times are UTC. The page loads nothing and runs no script.</p></footer>
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

function headerOf({ pool_id, pool_title, generated_at, complete, notes, devices }: Report): Markup {
  const read = moment.format(new Date(generated_at));
  const incomplete = html`<p class="incomplete">Incomplete: not all of the devices are in these numbers.</p>`;
  const list = html`<ul class="notes">${notes.map((note) => html`<li>${isolateText(note)}</li>`)}</ul>`;
  return html`<header><p class="over">Device report</p><h1>Pool ${isolateText(pool_title ?? pool_id)}</h1>
<p class="sub">${pool_title === null ? "" : html`${isolateText(pool_id)}, `}${countText(devices.counted, "device")}, read <time datetime="${generated_at}">${read} UTC</time></p>
${complete ? "" : incomplete}${notes.length > 0 ? list : ""}</header>`;
}

function renderTiles({ devices, status, countries, networks, clients, fingerprints }: Report): Markup {
  const { counted, seen_within_7_days, seen_within_30_days } = devices;
  const active = status.top.find(({ value }) => value === "active")?.count ?? 0;
  const rows: [string, number, string][] = [
    ["Devices", counted, devices.total === null ? "read" : `of ${groupThousands(devices.total)} in the pool`],
    ["Active", active, shareText(active, counted)],
    ["Seen within 7 days", seen_within_7_days, shareText(seen_within_7_days, counted)],
    ["Within 30 days", seen_within_30_days, shareText(seen_within_30_days, counted)],
    ["Countries", countries.last_seen.distinct, countText(networks.distinct, "network")],
    ["Clients", clients.distinct, countText(fingerprints.distinct, "TLS fingerprint")],
  ];
  return html`<dl class="tiles">${rows.map(([label, value, note]) => html`<div><dt>${label}</dt><dd>${groupThousands(value)}</dd><small>${note}</small></div>`)}</dl>`;
}

/** The findings with their reasons and examples, and the rules without a finding. */
function findingsSection(findings: readonly Finding[]): Markup {
  const found = findings.filter(({ count }) => count > 0).map(findingCard);
  const clear = findings.filter(({ count }) => count === 0);
  const items = clear.map((finding) => html`<li>${finding.title}${notJudgedText(finding)}</li>`);
  const list = html`<div class="clear"><p>Checked, and not found on any device:</p><ul>${items}</ul></div>`;
  return html`<section aria-labelledby="findings"><h2 id="findings">Findings</h2>
<div class="two">${found}</div>${clear.length > 0 ? list : ""}</section>
`;
}

function findingCard(finding: Finding): Markup {
  const { title, why, action, count, examples } = finding;
  const rows = examples.map(({ id, title, client, country, detail }) => {
    const name = html`${isolateText(title ?? "")}<br><code>${isolateText(id)}</code>`;
    return html`<tr><th scope="row">${name}</th><td>${isolateText(client ?? "")}</td><td>${country ?? ""}</td><td>${isolateText(detail)}</td></tr>`;
  });
  const table = html`<details class="examples"><summary>${countText(examples.length, "example")}</summary><table><thead><tr><th scope="col">Device</th><th scope="col">Client</th><th scope="col">Country</th><th scope="col">What was found</th></tr></thead><tbody>${rows}</tbody></table></details>`;
  return html`<article class="card found"><p class="count">${groupThousands(count)}</p><h3>${title}</h3>
<p class="of">${activeText(finding)}${notJudgedText(finding)}</p><p>${why}</p><p>What to do: ${action}</p>${examples.length > 0 ? table : ""}</article>
`;
}

function chartSection(heading: string, charts: readonly Chart[], whole: number): Markup {
  const id = heading.toLowerCase();
  return html`<section aria-labelledby="${id}"><h2 id="${id}">${heading}</h2><div class="two">${charts.map((chart) => chartCard(chart, whole))}</div></section>
`;
}

/** A card with a table of bars: the table is the chart. */
function chartCard(chart: Chart, whole: number): Markup {
  const greatest = Math.max(1, ...chart.top.map(({ count }) => count));
  const rows = chart.top.map((row) => {
    return html`<tr><th scope="row">${isolateText(row.value)}</th><td>${renderBar(row.count, greatest)}</td>${numberCells(row, whole)}</tr>`;
  });
  const rest = restOf(chart, rows.length).map((row) => {
    return html`<tr class="rest"><th scope="row">${row.value}</th><td></td>${numberCells(row, whole)}</tr>`;
  });
  const hidden = rows.slice(MOST_ROWS);
  const more = html`<details><summary>${groupThousands(hidden.length)} more</summary><table class="bars"><tbody>${hidden}</tbody></table></details>`;
  return html`<article class="card"><h3>${chart.title}</h3><p class="about">${chart.about}</p>
<table class="bars"><thead><tr><th></th><td></td><th scope="col">Devices</th><th scope="col">Share</th></tr></thead>
<tbody>${rows.slice(0, MOST_ROWS)}${rest}</tbody></table>${hidden.length > 0 ? more : ""}</article>
`;
}

function numberCells({ count }: ChartRow, whole: number): Markup {
  return html`<td class="n">${groupThousands(count)}</td><td class="n">${shareText(count, whole)}</td>`;
}

/** A bar that is as long as its column for the greatest count: without a track, which would be read as all devices. */
function renderBar(count: number, greatest: number): Markup {
  if (count === 0) return html``;
  const width = `${Math.max(0.5, Math.round((count / greatest) * 1000) / 10)}%`;
  return html`<svg aria-hidden="true" height="8"><rect class="bar" width="${width}" height="8" rx="4"/></svg>`;
}

/** Text that is HTML already. Only {@link html} and {@link trustMarkup} create it. */
interface Markup {
  readonly markup: string;
}

/** A value in a template: text and numbers are escaped, markup is not. */
type Part = string | number | Markup | readonly Part[];

/**
 * HTML in which every inserted text is escaped: HTML characters for the browser, and invisible and bidirectional
 * characters for readers. Insert text only between tags or in quoted attributes.
 */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return {
    markup: strings.map((text, index) => text + (index < parts.length ? render(parts[index] ?? "") : "")).join(""),
  };
}

/** Markup from elsewhere, made only of our own text and numbers. */
function trustMarkup(markup: string): Markup {
  return { markup };
}

/** Text from the service, isolated so that its writing direction does not affect its neighbours. */
function isolateText(text: string): Markup {
  return html`<bdi>${text}</bdi>`;
}

function render(part: Part): string {
  if (typeof part === "string") return escapeHtml(part);
  if (typeof part === "number") return String(part);
  return "markup" in part ? part.markup : part.map(render).join("");
}
