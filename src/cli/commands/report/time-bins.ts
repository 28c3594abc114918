import type { TimeSeries } from "./model.js";
import { dateOf, dayOf } from "./numbers.js";

/** A stretch of the calendar that counts are summed over. */
export type BinUnit = "day" | "week" | "month" | "quarter" | "year" | "decade";

/** Both series of a report over the same stretches of time. */
export interface TimeBins {
  unit: BinUnit;
  /** The first day of each stretch, such as 2026-01-01. */
  starts: string[];
  first_seen: number[];
  last_seen: number[];
}

/** The first day of the stretch that a day lies in. */
const FLOORS: Readonly<Record<BinUnit, (day: number) => number>> = {
  day: (day) => day,
  // 1970-01-01 was a Thursday; a week begins on a Monday (ISO 8601).
  week: (day) => day - ((day + 3) % 7),
  month: (day) => floorTo(day, (year, month) => [year, month]),
  quarter: (day) => floorTo(day, (year, month) => [year, month - (month % 3)]),
  year: (day) => floorTo(day, (year) => [year, 0]),
  decade: (day) => floorTo(day, (year) => [year - (year % 10), 0]),
};

function floorTo(day: number, floor: (year: number, month: number) => [year: number, month: number]): number {
  const date = new Date(day * 86_400_000);
  return Date.UTC(...floor(date.getUTCFullYear(), date.getUTCMonth())) / 86_400_000;
}

/** The longest stretch of each unit, in days. */
const LONGEST_DAYS: Readonly<Record<BinUnit, number>> = {
  day: 1,
  week: 7,
  month: 31,
  quarter: 92,
  year: 366,
  decade: 3653,
};

const UNITS: readonly BinUnit[] = ["day", "week", "month", "quarter", "year", "decade"];

/** The two series in at most `most` stretches, as short as that allows; undefined if nothing has a time. */
export function timeBins(first: TimeSeries, last: TimeSeries, most: number): TimeBins | undefined {
  const ends = [first.earliest, last.earliest, first.latest, last.latest].filter((date) => date !== null).map(dayOf);
  if (ends.length === 0) return undefined;
  const [from, to] = [Math.min(...ends), Math.max(...ends)];
  const fitting = UNITS.find((unit) => startsOf(unit, from, to, most) !== undefined) ?? "decade";
  const starts = startsOf(fitting, from, to, Number.POSITIVE_INFINITY) ?? [];
  const places = new Map(starts.map((start, index) => [start, index]));
  const countsOf = ({ days }: TimeSeries) => {
    const counts = starts.map(() => 0);
    for (const { date, count } of days) {
      const place = places.get(FLOORS[fitting](dayOf(date))) ?? 0;
      counts[place] = (counts[place] ?? 0) + count;
    }
    return counts;
  };
  return { unit: fitting, starts: starts.map(dateOf), first_seen: countsOf(first), last_seen: countsOf(last) };
}

/** The first days of all stretches, empty ones included; undefined for more than `most`. */
function startsOf(unit: BinUnit, from: number, to: number, most: number): number[] | undefined {
  const floor = FLOORS[unit];
  const starts: number[] = [];
  for (let day = floor(from); day <= to; day = floor(day + LONGEST_DAYS[unit])) {
    if (starts.length >= most) return undefined;
    starts.push(day);
  }
  return starts;
}

/** A stretch as it is named: 2026-09-14, 2026-09, 2026 Q3, 2026, 2020s. */
export function binName(unit: BinUnit, start: string): string {
  const [year = "", month = ""] = start.split("-");
  switch (unit) {
    case "month":
      return `${year}-${month}`;
    case "quarter":
      return `${year} Q${Math.ceil(Number(month) / 3)}`;
    case "year":
      return year;
    case "decade":
      return `${year}s`;
    default:
      return start;
  }
}
