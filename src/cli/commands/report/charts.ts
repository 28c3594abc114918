/** The numbers of a report as lists with bars: what its text and its page show. */

import { countText } from "../../output/value.js";
import type { Report, Tally, TimeSeries } from "./model.js";

/** A list of values with a bar for each. */
export interface Chart extends Tally {
  title: string;
  about: string;
}

/** A line of a chart: a value and the number of its devices. */
export type ChartRow = Tally["top"][number];

/** The charts of a report below their headings, in the order in which they are shown. */
export function chartsOf(report: Report): [heading: string, charts: Chart[]][] {
  const { first_seen: first, last_seen: last } = report.countries;
  return [
    ["When", [timeChart("First seen", report.first_seen), timeChart("Last seen", report.last_seen)]],
    [
      "Where",
      [
        { title: "Countries, last seen", about: "Where devices were last seen", ...withNames(last) },
        { title: "Countries, first seen", about: "Where devices were first seen", ...withNames(first) },
      ],
    ],
    [
      "What",
      [
        { title: "Clients", about: "By the titles that they registered with", ...report.clients },
        { title: "Networks", about: "Autonomous systems, last seen", ...report.networks },
        {
          title: "TLS fingerprints",
          about: "JA4, last seen: it names a program, not a machine",
          ...report.fingerprints,
        },
        { title: "Status", about: "Whether a device may still log in", ...report.status },
        { title: "Session types", about: "How devices reach the service", ...report.session_type },
        { title: "Authentication profiles", about: "Of the registered clients", ...report.auth_profile },
      ],
    ],
  ];
}

/** What a chart counts beside its first values, so that the counts add up. */
export function restOf({ top, distinct, others, unknown }: Tally, shown: number): ChartRow[] {
  const hidden = top.slice(shown).reduce((sum, { count }) => sum + count, others);
  const rest = [
    { value: countText(distinct - Math.min(shown, top.length), "other"), count: hidden },
    { value: "unknown", count: unknown },
  ].filter(({ count }) => count > 0);
  return top.length + rest.length > 0 ? rest : [{ value: "none", count: 0 }];
}

let regions: Intl.DisplayNames | undefined;

/** Countries by their code and their English name, if they have one. */
function withNames(countries: Tally): Tally {
  regions ??= new Intl.DisplayNames(["en"], { type: "region", fallback: "none" });
  const nameOf = (code: string) => `${code} ${regions?.of(code) ?? ""}`.trimEnd();
  return { ...countries, top: countries.top.map(({ value, count }) => ({ value: nameOf(value), count })) };
}

/** A series of more days than this is counted by months. */
const MOST_DAYS = 31;

/** Days or months, the latest first; those without a device are shown too. */
function timeChart(title: string, { days, unknown }: TimeSeries): Chart {
  const dates = datesBetween(days[0]?.date, days.at(-1)?.date);
  const unit = dates.length <= MOST_DAYS ? "day" : "month";
  // 2026-01-31 begins with its month.
  const unitOf = (date: string) => (unit === "day" ? date : date.slice(0, "2026-01".length));
  const counts = new Map(dates.map((date) => [unitOf(date), 0]));
  for (const { date, count } of days) counts.set(unitOf(date), (counts.get(unitOf(date)) ?? 0) + count);
  const top = [...counts].map(([value, count]) => ({ value, count })).reverse();
  return { title, about: `Devices by ${unit}, UTC`, distinct: top.length, unknown, top, others: 0 };
}

/** The days since 1970 are few enough to list them all. */
function datesBetween(earliest: string | undefined, latest: string | undefined): string[] {
  if (earliest === undefined || latest === undefined) return [];
  const [from, to] = [Date.parse(earliest) / 1000, Date.parse(latest) / 1000];
  return Array.from({ length: (to - from) / DAY_SECONDS + 1 }, (_, index) => dateOf(from + index * DAY_SECONDS));
}

/** How the report writes shares and days; the text and the page alike. */

/** The length of a day. */
export const DAY_SECONDS = 86_400;

/** A part of a whole in percent; a share above zero is never 0%, a share below one never 100%. */
export function shareText(part: number, whole: number): string {
  if (part === 0 || whole === 0) return "0%";
  const percent = (part / whole) * 100;
  if (percent < 1) return "<1%";
  return part < whole && percent > 99 ? ">99%" : `${Math.round(percent)}%`;
}

/** The date, in UTC, of a time in Unix seconds. */
export function dateOf(at: number): string {
  return new Date(at * 1000).toISOString().slice(0, 10);
}
