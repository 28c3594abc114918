import { createCounter } from "./counter.js";
import { createDays } from "./days.js";
import { exampleOf } from "./examples.js";
import { type Facts, readFacts } from "./fields.js";
import type { Finding, Report, Tally } from "./model.js";
import { countText } from "./numbers.js";
import { createPlaces } from "./places.js";
import { RULES, type Rule } from "./rules.js";
import { createSharedOrigins } from "./shared-origins.js";

/** Devices named as examples of a finding. */
const MOST_EXAMPLES = 10;
/** Values of a field in the report: every country, and of unbounded fields the most frequent ones. */
const MOST_COUNTRIES = 26 * 26;
const MOST_VALUES = 50;
const MOST_PLACES = 500;
const MOST_ROUTES = 60;
const DAY_SECONDS = 86_400;

/** The context of the numbers. */
export interface ReportContext {
  poolId: string;
  poolTitle: string | undefined;
  complete: boolean;
  /** Devices read, including those that do not match the filter. */
  read: number;
  /** Devices in the pool, if the service reports it. */
  total: number | undefined;
  notes: readonly string[];
}

/** Counts devices. Each device is read once and not stored, so memory is bounded. */
export interface Aggregate {
  add(device: object): void;
  report(about: ReportContext): Report;
}

/**
 * An aggregate of no devices.
 *
 * @param now milliseconds since the epoch, for rules about age
 */
export function createAggregate(now: number): Aggregate {
  const seconds = now / 1000;
  const counters = createCounters();
  const [firstSeen, lastSeen, places] = [createDays(), createDays(), createPlaces()];
  const findings = createFindings(seconds);
  const counts = { counted: 0, seen_within_7_days: 0, seen_within_30_days: 0 };
  return {
    add(device) {
      const facts = readFacts(device, seconds);
      const { first, last } = facts;
      const age = last.at === undefined ? Number.POSITIVE_INFINITY : seconds - last.at;
      counts.counted++;
      if (age <= 7 * DAY_SECONDS) counts.seen_within_7_days++;
      if (age <= 30 * DAY_SECONDS) counts.seen_within_30_days++;
      counters.add(facts);
      firstSeen.add(first.at);
      lastSeen.add(last.at);
      places.add(first, last);
      findings.add(facts);
    },
    report({ poolId, poolTitle, complete, read, total, notes }) {
      const { fields, full } = counters.tallies();
      const found = findings.report();
      return {
        type: "device_report",
        pool_id: poolId,
        pool_title: poolTitle ?? null,
        generated_at: new Date(now).toISOString(),
        complete,
        notes: [...notes, ...full, ...found.full],
        devices: { read, total: total ?? null, ...counts },
        ...fields,
        first_seen: firstSeen.series(),
        last_seen: lastSeen.series(),
        places: places.places(MOST_PLACES),
        routes: places.routes(MOST_ROUTES),
        findings: found.findings,
      };
    },
  };
}

function createCounters() {
  const counters = {
    status: createCounter(),
    session_type: createCounter(),
    auth_profile: createCounter(),
    networks: createCounter(),
    clients: createCounter(),
    fingerprints: createCounter(),
  };
  const countries = { first_seen: createCounter(), last_seen: createCounter() };
  return {
    add({ status, sessionType, authProfile, client, first, last }: Facts) {
      counters.status.add(status);
      counters.session_type.add(sessionType);
      counters.auth_profile.add(authProfile);
      counters.networks.add(last.asn === undefined ? undefined : `AS${last.asn}`);
      counters.clients.add(client);
      counters.fingerprints.add(last.fingerprint);
      countries.first_seen.add(first.country);
      countries.last_seen.add(last.country);
    },
    tallies() {
      const entries = Object.entries(counters).map(([name, counter]) => [name, counter.tally(MOST_VALUES)] as const);
      const fields = {
        ...(Object.fromEntries(entries) as Record<keyof typeof counters, Tally>),
        countries: {
          first_seen: countries.first_seen.tally(MOST_COUNTRIES),
          last_seen: countries.last_seen.tally(MOST_COUNTRIES),
        },
      };
      return { fields, full: entries.flatMap(([name, { uncounted }]) => fullNote(name.replace("_", " "), uncounted)) };
    },
  };
}

function createFindings(now: number) {
  const rules = RULES.map(createRuleCount);
  const origins = createSharedOrigins(MOST_EXAMPLES);
  return {
    add(facts: Facts) {
      for (const rule of rules) rule.add(facts, now);
      origins.add(facts);
    },
    report() {
      const { finding, uncounted } = origins.finding();
      return {
        findings: bySeverity([...rules.map((rule) => rule.finding()), finding]),
        full: fullNote("addresses with a fingerprint", uncounted),
      };
    },
  };
}

/** The most urgent first; those of one severity stay in the order of the rules. */
function bySeverity(findings: readonly Finding[]): Finding[] {
  const rank = { high: 0, medium: 1, low: 2 };
  return [...findings].sort((a, b) => rank[a.severity] - rank[b.severity]);
}

function fullNote(what: string, uncounted: number): string[] {
  if (uncounted === 0) return [];
  return [`too many distinct ${what}: ${countText(uncounted, "device")} could not be counted`];
}

function createRuleCount({ judge, ...rule }: Rule) {
  const finding: Finding = { ...rule, count: 0, active: 0, judged: 0, not_judged: 0, examples: [] };
  return {
    add(facts: Facts, now: number) {
      const result = judge(facts, now);
      if (result === undefined) {
        finding.not_judged++;
        return;
      }
      finding.judged++;
      if (result === false) return;
      finding.count++;
      if (facts.status === "active") finding.active++;
      const example = exampleOf(facts);
      if (example !== undefined && finding.examples.length < MOST_EXAMPLES) {
        finding.examples.push({ ...example, detail: result });
      }
    },
    finding: (): Finding => ({ ...finding, examples: [...finding.examples] }),
  };
}
