/** How the report writes numbers, shares, days and places; the text and the page alike. */

// Made on first use: Intl takes a fifth of a start to load its data.
let numbers: Intl.NumberFormat | undefined;
let regions: Intl.DisplayNames | undefined;
const DAY_MS = 86_400_000;

/** A whole number with its thousands apart. */
export function numberText(value: number): string {
  numbers ??= new Intl.NumberFormat("en");
  return numbers.format(value);
}

/** A count and its noun, which takes an s unless there is one. */
export function countText(count: number, noun: string): string {
  return `${numberText(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** How many of the devices of a finding are active. */
export function activeText({ count, active }: { count: number; active: number }): string {
  return active === count ? "all of them active" : `${numberText(active)} of them active`;
}

/** A part of a whole in percent; a share above zero is never 0%, a share below one never 100%. */
export function shareText(part: number, whole: number): string {
  if (part === 0 || whole === 0) return "0%";
  const percent = (part / whole) * 100;
  if (percent < 1) return "<1%";
  return part < whole && percent > 99 ? ">99%" : `${Math.round(percent)}%`;
}

/** The date of a day that is counted from 1970-01-01 on. */
export function dateOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** The day of a date, counted from 1970-01-01 on. */
export function dayOf(date: string): number {
  return Date.parse(date) / DAY_MS;
}

/** The English name of a country, or its code if it has none. */
export function countryName(code: string): string {
  regions ??= new Intl.DisplayNames(["en"], { type: "region", fallback: "none" });
  return regions.of(code) ?? code;
}
