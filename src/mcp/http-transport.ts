import { StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

/** Attempts to take up a stream that broke off, before its request counts as lost. */
const MAX_RECONNECTIONS = 5;
/** A server may ask for a longer wait; a request that hangs on it would hang as long. */
const MAX_WAIT_MS = 10_000;

/** The way to the server: the official transport, which knows sessions, revisions and how broken streams are resumed. */
export function createHttpSide(url: string, fetch: typeof globalThis.fetch): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(new URL(url), {
    fetch: fetch as never,
    redirectPolicy: "same-origin",
    reconnectionOptions: {
      initialReconnectionDelay: 1000,
      maxReconnectionDelay: MAX_WAIT_MS,
      reconnectionDelayGrowFactor: 1.5,
      maxRetries: MAX_RECONNECTIONS,
    },
    reconnectionScheduler(reconnect, delay) {
      const timer = setTimeout(reconnect, Math.min(delay, MAX_WAIT_MS));
      // A stream must not keep the process alive once everything else has ended.
      timer.unref();
      return () => clearTimeout(timer);
    },
  });
}
