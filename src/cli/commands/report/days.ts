import type { TimeSeries } from "./model.js";
import { dateOf } from "./numbers.js";

const DAY_SECONDS = 86_400;

/** Counts devices by the day on which they were seen; the days since 1970 are few enough to store them all. */
export interface Days {
  /** @param at Unix seconds between 1970 and now, undefined where it is not known */
  add(at: number | undefined): void;
  series(): TimeSeries;
}

/** Days of which none was counted. */
export function createDays(): Days {
  const counts = new Map<number, number>();
  let unknown = 0;
  return {
    add(at) {
      if (at === undefined) {
        unknown++;
        return;
      }
      const day = Math.floor(at / DAY_SECONDS);
      counts.set(day, (counts.get(day) ?? 0) + 1);
    },
    series() {
      const days = [...counts].sort(([a], [b]) => a - b).map(([day, count]) => ({ date: dateOf(day), count }));
      return { earliest: days[0]?.date ?? null, latest: days.at(-1)?.date ?? null, unknown, days };
    },
  };
}
