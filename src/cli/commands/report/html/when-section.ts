import type { Report } from "../model.js";
import { numberText } from "../numbers.js";
import { binName, timeBins } from "../time-bins.js";
import { html, type Markup } from "./markup.js";
import { numbersTable } from "./tables.js";
import { timeChart } from "./time-chart.js";

/** More bars than this are too thin to distinguish on a narrow screen. */
const MOST_BARS = 54;

/** When devices were first and last seen. */
export function whenSection({ first_seen, last_seen }: Report): Markup {
  const bins = timeBins(first_seen, last_seen, MOST_BARS);
  if (bins === undefined) return html`<section><h2>When</h2><p>No device has a time when it was seen.</p></section>`;
  const { unit, starts } = bins;
  const card = (id: string, title: string, counts: readonly number[], color: string, unknown: number) => {
    const about = `Devices by ${unit}, UTC${unknown > 0 ? `; ${numberText(unknown)} without a time` : ""}`;
    return html`<article class="card"><h3>${title}</h3><p class="about">${about}</p>${timeChart({ id, title, unit, starts, counts, color })}</article>
`;
  };
  const rows = starts.map((start, index): [string, number, number] => {
    return [binName(unit, start), bins.first_seen[index] ?? 0, bins.last_seen[index] ?? 0];
  });
  return html`<section aria-labelledby="when"><h2 id="when">When</h2>
<div class="two">${card("first", "First seen", bins.first_seen, "--first", first_seen.unknown)}${card("last", "Last seen", bins.last_seen, "--last", last_seen.unknown)}</div>
${numbersTable("The numbers of both charts", [unit[0]?.toUpperCase() + unit.slice(1), "First seen", "Last seen"], rows)}</section>
`;
}
