import type { Tally } from "../model.js";
import { countText, numberText, shareText } from "../numbers.js";
import { foreign, html, type Markup, type Part } from "./markup.js";

/** A list of values with a bar for each: the table is the chart. */
export interface BarTable {
  title: string;
  about: string;
  /** The heading of the values. */
  what: string;
  tally: Tally;
  /** The total for the shares. */
  whole: number;
  most: number;
  name?(value: string): Part;
}

/** A card with a table of bars. */
export function barCard({ title, about, what, tally, whole, most, name = foreign }: BarTable): Markup {
  const shown = tally.top.slice(0, most);
  const greatest = shown[0]?.count ?? 1;
  const rows = shown.map(({ value, count }) => {
    return html`<tr><th scope="row">${name(value)}</th><td>${bar(count, greatest)}</td><td class="n">${numberText(count)}</td><td class="n">${shareText(count, whole)}</td></tr>`;
  });
  return html`<article class="card"><h3>${title}</h3><p class="about">${about}</p>
<table class="bars"><thead><tr><th scope="col">${what}</th><td></td><th scope="col">Devices</th><th scope="col">Share</th></tr></thead>
<tbody>${rows}${restRows(tally, shown.length, whole)}</tbody></table></article>
`;
}

/** The counts of the values that are not shown, so that the counts add up. */
function restRows({ top, distinct, others, unknown, uncounted }: Tally, shown: number, whole: number): Markup[] {
  const hidden = top.slice(shown).reduce((sum, { count }) => sum + count, others);
  const rest: [string, number][] = [
    [countText(distinct - shown, "other"), hidden],
    ["unknown", unknown],
    ["not counted", uncounted],
  ];
  if (whole === 0) rest.push(["none", 0]);
  return rest
    .filter(([label, count]) => count > 0 || label === "none")
    .map(([label, count]) => {
      return html`<tr class="rest"><th scope="row">${label}</th><td></td><td class="n">${numberText(count)}</td><td class="n">${shareText(count, whole)}</td></tr>`;
    });
}

/** A bar that is as long as its column for the greatest count: without a track, which would be read as all devices. */
export function bar(count: number, greatest: number): Markup {
  if (count === 0) return html``;
  const width = `${Math.max(0.5, Math.round((count / greatest) * 1000) / 10)}%`;
  return html`<svg aria-hidden="true" height="8"><rect class="bar" width="${width}" height="8" rx="4"/></svg>`;
}

/** A table of plain numbers behind a line that opens it. */
export function numbersTable(
  caption: string,
  headings: readonly string[],
  rows: readonly (readonly [Part, ...number[]])[],
): Markup {
  const head = headings.map(
    (heading, index) => html`<th scope="col"${index === 0 ? "" : html` class="n"`}>${heading}</th>`,
  );
  const body = rows.map(([label, ...numbers]) => {
    return html`<tr><th scope="row">${label}</th>${numbers.map((number) => html`<td class="n">${numberText(number)}</td>`)}</tr>`;
  });
  return html`<details><summary>${caption}</summary><table class="numbers"><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></details>`;
}
