import type { Tally } from "./model.js";

/** The number of distinct values that a counter stores, so that invented values cannot exhaust memory. */
const MOST_VALUES = 10_000;

/** Counts how often each value comes, exactly, in bounded memory. */
export interface Counter {
  /** Counts one; undefined is a value that is not known. */
  add(value: string | undefined): void;
  /** The counts so far, with at most `most` of the values. */
  tally(most: number): Tally;
}

/** A counter that has counted nothing. */
export function createCounter(mostValues = MOST_VALUES): Counter {
  const counts = new Map<string, number>();
  let unknown = 0;
  let uncounted = 0;
  return {
    add(value) {
      if (value === undefined) unknown++;
      else if (counts.has(value) || counts.size < mostValues) counts.set(value, (counts.get(value) ?? 0) + 1);
      else uncounted++;
    },
    tally(most) {
      const all = [...counts].map(([value, count]) => ({ value, count }));
      // Equal counts by the code units of their values, so that the same devices yield the same report.
      all.sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1));
      const others = all.slice(most).reduce((sum, { count }) => sum + count, 0);
      return { distinct: counts.size, unknown, uncounted, top: all.slice(0, most), others };
    },
  };
}
