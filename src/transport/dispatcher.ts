import { fetchOver } from "./fetch-over.js";
import { type ConnectOptions, createSend } from "./http-send.js";
import type { SsrfGuard } from "./ssrf-guard.js";

export type { ConnectOptions as DispatcherOptions };

/** A `fetch` that uses the proxies, trusts the authorities, and connects to what the guard allows. */
export function createFetch(options: ConnectOptions, guard: SsrfGuard | undefined): typeof globalThis.fetch {
  return fetchOver(createSend(options, guard));
}
