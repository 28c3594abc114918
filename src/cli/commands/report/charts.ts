/** The numbers of a report as lists with bars: what its text and its page show. */

import { groupThousands } from "../../output/value.js";
import type { Report, Tally, TimeSeries } from "./model.js";

/** A list of values with a bar for each. */
export interface Chart extends Omit<Tally, "top"> {
  title: string;
  about: string;
  rows: ChartRow[];
}

/** A value and the number of its devices. */
export interface ChartRow {
  label: string;
  count: number;
}

/** Some charts under a heading. */
export interface ChartSection {
  title: string;
  charts: Chart[];
}

/** A series of more stretches than this is counted by longer ones. */
const MOST_STRETCHES = 31;

/** The charts of a report, in the order in which they are shown. */
export function chartsOf(report: Report): ChartSection[] {
  const { countries } = report;
  return [
    {
      title: "When",
      charts: [timeChart("First seen", report.first_seen), timeChart("Last seen", report.last_seen)],
    },
    {
      title: "Where",
      charts: [
        tallyChart("Countries, last seen", "Where devices were last seen", countries.last_seen, countryName),
        tallyChart("Countries, first seen", "Where devices were first seen", countries.first_seen, countryName),
      ],
    },
    {
      title: "What",
      charts: [
        tallyChart("Clients", "By the titles that they registered with", report.clients),
        tallyChart("Networks", "Autonomous systems, last seen", report.networks),
        tallyChart("TLS fingerprints", "JA4, last seen: it names a program, not a machine", report.fingerprints),
        tallyChart("Status", "Whether a device may still log in", report.status),
        tallyChart("Session types", "How devices reach the service", report.session_type),
        tallyChart("Authentication profiles", "Of the registered clients", report.auth_profile),
      ],
    },
  ];
}

function tallyChart(title: string, about: string, tally: Tally, nameOf = (value: string) => value): Chart {
  const { top, ...others } = tally;
  return { title, about, rows: top.map(({ value, count }) => ({ label: nameOf(value), count })), ...others };
}

/** What a chart counts beside its first rows, so that the counts add up. */
export function restOf({ rows, distinct, others, unknown, uncounted }: Chart, shown: number): ChartRow[] {
  const hidden = rows.slice(shown).reduce((sum, { count }) => sum + count, others);
  const rest = [
    { label: countText(distinct - Math.min(shown, rows.length), "other"), count: hidden },
    { label: "unknown", count: unknown },
    { label: "not counted", count: uncounted },
  ].filter(({ count }) => count > 0);
  return rows.length + rest.length > 0 ? rest : [{ label: "none", count: 0 }];
}

let regions: Intl.DisplayNames | undefined;

/** The code of a country and its English name, if it has one. */
function countryName(code: string): string {
  regions ??= new Intl.DisplayNames(["en"], { type: "region", fallback: "none" });
  return `${code} ${regions.of(code) ?? ""}`.trimEnd();
}

/** Days, months or years, the latest first; those without a device are shown too. */
function timeChart(title: string, { earliest, latest, days, unknown }: TimeSeries): Chart {
  const dates = datesBetween(earliest, latest);
  // 2026-01-31 begins with its month and its year.
  const lengths = { day: 10, month: 7, year: 4 } as const;
  const fits = (length: number) => new Set(dates.map((date) => date.slice(0, length))).size <= MOST_STRETCHES;
  const unit = fits(lengths.day) ? "day" : fits(lengths.month) ? "month" : "year";
  const stretchOf = (date: string) => date.slice(0, lengths[unit]);
  const counts = new Map(dates.map((date) => [stretchOf(date), 0]));
  for (const { date, count } of days) counts.set(stretchOf(date), (counts.get(stretchOf(date)) ?? 0) + count);
  const rows = [...counts].map(([label, count]) => ({ label, count })).reverse();
  return { title, about: `Devices by ${unit}, UTC`, rows, distinct: rows.length, others: 0, unknown, uncounted: 0 };
}

/** The days since 1970 are few enough to list them all. */
function datesBetween(earliest: string | null, latest: string | null): string[] {
  if (earliest === null || latest === null) return [];
  const [from, to] = [Date.parse(earliest) / 1000, Date.parse(latest) / 1000];
  return Array.from({ length: (to - from) / DAY_SECONDS + 1 }, (_, index) => dateOf(from + index * DAY_SECONDS));
}

/** How the report writes numbers, shares and days; the text and the page alike. */

/** The length of a day. */
export const DAY_SECONDS = 86_400;

/** A count and its noun, which takes an s unless there is one. */
export function countText(count: number, noun: string): string {
  return `${groupThousands(count)} ${noun}${count === 1 ? "" : "s"}`;
}

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
