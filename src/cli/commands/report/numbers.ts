/** How the report writes numbers, shares and days; the text and the page alike. */

/** The length of a day. */
export const DAY_SECONDS = 86_400;

// Made on first use: Intl takes a fifth of a start to load its data.
let numbers: Intl.NumberFormat | undefined;

/** A whole number with its thousands apart. */
export function numberText(value: number): string {
  numbers ??= new Intl.NumberFormat("en");
  return numbers.format(value);
}

/** A count and its noun, which takes an s unless there is one. */
export function countText(count: number, noun: string): string {
  return `${numberText(count)} ${noun}${count === 1 ? "" : "s"}`;
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
