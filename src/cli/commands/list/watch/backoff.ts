/** The wait after a failed poll. */

import type { AgentAuthError } from "../../../../errors.js";
import { retryAfter } from "../../../../http/retry.js";

const MOST_MS = 60_000;

/** The wait before the next poll, after `failures` in a row: twice as long each time, up to a minute. */
export function backoff(failures: number, intervalMs: number, error: AgentAuthError, now: number): number {
  const backoff = Math.max(intervalMs, Math.min(MOST_MS, intervalMs * 2 ** failures));
  return Math.max(backoff, (error.response && retryAfter(error.response.headers, now)) ?? 0);
}
