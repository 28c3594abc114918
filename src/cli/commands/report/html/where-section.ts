import type { Report } from "../model.js";
import { countryName, countText, numberText, shareText } from "../numbers.js";
import { html, type Markup } from "./markup.js";
import { bar, numbersTable } from "./tables.js";
import { shadeSteps, worldMap } from "./world-map.js";

const MOST_COUNTRIES = 12;

/** The map, and the table of countries. */
export function whereSection(report: Report): Markup {
  return html`<section aria-labelledby="where"><h2 id="where">Where</h2>
<div class="card"><h3>First and last seen</h3><p class="about">Countries by devices last seen there. Circles are places, by area; lines lead from where a device was first seen to where it was last seen.</p>
${worldMap(report)}${legend(report)}</div>
${countriesCard(report)}</section>
`;
}

function legend({ countries }: Report): Markup {
  const steps = shadeSteps(countries.last_seen);
  const shades = steps.map((least, index) => {
    const next = steps[index + 1];
    const range = next === undefined ? `${numberText(least)} or more` : rangeText(least, next - 1);
    return html`<li>${swatch(`var(--shade-${index + 1})`)}${range}</li>`;
  });
  return html`<ul class="legend" aria-label="Legend">${shades}
<li><svg aria-hidden="true" viewBox="0 0 14 14"><circle cx="7" cy="7" r="6" fill="var(--last-soft)" stroke="var(--last)"/></svg>last seen</li>
<li><svg aria-hidden="true" viewBox="0 0 14 14"><circle cx="7" cy="7" r="6" fill="none" stroke="var(--first)" stroke-width="1.5"/></svg>first seen</li>
<li><svg aria-hidden="true" viewBox="0 0 24 14"><path d="M1 12Q12 0 23 12" fill="none" stroke="var(--first)" stroke-width="1.5"/></svg>from first to last</li></ul>`;
}

function rangeText(from: number, to: number): string {
  return from === to ? numberText(from) : `${numberText(from)} to ${numberText(to)}`;
}

function swatch(color: string): Markup {
  return html`<svg aria-hidden="true" viewBox="0 0 14 14"><rect width="14" height="14" rx="4" fill="${color}"/></svg>`;
}

interface Row {
  code: string;
  last: number;
  first: number;
}

function countriesCard({ countries: { first_seen, last_seen }, devices }: Report): Markup {
  const firsts = new Map(first_seen.top.map(({ value, count }) => [value, count]));
  const rows: Row[] = last_seen.top.map(({ value, count }) => ({
    code: value,
    last: count,
    first: firsts.get(value) ?? 0,
  }));
  const known = new Set(rows.map(({ code }) => code));
  for (const { value, count } of first_seen.top)
    if (!known.has(value)) rows.push({ code: value, last: 0, first: count });
  const greatest = Math.max(1, rows[0]?.last ?? 1);
  const shown = rows.slice(0, MOST_COUNTRIES).map(({ code, last, first }) => {
    return html`<tr><th scope="row">${name(code)}</th><td>${bar(last, greatest)}</td><td class="n">${numberText(last)}</td><td class="n">${shareText(last, devices.counted)}</td><td class="n">${numberText(first)}</td></tr>`;
  });
  const rest = rows.slice(MOST_COUNTRIES);
  const others = numbersTable(
    `${numberText(rest.length)} more`,
    ["Country", "Last seen", "First seen"],
    rest.map(({ code, last, first }) => [name(code), last, first]),
  );
  return html`<article class="card countries"><h3>Countries</h3>
<p class="about">By where devices were last seen${unknownText("last", last_seen.unknown)}${unknownText("first", first_seen.unknown)}</p>
<table class="bars"><thead><tr><th scope="col">Country</th><td></td><th scope="col">Last seen</th><th scope="col">Share</th><th scope="col">First seen</th></tr></thead><tbody>${shown}</tbody></table>
${rest.length > 0 ? others : ""}</article>
`;
}

function unknownText(when: string, count: number): string {
  return count === 0 ? "" : `; ${countText(count, "device")} without a country when ${when} seen`;
}

function name(code: string): Markup {
  return html`${countryName(code)} <small>${code}</small>`;
}
