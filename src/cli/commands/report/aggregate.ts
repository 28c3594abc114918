import { createFindings, DAY_SECONDS, type Facts, readFacts } from "./findings.js";
import type { Report, Tally } from "./model.js";

/** The number of distinct values that a counter stores, so that invented values cannot exhaust memory. */
const MOST_DISTINCT = 10_000;
/** Values of a field in the report: the most frequent ones. */
const MOST_VALUES = 50;

/** The fields of the report that count values of the devices. */
const COUNTED = {
  status: ({ status }: Facts) => status,
  session_type: ({ sessionType }: Facts) => sessionType,
  auth_profile: ({ authProfile }: Facts) => authProfile,
  countries: ({ country }: Facts) => country,
  networks: ({ network }: Facts) => network,
  clients: ({ client }: Facts) => client,
  fingerprints: ({ fingerprint }: Facts) => fingerprint,
};

/**
 * Counts devices, and judges them by the rules of findings. Each device is read once and not stored, so memory is bounded.
 *
 * @param now milliseconds since the epoch, for rules about age
 */
export function createAggregate(now: number) {
  const seconds = now / 1000;
  const fields = Object.entries(COUNTED).map(([name, read]) => ({ name, read, counter: createCounter() }));
  const findings = createFindings(seconds);
  const counts = { counted: 0, seen_within_7_days: 0, seen_within_30_days: 0 };
  return {
    add(device: object): void {
      const facts = readFacts(device, seconds);
      const age = seconds - (facts.at ?? Number.NEGATIVE_INFINITY);
      counts.counted++;
      if (age <= 7 * DAY_SECONDS) counts.seen_within_7_days++;
      if (age <= 30 * DAY_SECONDS) counts.seen_within_30_days++;
      for (const { read, counter } of fields) counter.add(read(facts));
      findings.add(facts);
    },
    /** @param about how the devices were read: what the report says beside the numbers */
    report(about: Pick<Report, "pool_id" | "complete" | "notes"> & Pick<Report["devices"], "read" | "total">): Report {
      const { read, total, ...others } = about;
      const tallies = fields.map(({ name, counter }) => [name, counter.tally(MOST_VALUES)] as const);
      return {
        type: "device_report",
        ...others,
        generated_at: new Date(now).toISOString(),
        devices: { read, total, ...counts },
        ...(Object.fromEntries(tallies) as Record<keyof typeof COUNTED, Tally>),
        findings: findings.report(),
      };
    },
  };
}

/**
 * Counts how often each value comes, in bounded memory: values after the first `mostDistinct` ones are counted together.
 * An undefined value is not known.
 */
export function createCounter(mostDistinct = MOST_DISTINCT) {
  const counts = new Map<string, number>();
  let unknown = 0;
  let surplus = 0;
  return {
    add(value: string | undefined): void {
      if (value === undefined) unknown++;
      else if (counts.has(value) || counts.size < mostDistinct) counts.set(value, (counts.get(value) ?? 0) + 1);
      else surplus++;
    },
    /** The counts so far, with at most `most` of the values. */
    tally(most: number): Tally {
      const all = [...counts].map(([value, count]) => ({ value, count }));
      // Equal counts by the code units of their values, so that the same devices yield the same report.
      all.sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1));
      const others = all.slice(most).reduce((sum, { count }) => sum + count, surplus);
      return { distinct: counts.size, unknown, top: all.slice(0, most), others };
    },
  };
}
