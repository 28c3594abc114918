/** How long to wait after a reading that failed. */

import type { AgentAuthError } from "../../errors.js";

const MOST_MS = 60_000;

/** The wait before the next reading, after `failures` of them in a row: twice as long each time, up to a minute. */
export function waitAfter(failures: number, intervalMs: number, error: AgentAuthError, now: number): number {
  const backoff = Math.max(intervalMs, Math.min(MOST_MS, intervalMs * 2 ** failures));
  return Math.max(backoff, askedWait(error.response, now) ?? 0);
}

/** What `Retry-After` asks for, in milliseconds (RFC 9110 section 10.2.3): seconds, or a date by the answer's own clock. */
function askedWait(response: Response | undefined, now: number): number | undefined {
  const value = response?.headers.get("retry-after")?.trim();
  if (!value) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  if (!value.endsWith("GMT") || Number.isNaN(at)) return undefined;
  const theirs = Date.parse(response?.headers.get("date") ?? "");
  return Math.max(0, at - (Number.isNaN(theirs) ? now : theirs));
}
