import type { Finding, Report } from "../../../../src/cli/commands/report/findings.js";
import { createAggregate } from "../../../../src/cli/commands/report/run.js";

/** 2026-01-31T12:00:00Z in milliseconds. */
const NOW = Date.UTC(2026, 0, 31, 12);
const SECONDS = NOW / 1000;
const DAY = 86_400;

const BERLIN = { lat_long: [52.52, 13.405], country_code: "DE" };
export const TOKYO = { lat_long: [35.6762, 139.6503], country_code: "JP" };

/** Unix seconds so many days before {@link NOW}. */
export function daysAgo(days: number): number {
  return SECONDS - days * DAY;
}

let made = 0;

/** A device with nothing worth a look; fields are merged one level deep. */
export function device(fields: Record<string, unknown> = {}): Record<string, unknown> {
  made++;
  const moment = {
    asn: 64_500,
    ...BERLIN,
    city: "Berlin",
    ja4_fingerprint: `ja4_${made}`,
    region_code: "BE",
    remote_ip: "192.0.2.7",
    timezone: "Europe/Berlin",
    user_agent: "agent/1",
  };
  const whole: Record<string, unknown> = {
    account_id: "acc_1",
    domain_id: "dom_1",
    pool_id: "pool_1",
    id: `dev_${made}`,
    title: "Laptop",
    type: "device",
    status: "active",
    session_type: "mcp",
    first_seen: { ...moment, at: daysAgo(40) },
    last_seen: { ...moment, at: daysAgo(1) },
    dynamic_client_details: {
      auth_profile: "mcp",
      client_secret: "planted-secret",
      pkce_required: true,
      redirect_uris: ["http://127.0.0.1:4711/callback"],
      title: "Agent",
    },
  };
  for (const [key, value] of Object.entries(fields)) {
    const before = whole[key];
    const merges = typeof before === "object" && typeof value === "object" && value !== null && !Array.isArray(value);
    whole[key] = merges ? { ...before, ...value } : value;
  }
  return whole;
}

/** The report on some devices. */
export function reportOn(devices: readonly object[], notes: readonly string[] = []): Report {
  const aggregate = createAggregate(NOW);
  for (const one of devices) aggregate.add(one);
  const read = devices.length;
  return aggregate.report({ pool_id: "pool_1", complete: true, read, total: read, notes: [...notes] });
}

/** One finding of a report. */
export function findingOf(report: Report, code: string): Finding {
  const finding = report.findings.find((one) => one.code === code);
  if (finding === undefined) throw new Error(`there is no finding ${code}`);
  return finding;
}
