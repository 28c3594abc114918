/** The numbers of a report as lists: what its text and its page show. */

import { countText, groupThousands } from "../../output/value.js";
import type { Report, Tally } from "./model.js";

/** How many devices there are, and when they were seen. */
export function factsOf({ devices, generated_at }: Report): string[] {
  return [
    countText(devices.counted, "device"),
    ...(devices.total === null ? [] : [`${groupThousands(devices.total)} in the pool`]),
    `${groupThousands(devices.seen_within_7_days)} seen within 7 days`,
    `${groupThousands(devices.seen_within_30_days)} within 30 days`,
    `read ${generated_at.slice(0, 16).replace("T", " ")} UTC`,
  ];
}

/** A list of values. */
export interface Chart extends Tally {
  title: string;
}

/** The charts of a report in the order in which they are shown. */
export function chartsOf(report: Report): Chart[] {
  return [
    { title: "Countries, last seen", ...report.countries },
    { title: "Clients", ...report.clients },
    { title: "Networks (autonomous systems), last seen", ...report.networks },
    { title: "TLS fingerprints (JA4), last seen", ...report.fingerprints },
    { title: "Status", ...report.status },
    { title: "Session types", ...report.session_type },
    { title: "Authentication profiles of the clients", ...report.auth_profile },
  ];
}

/** What a chart counts beside its first values, so that the counts add up. */
export function restOf({ top, distinct, others, unknown }: Tally, shown: number): Tally["top"] {
  const hidden = top.slice(shown).reduce((sum, { count }) => sum + count, others);
  const rest = [
    { value: countText(distinct - Math.min(shown, top.length), "other"), count: hidden },
    { value: "unknown", count: unknown },
  ].filter(({ count }) => count > 0);
  return top.length + rest.length > 0 ? rest : [{ value: "none", count: 0 }];
}

/** A part of a whole in percent; a share above zero is never 0%, a share below one never 100%. */
export function shareText(part: number, whole: number): string {
  if (part === 0 || whole === 0) return "0%";
  const percent = (part / whole) * 100;
  if (percent < 1) return "<1%";
  return part < whole && percent > 99 ? ">99%" : `${Math.round(percent)}%`;
}
