import { createHash } from "node:crypto";
import { VERSION } from "../../../http/version.js";
import { escapeHtml } from "../../../redact.js";
import { countText, groupThousands } from "../../output/value.js";
import type { Chart, Finding, Report } from "./findings.js";
import { buildCharts, countRest, listFacts, notJudgedText, shareText } from "./findings.js";

/** The whole style of the page: its policy allows this text and no other. */
const STYLE = `
:root{color-scheme:light dark;--bg:#f5f6f8;--card:#fff;--ink:#15181e;--dim:#5a6372;--line:#e3e6ec;--warn:#9a4a00;--bar:#2456d6}
@media screen and (prefers-color-scheme:dark){:root{--bg:#0e1116;--card:#171b22;--ink:#e9ecf2;--dim:#9aa4b4;--line:#2a313c;
--warn:#ffb866;--bar:#82a6ff}}
*{box-sizing:border-box}
body{max-width:72rem;margin:0 auto;padding:2rem 1.5rem;background:var(--bg);color:var(--ink);font:16px/1.55 system-ui,sans-serif}
h1{margin:0;font-size:1.75rem;overflow-wrap:anywhere}h2{margin:2.5rem 0 1rem;font-size:1.25rem}h3{margin:0;font-size:1rem}
p{margin:.25rem 0}code{font-size:.875em;overflow-wrap:anywhere}
.dim,footer,.rest{color:var(--dim)}.warn{color:var(--warn);font-weight:600}footer{padding-top:2rem;font-size:.85rem}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(28rem,100%),1fr));gap:1rem}
.card{padding:1.25rem 1.5rem;min-width:0;background:var(--card);border:1px solid var(--line);border-radius:14px;break-inside:avoid}
details{margin-top:.35rem}summary{cursor:pointer;color:var(--bar)}
table{width:100%;border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .5rem .3rem 0;text-align:left;font-weight:400;vertical-align:baseline;overflow-wrap:anywhere}
thead th{font-size:.8rem;color:var(--dim)}tr+tr>*,tbody>tr>*{border-top:1px solid var(--line)}
.bars{table-layout:fixed}.bars td:nth-child(2){width:34%}.bars .n,.bars thead th:nth-child(n+3){width:4.4rem;text-align:right}
.bars svg{display:block;width:100%}.bar{fill:var(--bar)}
@media print{.examples::details-content{content-visibility:visible}}
`;

/** Loads nothing, runs no script, and allows only the style above. */
const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/** Rows of a chart; the JSON has more. */
const MOST_ROWS = 12;

/** The report as one self-contained HTML page. */
export function reportPage(report: Report): string {
  const { pool_id, complete, notes, devices, findings } = report;
  const found = findings.filter(({ count }) => count > 0).map(findingCard);
  const clear = findings.filter(({ count }) => count === 0);
  const charts = buildCharts(report).map((chart) => chartCard(chart, devices.counted));
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${escapeHtml(POLICY)}">
<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">
<title>Devices of pool ${escapeHtml(pool_id)}</title><style>${STYLE}</style></head>
<body><header><h1>Devices of pool ${renderText(pool_id)}</h1>
<p class="dim">${listFacts(report).join(", ")}</p>
${complete ? "" : '<p class="warn">Incomplete: not all of the devices are in these numbers.</p>'}
${renderList(notes.map(renderText))}</header>
<main><section aria-labelledby="findings"><h2 id="findings">Findings</h2>
<div class="two">${found.join("")}</div>
${clear.length > 0 ? "<p>Checked, and not found on any device:</p>" : ""}
${renderList(clear.map((finding) => escapeHtml(finding.title + notJudgedText(finding))))}</section>
<section aria-labelledby="numbers"><h2 id="numbers">Numbers</h2><div class="two">${charts.join("")}</div></section></main>
<footer><p>Made by agentauth ${VERSION}. All times are UTC. The page loads nothing and runs no script.</p></footer>
</body></html>
`;
}

/** Text from the service, isolated so that its writing direction does not affect its neighbours. */
function renderText(text: string): string {
  return `<bdi>${escapeHtml(text)}</bdi>`;
}

function renderList(items: readonly string[]): string {
  return items.length === 0 ? "" : `<ul class="dim">${items.map((item) => `<li>${item}</li>`).join("")}</ul>`;
}

/** What one rule found, with its reason and examples. */
function findingCard(finding: Finding): string {
  const { title, why, action, count, examples } = finding;
  const rows = examples.map(
    ({ id, title: name, detail }) =>
      `<tr><th scope="row">${renderText(name ?? "")}<br><code>${renderText(id)}</code></th><td>${renderText(detail)}</td></tr>`,
  );
  const table = `<table><tbody>${rows.join("")}</tbody></table>`;
  const summary = `<summary>${countText(examples.length, "example")}</summary>`;
  return `<article class="card"><h3 class="warn">${escapeHtml(title)}: ${countText(count, "device")}${notJudgedText(finding)}</h3><p>${escapeHtml(why)}</p>
<p>What to do: ${escapeHtml(action)}</p>${examples.length > 0 ? `<details class="examples">${summary}${table}</details>` : ""}</article>
`;
}

/** A card with a table of bars: the table is the chart. */
function chartCard(chart: Chart, whole: number): string {
  const greatest = Math.max(1, ...chart.top.map(({ count }) => count));
  const numbers = (count: number) =>
    `<td class="n">${groupThousands(count)}</td><td class="n">${shareText(count, whole)}</td>`;
  const rows = chart.top.slice(0, MOST_ROWS).map(({ value, count }) => {
    const bar = `<svg aria-hidden="true" height="8"><rect class="bar" width="${Math.round((count / greatest) * 1000) / 10}%" height="8" rx="4"/></svg>`;
    return `<tr><th scope="row">${renderText(value)}</th><td>${bar}</td>${numbers(count)}</tr>`;
  });
  const rest = countRest(chart, MOST_ROWS).map(
    ({ value, count }) => `<tr class="rest"><th scope="row">${value}</th><td></td>${numbers(count)}</tr>`,
  );
  return `<article class="card"><h3>${chart.title}</h3>
<table class="bars"><thead><tr><th></th><td></td><th scope="col">Devices</th><th scope="col">Share</th></tr></thead>
<tbody>${[...rows, ...rest].join("")}</tbody></table></article>
`;
}
