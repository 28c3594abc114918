import type { Finding } from "../model.js";
import { activeText, countText, numberText } from "../numbers.js";
import { foreign, html, type Markup } from "./markup.js";

/** The findings with their reasons and examples, and the rules without a finding. */
export function findingsSection(findings: readonly Finding[]): Markup {
  const found = findings.filter(({ count }) => count > 0);
  const clear = findings.filter(({ count }) => count === 0);
  const cards = found.length > 0 ? html`<div class="two">${found.map(card)}</div>` : "";
  return html`<section aria-labelledby="findings"><h2 id="findings">Findings</h2>
${cards}${clear.length > 0 ? clearList(clear) : ""}</section>
`;
}

function card(finding: Finding): Markup {
  const { title, why, action, count, examples } = finding;
  return html`<article class="card found"><p class="count">${numberText(count)}</p><h3>${title}</h3>
<p class="of">${activeText(finding)}${notJudged(finding)}</p><p>${why}</p><p>What to do: ${action}</p>${exampleList(examples)}</article>
`;
}

function exampleList(examples: Finding["examples"]): Markup | string {
  if (examples.length === 0) return "";
  const rows = examples.map(({ id, title, client, country, detail }) => {
    const named = html`${foreign(title ?? "")}<br><code>${foreign(id)}</code>`;
    return html`<tr><th scope="row">${named}</th><td>${foreign(client ?? "")}</td><td>${country ?? ""}</td><td>${foreign(detail)}</td></tr>`;
  });
  return html`<details class="examples"><summary>${countText(examples.length, "example")}</summary><table><thead><tr><th scope="col">Device</th><th scope="col">Client</th><th scope="col">Country</th><th scope="col">What was found</th></tr></thead><tbody>${rows}</tbody></table></details>`;
}

function clearList(clear: readonly Finding[]): Markup {
  const items = clear.map((finding) => html`<li>${finding.title}${notJudged(finding)}</li>`);
  return html`<div class="clear"><p>Checked, and not found on any device:</p><ul>${items}</ul></div>`;
}

function notJudged({ judged, not_judged }: Finding): string {
  if (not_judged === 0) return "";
  return `; ${numberText(not_judged)} of ${numberText(judged + not_judged)} devices lack the data to check`;
}
